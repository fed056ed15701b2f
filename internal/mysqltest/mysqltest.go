// Package mysqltest finds the MySQL that tests use.
package mysqltest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Program returns the path of MySQL's server: that which MYSQLD names, or else the mysqld on the PATH. It
// skips the test where neither is MySQL 9. Debian's stable release has none, so such tests are for
// developers who have one; the end-to-end suite mysql tests the same with the image of a DatabaseCluster.
func Program(t *testing.T) string {
	t.Helper()
	name := os.Getenv("MYSQLD")
	if name == "" {
		name = "mysqld"
	}
	// MariaDB's server has the same name.
	version, err := exec.CommandContext(t.Context(), name, "--version").Output() //nolint:gosec // The tester names it.
	if err != nil || !strings.Contains(string(version), "Ver 9.") {
		t.Skip("there is no MySQL 9: MYSQLD does not name its server and no mysqld was found on the PATH")
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("cannot find %s: %v", name, err)
	}
	return path
}
