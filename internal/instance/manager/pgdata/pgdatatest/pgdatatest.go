// Package pgdatatest creates volumes with the files of PostgreSQL, for tests.
package pgdatatest

import (
	"errors"
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

	"github.com/storeplane/storeplane/internal/instance"
)

// Volume is the volume of a server, which may run on it.
type Volume struct {
	// Dir is the directory of the volume, and Data the data directory on it.
	Dir, Data string

	t    *testing.T
	bin  string
	port int
}

// BinDir returns the directory of the newest PostgreSQL's programs on this machine. Without
// one it skips the test.
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

// New returns a volume with nothing on it.
func New(t *testing.T) *Volume {
	t.Helper()
	bin := BinDir(t)
	if !strings.HasPrefix(os.Getenv("PATH"), bin) {
		t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	}
	// The path of a socket must be short.
	dir, err := os.MkdirTemp("/tmp", "pg") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil { //nolint:gosec // the server is another user
		t.Fatal(err)
	}
	v := &Volume{Dir: dir, Data: filepath.Join(dir, instance.DataFolder), t: t, bin: bin, port: instance.PostgreSQLPort}
	t.Cleanup(func() {
		_ = v.command("pg_ctl", "stop", "-D", v.Data, "-m", "immediate").Run()
		_ = os.RemoveAll(dir)
	})
	return v
}

// Begin initializes a database, which counts as one that a server has run with.
func (v *Volume) Begin() *Volume {
	v.t.Helper()
	v.Run("initdb", "-D", v.Data, "-U", "postgres", "--auth=trust", "-k", "-E", "UTF8", "--locale=C.UTF-8", "-N")
	v.Configure("wal_log_hints = on", "fsync = off", "listen_addresses = ''", "max_wal_senders = 10", "unix_socket_directories = '"+v.Dir+"'")
	options := filepath.Join(v.Data, "postmaster.opts")
	if err := errors.Join(os.WriteFile(options, nil, 0o600), os.Chmod(options, 0o666)); err != nil { //nolint:gosec // the server is another user
		v.t.Fatal(err)
	}
	return v
}

// Configure appends lines to the server's configuration.
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

// Copy copies a running server, to follow it.
func (v *Volume) Copy(of *Volume) *Volume {
	v.t.Helper()
	v.Run("pg_basebackup", "-D", v.Data, "-R", "-c", "fast", "-d", of.Conninfo())
	v.Configure("unix_socket_directories = '"+v.Dir+"'", "primary_conninfo = '"+strings.ReplaceAll(of.Conninfo(), "'", "")+"'")
	return v
}

// Conninfo returns the connection string of the server.
func (v *Volume) Conninfo() string {
	return fmt.Sprintf("host=%s port=%d user=postgres dbname=postgres", v.Dir, v.port)
}

// Start starts the server.
func (v *Volume) Start() *Volume {
	v.t.Helper()
	v.Run("pg_ctl", "start", "-w", "-s", "-D", v.Data, "-l", filepath.Join(v.Dir, "log"), "-o", "-p "+strconv.Itoa(v.port))
	return v
}

// Stop stops the server in a mode: fast, or immediate, which is like a crash.
func (v *Volume) Stop(mode string) *Volume {
	v.t.Helper()
	v.Run("pg_ctl", "stop", "-w", "-s", "-D", v.Data, "-m", mode)
	return v
}

// Promote promotes the server.
func (v *Volume) Promote() *Volume {
	v.t.Helper()
	v.Run("pg_ctl", "promote", "-w", "-s", "-D", v.Data)
	return v
}

// Ask runs a query and returns its result as text.
func (v *Volume) Ask(sql string) string {
	v.t.Helper()
	return v.Run("psql", "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-d", v.Conninfo(), "-c", sql)
}

// Run runs one of PostgreSQL's programs and returns its output.
func (v *Volume) Run(name string, args ...string) string {
	v.t.Helper()
	cmd := v.command(name, args...)
	out, err := os.CreateTemp(v.t.TempDir(), name)
	if err != nil {
		v.t.Fatal(err)
	}
	// A server that keeps running would hold a pipe open.
	cmd.Stdout, cmd.Stderr = out, out
	err = cmd.Run()
	said, rerr := os.ReadFile(out.Name())
	_ = out.Close()
	if err != nil || rerr != nil {
		v.t.Fatalf("cannot run %s %v: %v\n%s", name, args, err, said)
	}
	return strings.TrimSpace(string(said))
}

// Begins starts one of PostgreSQL's programs and returns a function that kills it.
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

// As returns the command line that runs one of PostgreSQL's programs as the server's user.
func (v *Volume) As(name string, args ...string) []string {
	line := append([]string{filepath.Join(v.bin, name)}, args...)
	if as := v.command(name).SysProcAttr; as != nil {
		id := as.Credential
		line = append([]string{"setpriv", "--reuid=" + strconv.Itoa(int(id.Uid)), "--regid=" + strconv.Itoa(int(id.Gid)), "--clear-groups", "--"}, line...)
	}
	return line
}

// command returns a command of PostgreSQL, as another user if this one is root, as which
// PostgreSQL refuses to run.
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
