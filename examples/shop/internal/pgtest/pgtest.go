// Package pgtest gives tests a real PostgreSQL: the one that SHOP_TEST_DATABASE_URL names, or a
// throw-away server of the binaries of this machine. Without either, the test is skipped with a
// message.
package pgtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver of DB
)

// startWithin is long enough for a server on a busy machine.
const startWithin = 30 * time.Second

// A Server is a PostgreSQL with an empty database.
type Server struct {
	// URI is that of the empty database.
	URI string

	t       *testing.T
	bin     string
	data    string
	port    int
	cmd     *exec.Cmd
	log     bytes.Buffer
	foreign bool
}

// Start returns a server that is stopped at the end of the test.
func Start(t *testing.T) *Server {
	t.Helper()
	if uri := os.Getenv("SHOP_TEST_DATABASE_URL"); uri != "" {
		return &Server{t: t, URI: database(t, uri), foreign: true}
	}
	bin := findBinaries()
	if bin == "" {
		// The suite core tests the shop with a DatabaseCluster. These tests are for machines that
		// have PostgreSQL, and no cluster.
		t.Skip("there is no PostgreSQL: SHOP_TEST_DATABASE_URL is not set and no postgres binary was found")
	}
	s := &Server{t: t, bin: bin, data: filepath.Join(t.TempDir(), "data")}
	s.init()
	s.Up()
	t.Cleanup(func() { s.Down(syscall.SIGQUIT) })
	return s
}

// Own skips the test t, which may be a part of the test that started the server, if the server must
// not be stopped and started.
func (s *Server) Own(t *testing.T) {
	t.Helper()
	if s.foreign {
		// Other clients may be using it.
		t.Skip("SHOP_TEST_DATABASE_URL names a server that a test must not stop")
	}
	s.t = t
}

func findBinaries() string {
	if path, err := exec.LookPath("postgres"); err == nil {
		return filepath.Dir(path)
	}
	// Debian keeps servers of several versions off the PATH.
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if len(found) == 0 {
		return ""
	}
	return filepath.Dir(found[len(found)-1])
}

func (s *Server) init() {
	s.t.Helper()
	if err := os.Mkdir(s.data, 0o700); err != nil {
		s.t.Fatalf("cannot make the data directory: %v", err)
	}
	// PostgreSQL refuses to run as root, and another user must reach its data.
	if c := credential(s.t); c != nil {
		if err := os.Chown(s.data, int(c.Uid), int(c.Gid)); err != nil {
			s.t.Fatalf("cannot hand over the data directory: %v", err)
		}
		above := filepath.Dir(filepath.Dir(s.data))
		if err := os.Chmod(above, 0o755); err != nil { //nolint:gosec // It holds nothing but this data directory.
			s.t.Fatalf("cannot open the test's directory: %v", err)
		}
	}
	out, err := s.command("initdb", "--pgdata", s.data, "--username", "shop", "--auth", "trust", "--encoding", "UTF8", "--no-sync").CombinedOutput()
	if err != nil {
		s.t.Fatalf("cannot make a database cluster: %v\n%s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatalf("cannot find a free port: %v", err)
	}
	s.port = l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	s.URI = fmt.Sprintf("postgres://shop@127.0.0.1:%d/postgres", s.port)
}

func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir = s.data
	cmd.Env = []string{"LC_ALL=C.UTF-8", "PATH=" + s.bin + ":/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: credential(s.t)}
	return cmd
}

// credential returns the user to run the server as, nil for the current one.
func credential(t *testing.T) *syscall.Credential {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatalf("cannot read the user %s: %v", name, err)
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	// PostgreSQL refuses to run as root, and files of a user without an entry cannot be made here. The
	// suite core tests the shop with a DatabaseCluster in any case.
	t.Skip("neither user postgres nor user nobody exists to run PostgreSQL as")
	return nil
}

// Up starts the server and waits until it takes connections.
func (s *Server) Up() {
	s.t.Helper()
	s.cmd = s.command("postgres", "-D", s.data, "-p", strconv.Itoa(s.port),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "max_connections=60")
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatalf("cannot start PostgreSQL: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := pgx.Connect(ctx, s.URI)
		if err == nil {
			_ = conn.Close(ctx)
			return
		}
		select {
		case <-ctx.Done():
			s.Down(syscall.SIGQUIT)
			s.t.Fatalf("cannot reach PostgreSQL: %v\n%s", err, s.log.String())
		case <-tick.C:
		}
	}
}

// Down ends the server: SIGINT ends its connections first, SIGQUIT is a crash.
func (s *Server) Down(sig os.Signal) {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Signal(sig)
	_ = s.cmd.Wait()
	s.cmd = nil
}

// DB returns connections to the database, which the caller closes.
func (s *Server) DB() *sql.DB {
	s.t.Helper()
	db, err := sql.Open("pgx", s.URI)
	if err != nil {
		s.t.Fatal("cannot open the database: its URI cannot be parsed")
	}
	return db
}

// database creates an empty database for this test on the server at uri.
func database(t *testing.T, uri string) string {
	t.Helper()
	u, err := url.Parse(uri)
	if err != nil {
		t.Fatal("cannot parse SHOP_TEST_DATABASE_URL: it should be a URI with one host")
	}
	name := "shop_test_" + strings.ToLower(rand.Text()[:12])
	run := func(sql string) {
		ctx, cancel := context.WithTimeout(context.Background(), startWithin)
		defer cancel()
		conn, err := pgx.Connect(ctx, uri)
		if err != nil {
			t.Fatalf("cannot connect to SHOP_TEST_DATABASE_URL: %v", err)
		}
		defer func() { _ = conn.Close(ctx) }()
		if _, err := conn.Exec(ctx, sql); err != nil {
			t.Fatalf("cannot prepare the test's database: %v", err)
		}
	}
	run("CREATE DATABASE " + name)
	t.Cleanup(func() { run("DROP DATABASE " + name + " WITH (FORCE)") })
	u.Path = "/" + name
	return u.String()
}
