// Package mysqltest gives tests a real MySQL: a throw-away server of the binary that MYSQLD names, or
// of the mysqld on the PATH. Without either, the test is skipped with a message.
package mysqltest

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver of DB
)

// startWithin is long enough for a server on a busy machine.
const startWithin = 30 * time.Second

// A Server is a MySQL with an empty database.
type Server struct {
	// URI is that of the empty database, for a user without other rights.
	URI string

	// Authority is the file of the authority that issued the server's certificate.
	Authority string

	t       *testing.T
	program string
	dir     string
	port    int
	cmd     *exec.Cmd
	log     bytes.Buffer
}

// Start returns a server that is stopped at the end of the test.
func Start(t *testing.T) *Server {
	t.Helper()
	s := &Server{t: t, program: program(t), dir: t.TempDir()}
	s.Authority = filepath.Join(s.data(), "ca.pem")
	s.init()
	s.Up()
	t.Cleanup(func() { s.Down(syscall.SIGKILL) })
	return s
}

// Own makes t, which may be a part of the test that started the server, the test that stops and
// starts it.
func (s *Server) Own(t *testing.T) {
	t.Helper()
	s.t = t
}

func program(t *testing.T) string {
	t.Helper()
	name := os.Getenv("MYSQLD")
	if name == "" {
		name = "mysqld"
	}
	// MariaDB's server has the same name.
	version, err := exec.CommandContext(t.Context(), name, "--version").Output()
	if err != nil || !strings.Contains(string(version), "Ver 9.") {
		// The end-to-end suite mysql tests the shop with a DatabaseCluster of engine mysql. These tests
		// need no cluster, for developers with MySQL on their machine; Debian's stable release has none.
		t.Skip("there is no MySQL 9: MYSQLD does not name its server and no mysqld was found on the PATH")
	}
	return name
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) init() {
	s.t.Helper()
	script := filepath.Join(s.dir, "initialize.sql")
	statements := "CREATE DATABASE shop;\n" +
		"CREATE USER shop IDENTIFIED BY 'pw';\nGRANT ALL ON shop.* TO shop;\n" +
		"CREATE USER admin IDENTIFIED BY 'pw';\nGRANT ALL ON *.* TO admin;\n"
	if err := os.WriteFile(script, []byte(statements), 0o600); err != nil {
		s.t.Fatalf("cannot write the statements of a new database: %v", err)
	}
	out, err := s.command("--initialize-insecure", "--init-file="+script).CombinedOutput()
	if err != nil {
		s.t.Fatalf("cannot initialize MySQL: %v\n%s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatalf("cannot find a free port: %v", err)
	}
	s.port = l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	s.URI = fmt.Sprintf("mysql://shop:pw@127.0.0.1:%d/shop", s.port)
}

func (s *Server) command(args ...string) *exec.Cmd {
	// The path of the socket is relative to the data directory, since that of a socket is short.
	common := []string{"--no-defaults", "--datadir=" + s.data(), "--socket=mysqld.sock", "--skip-log-bin",
		"--innodb-buffer-pool-size=32M", "--innodb-redo-log-capacity=8M", "--performance-schema=OFF", "--secure-file-priv=NULL"}
	if os.Geteuid() == 0 {
		common = append(common, "--user=root")
	}
	cmd := exec.Command(s.program, append(common, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// Up starts the server and waits until it takes connections.
func (s *Server) Up() {
	s.t.Helper()
	s.cmd = s.command("--port="+strconv.Itoa(s.port), "--bind-address=127.0.0.1", "--mysqlx=OFF")
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatalf("cannot start MySQL: %v", err)
	}
	db := s.DB()
	defer func() { _ = db.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := db.PingContext(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			s.Down(syscall.SIGKILL)
			s.t.Fatalf("cannot reach MySQL: %v\n%s", err, s.log.String())
		case <-tick.C:
		}
	}
}

// Down ends the server: SIGTERM ends its connections first, SIGKILL is a crash.
func (s *Server) Down(sig os.Signal) {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Signal(sig)
	_ = s.cmd.Wait()
	s.cmd = nil
}

// DB returns connections of an administrator to the database, which the caller closes.
func (s *Server) DB() *sql.DB {
	s.t.Helper()
	db, err := sql.Open("mysql", fmt.Sprintf("admin:pw@tcp(127.0.0.1:%d)/shop", s.port))
	if err != nil {
		s.t.Fatalf("cannot open the database: %v", err)
	}
	return db
}
