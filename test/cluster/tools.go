package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// toolGroup is a set of programs that are built together, from one Go module.
type toolGroup struct {
	name string
	dir  string // under test/cluster
	pkg  string
	// versions maps a module that go.mod requires to the linker variables that are set to its
	// version.
	versions map[string][]string
	// ldflags are additional linker flags.
	ldflags string
	// programs maps the file names of the build to the names under which they are stored.
	programs map[string]string
	// aside marks a group that is not part of the cluster and is built only when one of its tools
	// is named.
	aside bool
}

// toolGroups returns all groups, the one that takes longest to build first.
func toolGroups() []toolGroup {
	kubeVersion := []string{"k8s.io/component-base/version.gitVersion", "k8s.io/client-go/pkg/version.gitVersion"}
	const kubeFlags = "-X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36 " +
		"-X k8s.io/client-go/pkg/version.gitMajor=1 -X k8s.io/client-go/pkg/version.gitMinor=36"
	const crossplaneVersion = "github.com/crossplane/crossplane-runtime/v2/pkg/version.version"
	return []toolGroup{
		{
			name: "kubernetes", dir: "tools/kubernetes", pkg: "tool",
			versions: map[string][]string{"k8s.io/kubernetes": kubeVersion}, ldflags: kubeFlags,
			programs: same("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet", "kubectl"),
		},
		{
			name: "cli", dir: "tools/cli", pkg: "tool",
			versions: map[string][]string{"github.com/crossplane/cli/v2": {crossplaneVersion}},
			programs: same("crossplane"),
		},
		{
			name: "crossplane", dir: "tools/crossplane", pkg: "tool",
			versions: map[string][]string{"github.com/crossplane/crossplane/v2": {crossplaneVersion}},
			programs: map[string]string{"crossplane": "crossplane-core"},
		},
		{name: "helm", dir: "tools/helm", pkg: "tool", programs: same("helm", "crane")},
		{name: "coredns", dir: "tools/coredns", pkg: "tool", programs: same("coredns")},
		{name: "etcd", dir: "tools/etcd", pkg: "tool", programs: map[string]string{"server": "etcd"}},
		{name: "policy", dir: "tools/policy", pkg: "tool", programs: same("kube-router")},
		{name: "provisioner", dir: "tools/provisioner", pkg: ".", programs: same("provisioner")},
		{name: "registry", dir: "tools/registry", pkg: ".", programs: same("registry")},
		{name: "pause", dir: "pause", pkg: ".", programs: same("pause")},
		{name: "kwok", dir: "tools/kwok", pkg: "tool", programs: same("kwok"), aside: true},
	}
}

func same(names ...string) map[string]string {
	out := map[string]string{}
	for _, n := range names {
		out[n] = n
	}
	return out
}

func (g toolGroup) has(tool string) bool {
	for _, name := range g.programs {
		if name == tool {
			return true
		}
	}
	return false
}

// toolbox builds programs and caches them.
type toolbox struct {
	source string // test/cluster
	cache  string
	built  map[string]string // folder of each group, set by find
}

// path returns the path of a program, which exists after ensure.
func (t *toolbox) path(tool string) string {
	for _, g := range toolGroups() {
		if g.has(tool) {
			return filepath.Join(t.built[g.name], tool)
		}
	}
	return ""
}

// ensure builds the groups of the named tools, or all groups of the cluster if none is named,
// unless they are cached. It returns how many it built.
func (t *toolbox) ensure(ctx context.Context, tools ...string) (int, error) {
	var groups []toolGroup
	for _, g := range toolGroups() {
		if len(tools) == 0 && !g.aside || slices.ContainsFunc(tools, g.has) {
			groups = append(groups, g)
		}
	}
	for _, tool := range tools {
		if !slices.ContainsFunc(groups, func(g toolGroup) bool { return g.has(tool) }) {
			return 0, fmt.Errorf("cannot build %s: there is no such tool, there are %s", tool, strings.Join(toolNames(), ", "))
		}
	}

	if err := t.find(); err != nil {
		return 0, err
	}
	var missing []toolGroup
	for _, g := range groups {
		if !exists(t.built[g.name]) {
			missing = append(missing, g)
		}
	}
	if len(missing) == 0 {
		return 0, nil
	}

	unlock, err := lock(ctx, filepath.Join(t.cache, "lock"), "building tools")
	if err != nil {
		return 0, err
	}
	defer unlock()
	n := 0
	for i, g := range missing {
		if exists(t.built[g.name]) { // built by the run that held the lock
			continue
		}
		done := ticker(fmt.Sprintf("building %s (%d of %d)", g.name, i+1, len(missing)))
		err := t.build(ctx, g, t.built[g.name])
		done()
		if err != nil {
			return n, fmt.Errorf("cannot build %s: %w", g.name, err)
		}
		n++
	}
	return n, nil
}

