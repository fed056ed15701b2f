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

// installThis installs this release. With unlessInstalled it does so only if packages of another one are
// installed.
func installThis(unlessInstalled bool) error {
	if unlessInstalled {
		other, err := installsOther()
		if err != nil || !other {
			return err
		}
	}
	_, err := run("make", "install", "REGISTRY="+cluster.Registry)
	return err
}

// installsOther reports whether packages of another release of this suite are installed.
func installsOther() (bool, error) {
	installed, err := run("kubectl", "get", "functions.pkg.crossplane.io", "-o", "jsonpath={.items[0].spec.package}")
	if err != nil {
		return false, err
	}
	for _, folder := range []string{beforeFolder, brokenFolder} {
		manifest, err := os.ReadFile(filepath.Join(root, folder, "packages", "install.yaml"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		if strings.Contains(string(manifest), "package: "+installed+"\n") {
			return true, nil
		}
	}
	return false, nil
}
