// Package pgtest runs tests beside a PostgreSQL of this machine. It is for tests
// alone.
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

// nobody runs PostgreSQL where the tests are root's: it refuses to be.
const nobody = 65534

// SmallVariable names the environment variable with the folder of a volume of 64
// MiB, for tests of what happens when one is full. Only root can mount one.
const SmallVariable = "SMALL_VOLUME"

// Main runs tests with PostgreSQL's programs in the path, as a user that they
// accept, and returns what to exit with.
func Main(m *testing.M) int {
	if dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin"); len(dirs) > 0 {
		_ = os.Setenv("PATH", slices.Max(dirs)+":"+os.Getenv("PATH"))
	}
	if os.Geteuid() != 0 {
		return m.Run()
	}
	code, err := asNobody()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// asNobody runs the tests again, as a user that is not root.
func asNobody() (int, error) {
	dir, err := os.MkdirTemp("", "pgtest")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		return 0, err
	}
	self := filepath.Join(dir, "test")
	if err := os.WriteFile(self, program, 0o755); err != nil { //nolint:gosec // the other user runs it
		return 0, err
	}
	if err := os.Chown(dir, nobody, nobody); err != nil {
		return 0, err
	}
	small := filepath.Join(dir, "small")
	if err := os.Mkdir(small, 0o700); err != nil {
		return 0, err
	}
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, fmt.Sprintf("size=64m,uid=%d,gid=%d,mode=0700", nobody, nobody)); err == nil {
		defer func() { _ = syscall.Unmount(small, 0) }()
		_ = os.Setenv(SmallVariable, small)
	}
	// Files that go test wants are root's.
	args := slices.DeleteFunc(slices.Clone(os.Args[1:]), func(a string) bool { return strings.HasPrefix(a, "-test.testlogfile") || strings.Contains(a, "cover") })
	cmd := exec.Command(self, args...) //nolint:noctx // it is this very program
	cmd.Env = append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	err = cmd.Run()
	exit := &exec.ExitError{}
	if errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// Need programs, or skip the test where only a part of the tests runs.
func Need(t testing.TB, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err == nil {
			continue
		}
		if !testing.Short() {
			t.Fatalf("%s is not installed: go run ./test/cluster packages does it", p)
		}
		// What cannot be installed without root is left to make test-full.
		t.Skipf("%s is not installed", p)
	}
}
