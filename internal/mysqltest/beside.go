package mysqltest

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// Beside returns the path of another program of MySQL: in the folder of its server, or on the PATH. It skips the test
// where there is none.
func Beside(t *testing.T, name string) string {
	t.Helper()
	if path, err := exec.LookPath(filepath.Join(filepath.Dir(Program(t)), name)); err == nil {
		return path
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("there is no %s: it is neither beside MySQL's server nor on the PATH", name)
	}
	return path
}
