package postgres

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/storeplane/storeplane/internal/instance/manager/pgdata/pgdatatest"
)

// serve starts a server on a volume that trusts all connections over its socket and logs all
// statements.
func serve(t *testing.T, v *pgdatatest.Volume) Server {
	t.Helper()
	v.Configure("log_statement = all", "log_min_duration_statement = 0", "password_encryption = 'scram-sha-256'")
	v.Start()
	t.Cleanup(func() {
		log, err := os.ReadFile(filepath.Join(v.Dir, "log"))
		if err != nil || strings.Contains(string(log), "SCRAM-SHA-256") {
			t.Errorf("the server's log has a verifier in it, or cannot be read: %v", err)
		}
	})
	return Server{Socket: v.Dir, Port: 5432}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("cannot wait any longer until %s", what)
		}
	}
}

// ask returns the single value of a query as text.
func ask(t *testing.T, s Server, database, sql string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "psql", "-X", "-A", "-t", "-h", s.Socket, "-U", Superuser, "-d", database, "-c", sql)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("cannot ask %q: %v\n%s", sql, err, out)
	}
	return strings.TrimSpace(string(out))
}
