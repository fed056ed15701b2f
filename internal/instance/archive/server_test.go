package archive

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/pgbackrest"
	"github.com/storeplane/storeplane/internal/pgbackrest/recovery"
	"github.com/storeplane/storeplane/internal/pgtest"
)

// pushVariable makes this program run as the archive command, and restoreVariable as the bootstrap
// method: each holds the Config as JSON.
const (
	pushVariable    = "STOREPLANE_TEST_PUSH"
	restoreVariable = "STOREPLANE_TEST_RESTORE"
)

func TestMain(m *testing.M) {
	recovery.Main()
	as(pushVariable, func(c Config) error {
		return Push(context.Background(), c, os.Args[len(os.Args)-1], os.Stderr)
	})
	as(restoreVariable, func(c Config) error { return Restore(context.Background(), c, os.Stderr) })
	os.Exit(pgtest.Main(m))
}

// as runs do with the Config in the variable and exits, if the variable is set.
func as(variable string, do func(Config) error) {
	config, ok := os.LookupEnv(variable)
	if !ok {
		return
	}
	c := Config{}
	err := json.Unmarshal([]byte(config), &c) //nolint:musttag // the test has written it itself
	if err == nil {
		err = do(c)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(ExitCode(err))
}

// place is the folder with a test's servers and their repository.
type place struct {
	t   testing.TB
	dir string
}

func newPlace(t testing.TB) *place {
	t.Helper()
	pgtest.Need(t, "pgbackrest", "initdb", "pg_ctl", "pg_basebackup")
	// The path of a socket may have at most 107 bytes.
	dir, err := os.MkdirTemp("", "a") //nolint:usetesting // t.TempDir returns a longer path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	p := &place{t: t, dir: dir}
	for _, d := range []string{"store", "config"} {
		p.must(os.Mkdir(p.path(d), 0o700))
	}
	repo := pgbackrest.Repository{Destination: backupv1.Destination{Type: backupv1.Volume, Bucket: "claim"}, Namespace: "shop", Name: "orders"}
	config, err := repo.ServerConfig()
	p.must(err)
	p.must(os.WriteFile(p.path("config/"+pgbackrest.FileConfig), []byte(config), 0o600))
	content, err := json.Marshal(instance.Backup{Destination: repo.Destination})
	p.must(err)
	p.must(os.WriteFile(p.path("config/"+instance.BackupFile), content, 0o600))
	t.Setenv("PGBACKREST_REPO1_PATH", p.path("store"))
	return p
}

func (p *place) path(name string) string { return filepath.Join(p.dir, name) }

func (p *place) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) run(program string, args ...string) {
	p.t.Helper()
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil { //nolint:noctx // PostgreSQL's own programs
		p.t.Fatalf("%s: %v\n%s", program, err, out)
	}
}

// away makes the store unavailable, or available again.
func (p *place) away(yes bool) {
	p.t.Helper()
	from, to := "store", "gone"
	if !yes {
		from, to = to, from
		// An archive command may have created the folders again in the meantime.
		p.must(os.RemoveAll(p.path(to)))
	}
	p.must(os.Rename(p.path(from), p.path(to)))
}

// server is a PostgreSQL server with the folders that it has in a pod.
type server struct {
	*place
	Config

	name string
}

func (p *place) server(name string) *server {
	s := &server{place: p, name: name, Config: Config{
		Repository: p.path("config"), Store: p.path("store"), Socket: p.path(name + "-s"), Volume: p.path(name),
	}}
	p.must(os.MkdirAll(s.Volume, 0o700))
	p.must(os.MkdirAll(s.Socket, 0o700))
	return s
}

// primary starts the primary of a new cluster and sets up its repository.
func (p *place) primary(name string) *server {
	s := p.server(name)
	p.run("initdb", "-D", s.DataDir(), "-U", "postgres", "-A", "trust", "-N")
	s.start()
	p.must(s.Create(p.t.Context(), testLog{p.t}))
	return s
}

// standby starts a standby that follows this server.
func (s *server) standby(name string) *server { return s.standbyBy(name, s.Socket) }

// standbyBy starts a standby that connects to this server by the socket in a folder.
func (s *server) standbyBy(name, socket string) *server {
	o := s.server(name)
	s.run("pg_basebackup", "-D", o.DataDir(), "-R", "-c", "fast", "-h", socket, "-U", "postgres")
	o.start()
	return o
}

