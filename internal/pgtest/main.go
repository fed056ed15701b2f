// Package pgtest runs tests with a local PostgreSQL. It is for tests only.
package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// user runs the tests that root starts: PostgreSQL refuses to run as root.
const user = 65534

// SmallVariable is the environment variable with the folder of a volume of 64 MiB, for tests of a
// full volume. Only root can mount one.
const SmallVariable = "SMALL_VOLUME"

// Main runs tests with PostgreSQL's programs in PATH, as a user that these accept, and returns the
// exit code.
func Main(m *testing.M) int {
	if dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin"); len(dirs) > 0 {
		_ = os.Setenv("PATH", slices.Max(dirs)+":"+os.Getenv("PATH"))
	}
	if os.Geteuid() != 0 {
		return m.Run()
	}
	code, err := asUser()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// asUser runs the tests again, as a user other than root.
func asUser() (int, error) {
	dir, err := os.MkdirTemp("", "pgtest")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program, err := os.ReadFile(os.Args[0]) //nolint:gosec // it is this program itself
	if err != nil {
		return 0, err
	}
	self := filepath.Join(dir, "test")
	if err := os.WriteFile(self, program, 0o755); err != nil { //nolint:gosec // the other user runs it
		return 0, err
	}
	if err := os.Chown(dir, user, user); err != nil {
		return 0, err
	}
	small := filepath.Join(dir, "small")
	if err := os.Mkdir(small, 0o700); err != nil {
		return 0, err
	}
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, fmt.Sprintf("size=64m,uid=%d,gid=%d,mode=0700", user, user)); err == nil {
		defer func() { _ = syscall.Unmount(small, 0) }()
		_ = os.Setenv(SmallVariable, small)
	}
	// The files that these flags of go test name belong to root.
	args := slices.DeleteFunc(slices.Clone(os.Args[1:]), func(a string) bool { return strings.HasPrefix(a, "-test.testlogfile") || strings.Contains(a, "cover") })
	cmd := exec.Command(self, args...) //nolint:noctx,gosec // it is this program itself
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
	err = cmd.Run()
	exit := &exec.ExitError{}
	if errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// Need fails the test if a program is not installed, and skips it where -short is set.
func Need(t testing.TB, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err == nil {
			continue
		}
		if !testing.Short() {
			t.Fatalf("%s is not installed: go run ./test/cluster packages does it", p)
		}
		// Programs that cannot be installed without root are tested by make test-full.
		t.Skipf("%s is not installed", p)
	}
}