// find sets the folder of each group, which exists once the group is built.
func (t *toolbox) find() error {
	t.built = map[string]string{}
	for _, g := range toolGroups() {
		key, err := t.key(g)
		if err != nil {
			return err
		}
		t.built[g.name] = filepath.Join(t.cache, g.name+"-"+key)
	}
	return nil
}

// build builds a group in a temporary folder and renames that to dir, so that dir is never
// incomplete.
func (t *toolbox) build(ctx context.Context, g toolGroup, dir string) error {
	flags, err := t.ldflags(g)
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(t.cache, ".building-")
	if err != nil {
		return fmt.Errorf("cannot make a build folder: %w", err)
	}
	defer os.RemoveAll(tmp)
	_, err = run(ctx, command{
		dir: filepath.Join(t.source, g.dir),
		// The images that these programs are copied into have no C library.
		env:  []string{"CGO_ENABLED=0", "GOWORK=off"},
		argv: []string{"go", "build", "-buildvcs=false", "-ldflags", flags, "-o", tmp + "/", g.pkg},
	})
	if err != nil {
		return err
	}
	for from, to := range g.programs {
		if from == to {
			continue
		}
		if err := os.Rename(filepath.Join(tmp, from), filepath.Join(tmp, to)); err != nil {
			return fmt.Errorf("cannot name %s: %w", to, err)
		}
	}
	if err := os.Chmod(tmp, 0o755); err != nil { //nolint:gosec // All users may run the programs.
		return fmt.Errorf("cannot open the build folder: %w", err)
	}
	if err := os.Rename(tmp, dir); err != nil {
		return fmt.Errorf("cannot keep %s: %w", dir, err)
	}
	// The time of the folder is that of the build, in case the cache is cleaned up by age.
	now := time.Now()
	_ = os.Chtimes(dir, now, now)
	return nil
}

func (t *toolbox) ldflags(g toolGroup) (string, error) {
	if len(g.versions) == 0 {
		return strings.TrimSpace("-s -w " + g.ldflags), nil
	}
	mod, err := os.ReadFile(filepath.Join(t.source, g.dir, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("cannot read the module of %s: %w", g.name, err)
	}
	flags := []string{"-s", "-w"}
	for module, variables := range g.versions {
		version := requiredVersion(string(mod), module)
		if version == "" {
			return "", fmt.Errorf("cannot find the version of %s in the go.mod of %s", module, g.name)
		}
		for _, v := range variables {
			flags = append(flags, "-X", v+"="+version)
		}
	}
	if g.ldflags != "" {
		flags = append(flags, g.ldflags)
	}
	return strings.Join(flags, " "), nil
}

// requiredVersion returns the version of a module that a go.mod requires, or "" if it does not.
func requiredVersion(mod, module string) string {
	for line := range strings.Lines(mod) {
		f := strings.Fields(line)
		if len(f) > 0 && f[0] == "require" {
			f = f[1:]
		}
		if len(f) >= 2 && f[0] == module && strings.HasPrefix(f[1], "v") {
			return f[1]
		}
	}
	return ""
}

// key returns a digest of all that a group's programs depend on. It does not depend on the clone,
// so that all clones of the repository share the cache.
func (t *toolbox) key(g toolGroup) (string, error) {
	flags, err := t.ldflags(g)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintln(h, runtime.Version(), runtime.GOOS, runtime.GOARCH, flags)
	files, err := filepath.Glob(filepath.Join(t.source, g.dir, "*"))
	if err != nil {
		return "", fmt.Errorf("cannot list the module of %s: %w", g.name, err)
	}
	for _, path := range files {
		base := filepath.Base(path)
		if base != "go.mod" && base != "go.sum" && (!strings.HasSuffix(base, ".go") || strings.HasSuffix(base, "_test.go")) {
			continue
		}
		fmt.Fprintln(h, base)
		if err := hashFile(h, path); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:12], nil
}

func hashFile(w io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", path, err)
	}
	defer f.Close()
	if _, err := io.Copy(w, f); err != nil {
		return fmt.Errorf("cannot read %s: %w", path, err)
	}
	return nil
}

func toolNames() []string {
	var out []string
	for _, g := range toolGroups() {
		for _, name := range g.programs {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// toolsCmd is the command tools.
type toolsCmd struct {
	Name []string `arg:"" help:"Tools to build, for example kubectl, helm, crane, crossplane, crossplane-core."`
}

// Run prints the path of each tool as a line.
func (cmd *toolsCmd) Run(ctx context.Context, c *cluster) error {
	if _, err := c.tools.ensure(ctx, cmd.Name...); err != nil {
		return err
	}
	for _, name := range cmd.Name {
		fmt.Println(c.tools.path(name))
	}
	return nil
}
