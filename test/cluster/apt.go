package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// debianPackage is a Debian package that is installed if found returns false. found checks
// whether what the package provides is on this machine.
type debianPackage struct {
	name  string
	found func() bool
}

// clusterPackages returns all Debian packages that the cluster needs.
func clusterPackages() []debianPackage {
	return []debianPackage{
		{"containerd", hasProgram("containerd")},
		{"runc", hasProgram("runc")},
		{"containernetworking-plugins", func() bool { return cniPlugins() != "" }},
		{"nftables", hasProgram("nft")},
		{"iptables", hasProgram("iptables")},
		{"ipset", hasProgram("ipset")},
		{"iproute2", hasProgram("ip")},
		{"buildah", hasProgram("buildah")},
		{"debootstrap", hasProgram("debootstrap")},
	}
}

// imagePackages returns those of clusterPackages that are needed to build images.
func imagePackages() []debianPackage {
	return slices.DeleteFunc(clusterPackages(), func(p debianPackage) bool { return p.name != "buildah" && p.name != "debootstrap" })
}

// testPackages returns the servers and tools that the long tests run on this machine itself,
// without a cluster.
func testPackages() []debianPackage {
	return []debianPackage{
		{"postgresql", hasFile("/usr/lib/postgresql/*/bin/initdb")},
		{"pgbackrest", hasProgram("pgbackrest")},
		{"mariadb-server-core", hasFile("/usr/sbin/mariadbd")},
		{"mariadb-client", hasProgram("mariadb-dump")},
		{"nodejs", hasProgram("node")},
		{"npm", hasProgram("npm")},
		{"age", hasProgram("age")},
		{"zstd", hasProgram("zstd")},
		{"jq", hasProgram("jq")},
	}
}

// packagesCmd is the command packages.
type packagesCmd struct{}

// Run installs the missing packages of the long tests and prints which ones it installed.
func (*packagesCmd) Run(ctx context.Context, c *cluster) error {
	said, err := installPackages(ctx, c.buildLog("apt"), testPackages())
	if err != nil {
		return err
	}
	fmt.Println("Debian packages of the long tests: " + said)
	return nil
}

// installPackages installs those of the wanted packages that are missing, logs to the file log,
// and returns a note for the user.
func installPackages(ctx context.Context, log string, wanted []debianPackage) (string, error) {
	var missing []string
	for _, p := range wanted {
		if !p.found() {
			missing = append(missing, p.name)
		}
	}
	if len(missing) == 0 {
		return "all installed", nil
	}
	list := strings.Join(missing, " ")
	if _, err := exec.LookPath("apt-get"); err != nil {
		return "", fmt.Errorf("cannot install %s: this system has no apt-get, install what provides them by hand", list)
	}
	defer ticker("installing Debian packages: " + list)()
	env := []string{"DEBIAN_FRONTEND=noninteractive"}
	if _, err := run(ctx, command{env: env, log: log, argv: []string{"apt-get", "update"}}); err != nil {
		return "", fmt.Errorf("cannot update the package lists: %w", err)
	}
	argv := append([]string{"apt-get", "install", "--yes", "--no-install-recommends"}, missing...)
	if _, err := run(ctx, command{env: env, log: log, argv: argv}); err != nil {
		return "", fmt.Errorf("cannot install %s: %w", list, err)
	}
	return "installed " + list, nil
}

func hasProgram(name string) func() bool {
	return func() bool {
		_, err := exec.LookPath(name)
		return err == nil
	}
}

func hasFile(pattern string) func() bool {
	return func() bool {
		found, err := filepath.Glob(pattern)
		return err == nil && len(found) > 0
	}
}

// cniPlugins returns the folder of the network plugins, or "" if there is none.
func cniPlugins() string {
	for _, dir := range []string{"/usr/lib/cni", "/opt/cni/bin"} {
		if exists(filepath.Join(dir, "bridge")) && exists(filepath.Join(dir, "portmap")) {
			return dir
		}
	}
	return ""
}

// mirrorVariable is the environment variable that sets the Debian mirror. It is needed where
// apt's own sources list none, on a system that is not Debian.
const mirrorVariable = "STOREPLANE_DEBIAN_MIRROR"

// debianMirror returns the address in mirrorVariable if that is set, and else the mirror that
// this machine's apt uses.
func debianMirror() (string, error) {
	if m := os.Getenv(mirrorVariable); m != "" {
		return m, nil
	}
	files := []string{"/etc/apt/sources.list"}
	for _, pattern := range []string{"*.list", "*.sources"} {
		more, err := filepath.Glob(filepath.Join("/etc/apt/sources.list.d", pattern))
		if err != nil {
			return "", fmt.Errorf("cannot list apt's sources: %w", err)
		}
		files = append(files, more...)
	}
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if m := mirrorIn(string(b), strings.HasSuffix(path, ".sources")); m != "" {
			return m, nil
		}
	}
	return "", errors.New("cannot find a Debian mirror in apt's sources: set " + mirrorVariable + " to the address of one")
}

// aptSource is one entry of apt's sources, with the fields that mirrorIn needs.
type aptSource struct {
	types, uris, suites, components []string
	disabled                        bool
}

// mirrorIn returns the first mirror of the Debian archive itself, not of its updates nor of
// another archive, in a file of apt's sources, or "" if there is none.
func mirrorIn(content string, deb822 bool) string {
	sources := oneLineSources(content)
	if deb822 {
		sources = deb822Sources(content)
	}
	for _, s := range sources {
		if s.disabled || !slices.Contains(s.types, "deb") || !slices.Contains(s.components, "main") || !slices.ContainsFunc(s.suites, isDebianSuite) {
			continue
		}
		for _, uri := range s.uris {
			if scheme, _, ok := strings.Cut(uri, "://"); ok && slices.Contains([]string{"http", "https", "ftp"}, scheme) {
				return uri
			}
		}
	}
	return ""
}

func isDebianSuite(suite string) bool {
	return slices.Contains([]string{"bullseye", "bookworm", "trixie", "forky", "duke", "sid", "oldstable", "stable", "testing", "unstable"}, suite)
}

func oneLineSources(content string) []aptSource {
	var out []aptSource
	for line := range strings.Lines(content) {
		line, _, _ = strings.Cut(line, "#")
		if before, rest, ok := strings.Cut(line, "["); ok {
			_, after, _ := strings.Cut(rest, "]")
			line = before + after
		}
		f := strings.Fields(line)
		if len(f) < 4 {
			continue
		}
		out = append(out, aptSource{types: f[:1], uris: f[1:2], suites: f[2:3], components: f[3:]})
	}
	return out
}

func deb822Sources(content string) []aptSource {
	var out []aptSource
	var s aptSource
	var field string
	add := func(value string) {
		words := strings.Fields(value)
		switch field {
		case "types":
			s.types = append(s.types, words...)
		case "uris":
			s.uris = append(s.uris, words...)
		case "suites":
			s.suites = append(s.suites, words...)
		case "components":
			s.components = append(s.components, words...)
		case "enabled":
			s.disabled = slices.Contains([]string{"no", "false", "without", "off", "disable"}, strings.TrimSpace(value))
		}
	}
	for line := range strings.Lines(content) {
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.TrimSpace(line) == "":
			out = append(out, s)
			s, field = aptSource{}, ""
		case line[0] == ' ' || line[0] == '\t': // continues the field above
			add(line)
		default:
			name, value, _ := strings.Cut(line, ":")
			field = strings.ToLower(strings.TrimSpace(name))
			add(value)
		}
	}
	return append(out, s)
}
