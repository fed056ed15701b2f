package mysql

import (
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/storeplane/storeplane/internal/backup/engine"
	"github.com/storeplane/storeplane/internal/mysqltest"
)

// TestThrowAwayMySQL: MySQL serves as the throw-away server too, and a database is restored into it.
func TestThrowAwayMySQL(t *testing.T) {
	program := mysqltest.Program(t)
	if _, err := exec.LookPath("mariadb"); err != nil {
		t.Skip("there is no mariadb on this machine: go run ./test/cluster packages installs it")
	}
	d, err := engine.NewDaemon("", "")
	if err != nil {
		t.Fatalf("NewDaemon(): %v", err)
	}
	t.Cleanup(d.Stop)
	if err := mySQL(program).serve(t.Context(), d, io.Discard); err != nil {
		t.Fatalf("serve(): %v", err)
	}
	s, err := at(d.Socket, io.Discard)
	if err != nil {
		t.Fatalf("at(): %v", err)
	}
	t.Cleanup(s.Close)
	version, err := s.Version(t.Context())
	if err != nil || !strings.HasPrefix(version, "9.") {
		t.Errorf("Version(): want one of MySQL 9, got %q: %v", version, err)
	}
	// What MariaDB does not have.
	dump := "CREATE TABLE t (word varchar(20) COLLATE utf8mb4_0900_ai_ci, UNIQUE KEY ((lower(word))));\nINSERT INTO t VALUES\n('a'),\n('b');\n"
	if err := s.Restore(t.Context(), "", "shop", strings.NewReader(dump)); err != nil {
		t.Errorf("Restore(): %v", err)
	}
	got, err := s.Count(t.Context(), "shop")
	if err != nil || got["t"] != 2 {
		t.Errorf("Count(): want 2 rows in t, got %v: %v", got, err)
	}
}
