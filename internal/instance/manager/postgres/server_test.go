package postgres

import (
	"bytes"
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
	"time"
)

const testPort = 54329

// binDir of the newest PostgreSQL on this machine.
func binDir(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		// The end-to-end suite does all of this to the image's own PostgreSQL;
		// here it is for who has one, without a cluster.
		t.Skip("no PostgreSQL in /usr/lib/postgresql on this machine")
	}
	return filepath.Dir(slices.Max(found))
}

// command of PostgreSQL's, which refuses to run as root.
func command(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = "/"
	if os.Getuid() == 0 {
		nobody, err := user.Lookup("nobody")
		if err != nil {
			t.Fatalf("PostgreSQL does not run as root, and there is no other user: %v", err)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: number(t, nobody.Uid), Gid: number(t, nobody.Gid)}}
	}
	return cmd
}

func number(t *testing.T, s string) uint32 {
	t.Helper()
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(n)
}

// start a server that lets everybody in over its socket.
func start(t *testing.T) Server {
	t.Helper()
	bin := binDir(t)
	dir := folder(t)
	data := filepath.Join(dir, "data")
	if out, err := command(t, filepath.Join(bin, "initdb"), "-D", data, "-U", Superuser, "--auth=trust", "-E", "UTF8", "--locale=C.UTF-8", "-N").CombinedOutput(); err != nil {
		t.Fatalf("cannot make a server: %v\n%s", err, out)
	}
	return serve(t, dir, data, testPort)
}

// startStandby of a server, with a name.
func startStandby(t *testing.T, of Server, name string) Server {
	t.Helper()
	dir := folder(t)
	data := filepath.Join(dir, "data")
	conninfo := fmt.Sprintf("host=%s port=%d user=%s application_name=%s", of.Socket, of.Port, Superuser, name)
	if out, err := command(t, filepath.Join(binDir(t), "pg_basebackup"), "-D", data, "-R", "-c", "fast", "-d", conninfo).CombinedOutput(); err != nil {
		t.Fatalf("cannot copy a server: %v\n%s", err, out)
	}
	return serve(t, dir, data, of.Port+1)
}

// folder that the server's user may write to.
func folder(t *testing.T) string {
	t.Helper()
	// The path of a socket is short.
	dir, err := os.MkdirTemp("/tmp", "pg") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil { //nolint:gosec // the server is another user
		t.Fatal(err)
	}
	return dir
}

func serve(t *testing.T, dir, data string, port uint16) Server {
	t.Helper()
	var log bytes.Buffer
	server := command(t, filepath.Join(binDir(t), "postgres"), "-D", data, "-k", dir, "-p", strconv.Itoa(int(port)), "-c", "listen_addresses=", "-c", "fsync=off",
		"-c", "log_statement=all", "-c", "log_min_duration_statement=0", "-c", "password_encryption=scram-sha-256")
	server.Stdout, server.Stderr = &log, &log
	// Its own end, at the test's: immediately and with all its processes.
	server.Cancel = func() error { return server.Process.Signal(syscall.SIGQUIT) }
	server.WaitDelay = 10 * time.Second
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGQUIT)
		_ = server.Wait()
		if strings.Contains(log.String(), "SCRAM-SHA-256") {
			t.Error("the server's log has a verifier in it")
		}
	})
	s := Server{Socket: dir, Port: port}
	eventually(t, "the server starts", func() bool { return s.Reload(t.Context()) == nil })
	return s
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("cannot wait any longer until %s", what)
		}
	}
}

// ask for one text.
func ask(t *testing.T, s Server, database, sql string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(binDir(t), "psql"), "-X", "-A", "-t", "-h", s.Socket, "-p", strconv.Itoa(int(s.Port)), "-U", Superuser, "-d", database, "-c", sql)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("cannot ask %q: %v\n%s", sql, err, out)
	}
	return strings.TrimSpace(string(out))
}
