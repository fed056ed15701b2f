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
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/storeplane/storeplane/internal/pgbackrest"
)

// pollPeriod is how often PostgreSQL is asked whether it has recovered.
const pollPeriod = 200 * time.Millisecond

// stopWithin is how long PostgreSQL may take to stop.
const stopWithin = 5 * time.Minute

// Recovery of a set.
type Recovery struct {
	Tool pgbackrest.Tool
	Set  pgbackrest.Set

	// Target time, or zero for all that there is in the archive. Immediate
	// stops as soon as the set is consistent.
	Target    time.Time
	Immediate bool

	// DataDir to restore into. It is emptied first.
	DataDir string

	// WorkDir is for the socket and files of the configuration. It is made, and
	// removed again.
	WorkDir string

	// Processes that copy files at once.
	Processes int

	// Patience with errors of the archive, or 0 for the package's.
	Patience time.Duration

	// Log gets what PostgreSQL says, or nil.
	Log io.Writer
}

// Run the recovery, then what is to be done in the database while it is up. What
// PostgreSQL needed for it is taken out of its configuration again.
func (r Recovery) Run(ctx context.Context, then func(ctx context.Context, connect Connect) error) error {
	if err := r.restore(ctx); err != nil {
		return err
	}
	// What a recovery left that was killed is about another one.
	if err := os.RemoveAll(r.WorkDir); err != nil {
		return fmt.Errorf("cannot empty the folder of the recovery: %w", err)
	}
	if err := os.MkdirAll(r.WorkDir, 0o700); err != nil {
		return fmt.Errorf("cannot make a folder for the recovery: %w", err)
	}
	defer func() { _ = os.RemoveAll(r.WorkDir) }()
	s, err := r.start()
	if err != nil {
		return err
	}
	if err = s.promoted(ctx); err != nil {
		err = r.explain(s, err)
	} else if r.toEnd() {
		err = r.complete(s)
	}
	if err == nil {
		err = forget(ctx, s.connect)
	}
	if err == nil && then != nil {
		err = then(ctx, s.connect)
	}
	if stopErr := s.stop(); err == nil {
		err = stopErr
	}
	return err
}

// toEnd tells whether all that there is in the archive is asked for.
func (r Recovery) toEnd() bool { return !r.Immediate && r.Target.IsZero() }

// Connect to a database of the server.
type Connect func(ctx context.Context, database string) (*pgx.Conn, error)

func (r Recovery) restore(ctx context.Context) error {
	if err := Empty(r.DataDir); err != nil {
		return err
	}
	options := []string{
		"--pg1-path=" + r.DataDir, "--set=" + r.Set.Label, "--process-max=" + strconv.Itoa(max(r.Processes, 1)),
	}
	switch {
	case r.Immediate:
		options = append(options, "--type=immediate", "--target-action=promote")
	case !r.Target.IsZero():
		options = append(options, "--type=time", "--target="+r.Target.UTC().Format("2006-01-02 15:04:05.999999")+"+00", "--target-action=promote", "--target-timeline=latest")
	default:
		options = append(options, "--type=default", "--target-timeline=latest")
	}
	_, err := r.Tool.Run(ctx, r.Set.Stanza, "restore", options...)
	return err
}

// Empty a folder, or make it.
func Empty(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cannot make the data folder: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("cannot read the data folder: %w", err)
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("cannot empty the data folder: %w", err)
		}
	}
	return nil
}

// server that recovers.
type server struct {
	cmd     *exec.Cmd
	log     *tail
	ended   chan struct{}
	err     error
	connect Connect
}

