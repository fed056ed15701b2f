//go:build e2e

package upgrade

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	root = "../../.."

	// before is the commit of the previous release. As there is none yet, it is the newest commit
	// whose claims have maintenance windows, without which an upgrade replaces all pods at once.
	before = "3110d8c"

	beforeFolder = "_out/before"
)

// run runs a command in the root of the repository and returns its standard output.
func run(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...) //nolint:noctx // the programs end with the suite
	cmd.Dir = root
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w:\n%s", name, strings.Join(args, " "), err, tail(errs.String()))
	}
	return out.String(), nil
}

// tail returns the end of a long text.
func tail(text string) string {
	const most = 4000
	return text[max(0, len(text)-most):]
}

func buildBefore() error {
	_, err := run("hack/before.sh", before, beforeFolder)
	return err
}

func installBefore() error {
	_, err := run("hack/install.sh", beforeFolder+"/packages")
	return err
}

// installThis installs this release, unless unlessInstalled is true and it is installed.
func installThis(unlessInstalled bool) error {
	if unlessInstalled {
		is, err := isInstalled()
		if err != nil || is {
			return err
		}
	}
	_, err := run("make", "install", "REGISTRY="+cluster.Registry)
	return err
}

// isInstalled reports whether all installed functions and providers are of the packages that were built last
// from this tree.
func isInstalled() (bool, error) {
	manifest, err := os.ReadFile(filepath.Join(root, "_out", "packages", "install.yaml"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	installed, failed := run("kubectl", "get", "functions.pkg.crossplane.io,providers.pkg.crossplane.io,configurations.pkg.crossplane.io", "-o", `jsonpath={range .items[*]}{.spec.package}{"\n"}{end}`)
	if err := errors.Join(err, failed); err != nil {
		return false, err
	}
	for name := range strings.Lines(installed) {
		if !strings.Contains(string(manifest), "package: "+name) {
			return false, nil
		}
	}
	return true, nil
}
