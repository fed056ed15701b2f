package run

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/engine"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/mysqltest"
)

// Users of the MySQL of startMySQL, with the rights that the owner of a DatabaseCluster's database has, and
// that the user of its backups has.
const (
	ownerUser  = "shop"
	dumperUser = "storeplane_backup"
)

// startMySQL starts a MySQL with databases shop and copies of it. The returned function makes a user the one
// that connects.
func startMySQL(t *testing.T) (*source, func(string)) {
	t.Helper()
	path := mysqltest.Program(t)
	need(t, "mariadb-dump", "mariadb")
	d := daemon(t)
	// A wrapper of a server that is not installed for all users names its own.
	d.User = nil
	data, socket, port := filepath.Join(d.Dir, "data"), filepath.Join(d.Socket, "s"), freePort(t)
	common := []string{"--no-defaults", "--datadir=" + data, "--tmpdir=" + d.Dir}
	if os.Geteuid() == 0 {
		common = append(common, "--user=root")
	}
	init := filepath.Join(d.Socket, "init.sql")
	statements := []string{}
	for _, user := range []string{ownerUser, dumperUser} {
		statements = append(statements, `CREATE USER `+user+`@'%' IDENTIFIED BY 'p4ss:w/rd@%7\\"\'#x'`)
	}
	for _, database := range []string{"shop", "copy_" + ownerUser, "copy_" + dumperUser} {
		statements = append(statements, "CREATE DATABASE "+database, "GRANT ALL ON "+database+".* TO "+ownerUser+"@'%' WITH GRANT OPTION")
	}
	statements = append(statements, "ALTER USER "+dumperUser+`@'%' ATTRIBUTE '{"`+instance.MySQLSystemAttribute+`": "one"}'`)
	statements = append(statements, "GRANT SHOW_ROUTINE ON *.* TO "+dumperUser+"@'%'", "GRANT SELECT, SHOW VIEW, TRIGGER, EVENT ON shop.* TO "+dumperUser+"@'%'")
	must(t, os.WriteFile(init, []byte(strings.Join(statements, ";\n")+";\n"), 0o600))
	must(t, engine.Tool{Name: path, Args: append(common, "--initialize-insecure", "--init-file="+init), Dir: d.Dir, Stdout: discard}.Run(t.Context()))
	s, user := &source{engine: backupv1.MySQL}, ownerUser
	s.uri = func(database string) string {
		if user == dumperUser {
			// Its Secret names no database.
			database = ""
		}
		return fmt.Sprintf("mysql://%s@127.0.0.1:%d/%s", url.UserPassword(user, password), port, url.PathEscape(database))
	}
	s.up = func() {
		must(t, d.Start(t.Context(), discard, accepts(port), path, append(common, "--socket="+socket, "--pid-file="+filepath.Join(d.Dir, "pid"),
			"--bind-address=127.0.0.1", fmt.Sprintf("--port=%d", port), "--mysqlx=OFF", "--secure-file-priv=NULL", "--innodb-buffer-pool-size=32M",
			// As on the servers of a DatabaseCluster.
			"--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--log-bin-trust-function-creators=ON", "--sql-generate-invisible-primary-key=ON")...))
	}
	s.down = d.Kill
	s.up()
	return s, func(u string) { user = u }
}

// TestMySQL: the owner of a database of MySQL, and the user of backups, back it up with what MariaDB does
// not have, and the owner restores all of it.
func TestMySQL(t *testing.T) {
	s, as := startMySQL(t)
	s.data(t, "shop", "load", "--rows=500", "--bulk=2")
	for _, user := range []string{ownerUser, dumperUser} {
		t.Run(user, func(t *testing.T) {
			defer as(ownerUser)
			as(user)
			f := newFixture(t, s, "shop", destinations[backupv1.Volume](t))
			f.succeed(backup.Check)
			// Servers of a DatabaseCluster record with the user of its backups what identifies the data.
			want := map[string]string{dumperUser: "one"}[user]
			if c := f.succeed(backup.Backup).Catalog; c == nil || c.System != want {
				t.Errorf("want a backup of system %q, got %+v", want, c)
			}
			as(ownerUser)
			f.from(s, "copy_"+user)
			f.succeed(backup.Restore)
			if diff := cmp.Diff(strings.Split(s.sums(t, "shop"), "\n"), strings.Split(s.sums(t, "copy_"+user), "\n")); diff != "" {
				t.Errorf("what was restored differs: -want, +got:\n%s", diff)
			}
			as(user)
			f.from(s, "shop")
			// As in an image of MySQL, which has no MariaDB.
			dir := t.TempDir()
			client, err := exec.LookPath("mariadb")
			must(t, err)
			must(t, os.Symlink(client, filepath.Join(dir, "mariadb")))
			must(t, os.Symlink(mysqltest.Program(t), filepath.Join(dir, "mysqld")))
			openUp(t, dir)
			t.Setenv("PATH", dir)
			f.succeed(backup.Verify)
		})
	}
}