func (s *server) start(options ...string) {
	s.t.Helper()
	config, err := json.Marshal(s.Config) //nolint:musttag // the test reads it itself
	s.must(err)
	env := []string{pushVariable + "='\\''" + string(config) + "'\\''"}
	// Each server has its own lock and spool folders, as in a pod.
	env = append(env, "PGBACKREST_LOCK_PATH="+s.path(s.name+"-lock"), "PGBACKREST_SPOOL_PATH="+s.path(s.name+"-spool"))
	self, err := os.Executable()
	s.must(err)
	o := append([]string{
		"listen_addresses=", "unix_socket_directories=" + s.Socket, "archive_mode=on", "fsync=off",
		"archive_command='env " + strings.Join(env, " ") + " " + self + " pgbackrest-push %p'",
	}, options...)
	var conf strings.Builder
	for _, line := range o {
		name, value, _ := strings.Cut(line, "=")
		if !strings.HasPrefix(value, "'") {
			value = "'" + value + "'"
		}
		// Within the file, a quote is written as two.
		value = "'" + strings.ReplaceAll(strings.ReplaceAll(value[1:len(value)-1], "'\\''", "'"), "'", "''") + "'"
		fmt.Fprintf(&conf, "%s = %s\n", name, value)
	}
	file, err := os.OpenFile(filepath.Join(s.DataDir(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0o600)
	s.must(err)
	_, err = file.WriteString(conf.String())
	s.must(err)
	s.must(file.Close())
	s.run("pg_ctl", "-D", s.DataDir(), "-w", "-l", s.path(s.name+"-log"), "start")
	s.t.Cleanup(func() {
		if s.running() {
			s.run("pg_ctl", "-D", s.DataDir(), "-w", "-m", "immediate", "stop")
		}
	})
}

func (s *server) running() bool {
	_, err := os.Stat(filepath.Join(s.DataDir(), "postmaster.pid"))
	return err == nil
}

func (s *server) stop()    { s.run("pg_ctl", "-D", s.DataDir(), "-w", "-m", "fast", "-t", "300", "stop") }
func (s *server) promote() { s.run("pg_ctl", "-D", s.DataDir(), "-w", "promote") }

// ask reads one value by a query.
func (s *server) ask(sql string, into any) {
	s.t.Helper()
	conn, err := pgx.Connect(s.t.Context(), "postgres:///postgres?user=postgres&host="+s.Socket)
	s.must(err)
	defer func() { _ = conn.Close(context.Background()) }()
	s.must(conn.QueryRow(s.t.Context(), sql).Scan(into))
}

func (s *server) exec(sql string) {
	s.t.Helper()
	conn, err := pgx.Connect(s.t.Context(), "postgres:///postgres?user=postgres&host="+s.Socket)
	s.must(err)
	defer func() { _ = conn.Close(context.Background()) }()
	_, err = conn.Exec(s.t.Context(), sql)
	s.must(err)
}

// write writes a record, switches to the next segment, and returns the name of the one written.
func (s *server) write() string {
	s.t.Helper()
	var segment string
	s.ask("SELECT pg_walfile_name(pg_logical_emit_message(true, 'test', 'x'))", &segment)
	s.ask("SELECT pg_walfile_name(pg_switch_wal())", new(string))
	return segment
}

// current returns the name of the current segment.
func (s *server) current() string {
	s.t.Helper()
	var segment string
	s.ask("SELECT pg_walfile_name(pg_current_wal_flush_lsn())", &segment)
	return segment
}

func (s *server) backUp() {
	s.t.Helper()
	tool, stanza := s.tool()
	options := append(pgbackrest.Options([]pgbackrest.Server{{DataDir: s.DataDir(), SocketDir: s.Socket}}), "--start-fast", "--type=full", "--repo1-retention-full=9")
	_, err := tool.Run(s.t.Context(), stanza, "backup", options...)
	s.must(err)
}

func (s *server) tool() (pgbackrest.Tool, string) {
	s.t.Helper()
	tool, err := s.Tool(io.Discard)
	s.must(err)
	tool.Env = append(tool.Env, "PGBACKREST_LOCK_PATH="+s.path("lock"))
	stanza, err := s.Stanza()
	s.must(err)
	return tool, stanza
}

// gaps returns the gaps in the archive after the newest backup.
func (s *server) gaps() string {
	s.t.Helper()
	tool, _ := s.tool()
	sets, err := tool.Sets(s.t.Context())
	s.must(err)
	branch, err := tool.Branch(s.t.Context(), sets[len(sets)-1])
	s.must(err)
	return fmt.Sprint(branch.Gaps())
}

// eventually waits until the condition holds, and fails the test after two minutes.
func (p *place) eventually(what string, is func() bool) {
	p.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !is(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Fatalf("it never happens: %s", what)
		}
	}
}

// keep creates the slot that makes the server keep WAL, as Patroni does on all servers.
func (s *server) keep() {
	s.t.Helper()
	s.ask("SELECT slot_name FROM pg_create_physical_replication_slot('"+instance.ArchiveSlot+"', true)", new(string))
}

// archived waits until no segment waits to be archived.
func (s *server) archived() {
	s.t.Helper()
	s.eventually("all is archived", func() bool { return s.waiting() == 0 })
}

// waiting returns how many segments wait to be archived.
func (s *server) waiting() (n int) {
	s.t.Helper()
	s.ask("SELECT count(*) FROM pg_ls_archive_statusdir() WHERE name LIKE '%.ready'", &n)
	return n
}

type testLog struct{ t testing.TB }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Logf("%s", strings.TrimRight(string(p), "\n"))
	return len(p), nil
}