// start PostgreSQL with a configuration of its own. That of the cluster that was
// backed up names files and addresses that are not here.
func (r Recovery) start() (*server, error) {
	limits, err := controlLimits(r.DataDir)
	if err != nil {
		return nil, err
	}
	hba := filepath.Join(r.WorkDir, "pg_hba.conf")
	config := filepath.Join(r.WorkDir, "postgresql.conf")
	// The folder of the socket is nobody else's.
	if err := os.WriteFile(hba, []byte("local all all trust\n"), 0o600); err != nil {
		return nil, fmt.Errorf("cannot write the configuration of the recovery: %w", err)
	}
	command, err := r.restoreCommand()
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(config, []byte(settings(r, hba, limits)), 0o600); err != nil {
		return nil, fmt.Errorf("cannot write the configuration of the recovery: %w", err)
	}
	program, err := exec.LookPath("postgres")
	if err != nil {
		return nil, fmt.Errorf("cannot find PostgreSQL: %w", err)
	}
	// Parameters of the command line win over postgresql.auto.conf, which came
	// with the backup.
	args := []string{"-D", r.DataDir, "-c", "config_file=" + config}
	for _, o := range append(overrides(r), "restore_command="+command) {
		args = append(args, "-c", o)
	}
	s := &server{log: newTail(r.Log), ended: make(chan struct{})}
	s.cmd = exec.Command(program, args...) //nolint:gosec,noctx // it is stopped in its own way
	s.cmd.Env = append(append(os.Environ(), r.Tool.Env...), "LC_ALL=C")
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	// A signal to the group that this program is in is not PostgreSQL's.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGQUIT}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start PostgreSQL: %w", err)
	}
	go func() {
		s.err = s.cmd.Wait()
		close(s.ended)
	}()
	s.connect = func(ctx context.Context, database string) (*pgx.Conn, error) {
		u := url.URL{Scheme: "postgres", Path: "/" + database, RawQuery: url.Values{
			"host": {r.WorkDir}, "user": {"postgres"}, "sslmode": {"disable"}, "connect_timeout": {"5"},
		}.Encode()}
		return pgx.Connect(ctx, u.String())
	}
	return s, nil
}

func settings(r Recovery, hba string, limits map[string]string) string {
	var b strings.Builder
	set := func(name, value string) { fmt.Fprintf(&b, "%s = '%s'\n", name, strings.ReplaceAll(value, "'", "''")) }
	set("data_directory", r.DataDir)
	set("hba_file", hba)
	set("ident_file", filepath.Join(r.WorkDir, "pg_ident.conf"))
	for _, name := range controlNames {
		set(name.parameter, limits[name.parameter])
	}
	return b.String()
}

// overrides keep the server to itself. WAL that it writes is kept for who
// archives it later.
func overrides(r Recovery) []string {
	archive := "on"
	if r.Immediate {
		// It is looked at, and thrown away.
		archive = "off"
	}
	return []string{
		"archive_mode=" + archive, "archive_command=false", "archive_timeout=0",
		"listen_addresses=", "unix_socket_directories=" + r.WorkDir, "port=5432", "ssl=off",
		"hot_standby=on", "synchronous_standby_names=", "primary_conninfo=", "primary_slot_name=",
		"logging_collector=off", "log_destination=stderr", "log_statement=none", "log_min_messages=warning",
		"shared_preload_libraries=", "max_wal_size=1GB", "cluster_name=",
		"dynamic_shared_memory_type=mmap", "shared_buffers=64MB", "huge_pages=off",
	}
}

// promoted waits until PostgreSQL has recovered.
func (s *server) promoted(ctx context.Context) error {
	for {
		if up, err := s.recovered(ctx); err == nil && up {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("cannot wait for the recovery: %w", context.Cause(ctx))
		case <-s.ended:
			return errEnded
		case <-time.After(pollPeriod):
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

// forget what was needed for the recovery alone.
func forget(ctx context.Context, connect Connect) error {
	conn, err := connect(ctx, "postgres")
	if err != nil {
		return fmt.Errorf("cannot end the recovery: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, p := range []string{
		"restore_command", "recovery_target", "recovery_target_time", "recovery_target_timeline", "recovery_target_action", "recovery_target_inclusive",
	} {
		if _, err := conn.Exec(ctx, "ALTER SYSTEM RESET "+p); err != nil {
			return fmt.Errorf("cannot end the recovery: %w", err)
		}
	}
	return nil
}

// stop PostgreSQL as for a restart, so that nothing is to recover. One
// that has ended in another way leaves something.
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
