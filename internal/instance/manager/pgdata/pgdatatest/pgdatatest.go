// Package pgdatatest makes volumes with what PostgreSQL writes there, for tests.
package pgdatatest

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Volume of a server that may run on it.
type Volume struct {
	// Dir of the volume, and Data on it.
	Dir, Data string

	t    *testing.T
	bin  string
	port int
}

// BinDir of the newest PostgreSQL on this machine, without which the test is skipped.
func BinDir(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		// The end-to-end suite has the image's own PostgreSQL.
		t.Skip("no PostgreSQL in /usr/lib/postgresql on this machine")
	}
	return filepath.Dir(slices.Max(found))
}

// New volume with nothing on it.
func New(t *testing.T) *Volume {
	t.Helper()
	bin := BinDir(t)
	if !strings.HasPrefix(os.Getenv("PATH"), bin) {
		t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	}
	// The path of a socket is short.
	dir, err := os.MkdirTemp("/tmp", "pg") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil { //nolint:gosec // the server is another user
		t.Fatal(err)
	}
	v := &Volume{Dir: dir, Data: filepath.Join(dir, "pgdata"), t: t, bin: bin, port: 5432}
	t.Cleanup(func() {
		_ = v.command("pg_ctl", "stop", "-D", v.Data, "-m", "immediate").Run()
		_ = os.RemoveAll(dir)
	})
	return v
}

// Begin a database.
func (v *Volume) Begin() *Volume {
	v.t.Helper()
	v.Run("initdb", "-D", v.Data, "-U", "postgres", "--auth=trust", "-k", "-E", "UTF8", "--locale=C.UTF-8", "-N")
	v.Configure("wal_log_hints = on", "fsync = off", "listen_addresses = ''", "max_wal_senders = 10", "unix_socket_directories = '"+v.Dir+"'")
	return v
}

// Configure the server.
func (v *Volume) Configure(lines ...string) {
	v.t.Helper()
	f, err := os.OpenFile(filepath.Join(v.Data, "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		v.t.Fatal(err)
	}
	_, err = f.WriteString("\n" + strings.Join(lines, "\n") + "\n")
	if cerr := f.Close(); err != nil || cerr != nil {
		v.t.Fatal(err, cerr)
	}
}

// Copy a server that runs, to follow it.
func (v *Volume) Copy(of *Volume) *Volume {
	v.t.Helper()
	v.Run("pg_basebackup", "-D", v.Data, "-R", "-c", "fast", "-d", of.Conninfo())
	v.Configure("unix_socket_directories = '"+v.Dir+"'", "primary_conninfo = '"+strings.ReplaceAll(of.Conninfo(), "'", "")+"'")
	return v
}

// Conninfo of the server.
func (v *Volume) Conninfo() string {
	return fmt.Sprintf("host=%s port=%d user=postgres dbname=postgres", v.Dir, v.port)
}

// Start the server.
func (v *Volume) Start() *Volume {
	v.t.Helper()
	v.Run("pg_ctl", "start", "-w", "-s", "-D", v.Data, "-l", filepath.Join(v.Dir, "log"), "-o", "-p "+strconv.Itoa(v.port))
	return v
}

// Stop the server: fast, or immediate as a crash.
func (v *Volume) Stop(mode string) *Volume {
	v.t.Helper()
	v.Run("pg_ctl", "stop", "-w", "-s", "-D", v.Data, "-m", mode)
	return v
}

// Promote the server.
func (v *Volume) Promote() *Volume {
	v.t.Helper()
	v.Run("pg_ctl", "promote", "-w", "-s", "-D", v.Data)
	return v
}

// Ask for one text.
func (v *Volume) Ask(sql string) string {
	v.t.Helper()
	return v.Run("psql", "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-d", v.Conninfo(), "-c", sql)
}

// Run one of PostgreSQL's programs, and return what it says.
func (v *Volume) Run(name string, args ...string) string {
	v.t.Helper()
	cmd := v.command(name, args...)
	out, err := os.CreateTemp(v.t.TempDir(), name)
	if err != nil {
		v.t.Fatal(err)
	}
	// A server that goes on would hold a pipe.
	cmd.Stdout, cmd.Stderr = out, out
	err = cmd.Run()
	said, rerr := os.ReadFile(out.Name())
	_ = out.Close()
	if err != nil || rerr != nil {
		v.t.Fatalf("cannot run %s %v: %v\n%s", name, args, err, said)
	}
	return strings.TrimSpace(string(said))
}

// Begins one of PostgreSQL's programs, and returns what kills it.
func (v *Volume) Begins(name string, args ...string) (kill func()) {
	v.t.Helper()
	cmd := v.command(name, args...)
	if err := cmd.Start(); err != nil {
		v.t.Fatal(err)
	}
	return func() {
		v.t.Helper()
		if err := cmd.Process.Kill(); err != nil {
			v.t.Fatal(err)
		}
		_ = cmd.Wait()
	}
}

// As is a command line for one of PostgreSQL's programs as the server's user.
func (v *Volume) As(name string, args ...string) []string {
	line := append([]string{filepath.Join(v.bin, name)}, args...)
	if as := v.command(name).SysProcAttr; as != nil {
		id := as.Credential
		line = append([]string{"setpriv", "--reuid=" + strconv.Itoa(int(id.Uid)), "--regid=" + strconv.Itoa(int(id.Gid)), "--clear-groups", "--"}, line...)
	}
	return line
}

// command of PostgreSQL's, which refuses to run as root.
func (v *Volume) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(v.bin, name), args...) //nolint:gosec,noctx // PostgreSQL's own; a cleanup has no context
	cmd.Dir = "/"
	if os.Getuid() != 0 {
		return cmd
	}
	other, err := user.Lookup("nobody")
	if err != nil {
		v.t.Fatalf("PostgreSQL does not run as root, and there is no other user: %v", err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: v.number(other.Uid), Gid: v.number(other.Gid)}}
	return cmd
}

func (v *Volume) number(s string) uint32 {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		v.t.Fatal(err)
	}
	return uint32(n)
}
