package recovery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Time between two checks whether PostgreSQL has recovered: a share of the time that it has taken
// so far, within bounds. PostgreSQL logs each connection that it refuses meanwhile.
const (
	pollShare = 10
	pollFirst = 200 * time.Millisecond
	pollLast  = 5 * time.Second
)

// pollPeriod returns the time until the next check of a recovery that began some time ago.
func pollPeriod(took time.Duration) time.Duration {
	return min(max(took/pollShare, pollFirst), pollLast)
}

// stopWithin is how long PostgreSQL may take to stop.
const stopWithin = 5 * time.Minute

// Connect connects to a database of the server.
type Connect func(ctx context.Context, database string) (*pgx.Conn, error)

// A server is PostgreSQL during a recovery.
type server struct {
	cmd     *exec.Cmd
	log     *tail
	ended   chan struct{}
	err     error
	connect Connect
}

// fresh creates an empty folder for a recovery: files of one that was killed belong to another
// recovery.
func fresh(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("cannot empty the folder of the recovery: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cannot make a folder for the recovery: %w", err)
	}
	return nil
}

// start starts PostgreSQL with its own configuration and some parameters. The configuration of
// the cluster that the data is of names files and addresses that do not exist here.
func start(dataDir, workDir string, log io.Writer, env []string, parameters ...string) (*server, error) {
	limits, err := controlLimits(dataDir)
	if err != nil {
		return nil, err
	}
	hba := filepath.Join(workDir, "pg_hba.conf")
	config := filepath.Join(workDir, "postgresql.conf")
	// No other user can open the folder of the socket.
	if err := os.WriteFile(hba, []byte("local all all trust\n"), 0o600); err != nil {
		return nil, fmt.Errorf("cannot write the configuration of the recovery: %w", err)
	}
	if err := os.WriteFile(config, []byte(settings(dataDir, workDir, hba)), 0o600); err != nil {
		return nil, fmt.Errorf("cannot write the configuration of the recovery: %w", err)
	}
	program, err := exec.LookPath("postgres")
	if err != nil {
		return nil, fmt.Errorf("cannot find PostgreSQL: %w", err)
	}
	// Parameters on the command line take precedence over postgresql.auto.conf, which is part of
	// the data.
	args := []string{"-D", dataDir, "-c", "config_file=" + config}
	for _, name := range controlNames {
		args = append(args, "-c", name.parameter+"="+limits[name.parameter])
	}
	for _, o := range append(overrides(workDir), parameters...) {
		args = append(args, "-c", o)
	}
	s := &server{log: newTail(log), ended: make(chan struct{})}
	s.cmd = exec.Command(program, args...) //nolint:gosec,noctx // stop ends it
	s.cmd.Env = append(append(os.Environ(), env...), "LC_ALL=C")
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	// PostgreSQL has its own process group, so that signals to that of this program do not reach
	// it.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGQUIT}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start PostgreSQL: %w", err)
	}
	go func() {
		s.err = s.cmd.Wait()
		close(s.ended)
	}()
	s.connect = At(workDir)
	return s, nil
}

// Options are options of a connection (PGOPTIONS) that take precedence over what ALTER DATABASE and
// ALTER ROLE have set: the settings of applications, which would end long queries of the recovery
// or refuse its changes.
const Options = "-c statement_timeout=0 -c lock_timeout=0 -c idle_in_transaction_session_timeout=0 -c default_transaction_read_only=off"

// At returns the Connect for the server of a recovery with that WorkDir. Its connections have
// Options.
func At(workDir string) Connect {
	return func(ctx context.Context, database string) (*pgx.Conn, error) {
		u := url.URL{Scheme: "postgres", Path: "/" + database, RawQuery: url.Values{
			"host": {workDir}, "user": {"postgres"}, "sslmode": {"disable"}, "connect_timeout": {"5"},
		}.Encode()}
		config, err := pgx.ParseConfig(u.String())
		if err != nil {
			return nil, fmt.Errorf("cannot connect to database %s: %w", database, err)
		}
		config.RuntimeParams["options"] = Options
		config.AfterConnect = func(ctx context.Context, c *pgconn.PgConn) error {
			// PostgreSQL has this parameter since 17.
			return c.Exec(ctx, "SELECT pg_catalog.set_config(name, '0', false) FROM pg_catalog.pg_settings WHERE name = 'transaction_timeout'").Close()
		}
		return pgx.ConnectConfig(ctx, config)
	}
}

func settings(dataDir, workDir, hba string) string {
	var b strings.Builder
	set := func(name, value string) { fmt.Fprintf(&b, "%s = '%s'\n", name, strings.ReplaceAll(value, "'", "''")) }
	set("data_directory", dataDir)
	set("hba_file", hba)
	set("ident_file", filepath.Join(workDir, "pg_ident.conf"))
	return b.String()
}

// overrides are settings that isolate the server. It keeps the WAL that it writes, so that the
// cluster archives it later.
func overrides(workDir string) []string {
	return []string{
		"archive_command=false", "archive_timeout=0",
		"listen_addresses=", "unix_socket_directories=" + workDir, "port=5432", "ssl=off",
		"hot_standby=on", "synchronous_standby_names=", "primary_conninfo=", "primary_slot_name=",
		"logging_collector=off", "log_destination=stderr", "log_statement=none", "log_min_messages=warning",
		"shared_preload_libraries=", "max_wal_size=1GB", "cluster_name=",
		"dynamic_shared_memory_type=mmap", "shared_buffers=64MB", "huge_pages=off",
	}
}

// promoted waits until PostgreSQL has recovered.
func (s *server) promoted(ctx context.Context) error {
	for began := time.Now(); ; {
		if up, err := s.recovered(ctx); err == nil && up {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("cannot wait for the recovery: %w", context.Cause(ctx))
		case <-s.ended:
			return errEnded
		case <-time.After(pollPeriod(time.Since(began))):
		}
	}
}

func (s *server) recovered(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := s.connect(ctx, "postgres")
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var recovering bool
	err = conn.QueryRow(ctx, "SELECT pg_catalog.pg_is_in_recovery()").Scan(&recovering)
	return !recovering, err
}

// stop shuts PostgreSQL down in an orderly way, after which there is nothing to recover. If it
// has ended in another way there may be, which is an error.
func (s *server) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGINT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot stop PostgreSQL: %w", err)
	}
	select {
	case <-s.ended:
		if s.err != nil {
			return fmt.Errorf("cannot stop PostgreSQL after the recovery, it ended by itself: %w", s.err)
		}
		return nil
	case <-time.After(stopWithin):
		_ = s.cmd.Process.Signal(syscall.SIGQUIT)
		<-s.ended
		return errors.New("cannot stop PostgreSQL: it takes too long")
	}
}
