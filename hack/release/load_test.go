// Package release tests the scripts and the README of a release.
package release

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const folder = "../../package/release"

// TestLoad: load.sh checks the archives with what a machine has, and pushes them with skopeo. The
// PATH has nothing but what is listed, and a script that prints its arguments replaces skopeo.
func TestLoad(t *testing.T) {
	const damaged = "load: an image or a signature is not the one of this release: copy the folder again"
	cases := map[string]struct {
		reason   string
		sums     string
		registry string
		flags    []string
		damage   bool
		pushes   string
		want     string
	}{
		"ShortOptions": {reason: "busybox and macOS have no --check --quiet.", sums: "sha256sum", registry: "registry.company.com/a", pushes: "registry.company.com/a"},
		"Shasum":       {reason: "macOS before 15 has shasum alone.", sums: "shasum", registry: "registry.company.com/a", pushes: "registry.company.com/a"},
		"NoSums":       {reason: "What cannot be checked is not pushed.", registry: "registry.company.com/a", want: "load: neither sha256sum nor shasum is on the PATH: install one of them"},
		"Damaged":      {reason: "A damaged archive is not pushed.", sums: "sha256sum", registry: "registry.company.com/a", damage: true, want: damaged},
		"DamagedMac":   {reason: "A damaged archive is not pushed.", sums: "shasum", registry: "registry.company.com/a", damage: true, want: damaged},
		"Localhost":    {reason: "A registry on this machine has no TLS.", sums: "sha256sum", registry: "localhost:5001/a", pushes: "--dest-tls-verify=false localhost:5001/a"},
		"Loopback":     {reason: "A registry on this machine has no TLS.", sums: "sha256sum", registry: "127.0.0.1:5001/a/", pushes: "--dest-tls-verify=false 127.0.0.1:5001/a"},
		"NotLocalhost": {reason: "A name that begins with localhost is another one.", sums: "sha256sum", registry: "localhost.company.com/a", pushes: "localhost.company.com/a"},
		"Flags":        {reason: "The last flag counts for skopeo, which is the user's.", sums: "sha256sum", registry: "localhost:5001/a", flags: []string{"--dest-tls-verify=true"}, pushes: "--dest-tls-verify=false --dest-tls-verify=true localhost:5001/a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir, bin := t.TempDir(), t.TempDir()
			copyTo(t, filepath.Join(dir, "load.sh"), filepath.Join(folder, "load.sh"))
			write(t, filepath.Join(dir, "images/redis/8-v9.8.7.tar"), "image")
			write(t, filepath.Join(dir, "signatures/redis/sha256-0.sig.tar"), "signature")
			write(t, filepath.Join(dir, "SHA256SUMS"), fmt.Sprintf("%x  images/redis/8-v9.8.7.tar\n%x  signatures/redis/sha256-0.sig.tar\n%x  README.md\n", sha256.Sum256([]byte("image")), sha256.Sum256([]byte("signature")), 0))
			if tc.damage {
				write(t, filepath.Join(dir, "images/redis/8-v9.8.7.tar"), "cut off")
			}
			for _, tool := range []string{"bash", "basename", "dirname", "grep", "mkdir", "mktemp", "rm", "tar"} {
				link(t, bin, tool)
			}
			program(t, filepath.Join(bin, "skopeo"), "shift 4\necho \"$@\"")
			// perl, which runs shasum, is found by its path.
			switch tc.sums {
			case "sha256sum":
				program(t, filepath.Join(bin, "sha256sum"), `case "$*" in *--* | *-) echo "sha256sum: unrecognized option $*" >&2; exit 1 ;; esac
exec `+path(t, "sha256sum")+` "$@"`)
			case "shasum":
				link(t, bin, "shasum")
			}
			cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "bash"), append([]string{filepath.Join(dir, "load.sh"), tc.registry}, tc.flags...)...)
			cmd.Env = []string{"PATH=" + bin, "TMPDIR=" + t.TempDir()}
			var stderr strings.Builder
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			var pushed string
			if tc.want == "" {
				before, registry := "", tc.pushes
				if i := strings.LastIndex(tc.pushes, " "); i >= 0 {
					before, registry = tc.pushes[:i+1], tc.pushes[i+1:]
				}
				pushed = before + "oci-archive:images/redis/8-v9.8.7.tar docker://" + registry + "/redis:8-v9.8.7\n" +
					before + "oci-archive:signatures/redis/sha256-0.sig.tar docker://" + registry + "/redis:sha256-0.sig\n"
			}
			if diff := cmp.Diff(pushed, string(out)); diff != "" {
				t.Errorf("%s\npushed: -want, +got:\n%s", tc.reason, diff)
			}
			if (err != nil) != (tc.want != "") || !strings.Contains(stderr.String(), tc.want) {
				t.Errorf("%s\nwant %q, got %v: %s", tc.reason, tc.want, err, stderr.String())
			}
		})
	}
}

func path(t *testing.T, tool string) string {
	t.Helper()
	found, err := exec.LookPath(tool)
	if err != nil {
		// shasum comes with perl, which a machine may not have. All others are Debian's essential ones.
		t.Skipf("%s is not on the PATH: %v", tool, err)
	}
	return found
}

func link(t *testing.T, bin, tool string) {
	t.Helper()
	if err := os.Symlink(path(t, tool), filepath.Join(bin, tool)); err != nil {
		t.Fatal(err)
	}
}

// program writes an executable script that replaces another program.
func program(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func copyTo(t *testing.T, to, from string) {
	t.Helper()
	write(t, to, read(t, from))
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
