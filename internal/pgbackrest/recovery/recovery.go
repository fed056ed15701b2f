package recovery

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/storeplane/storeplane/internal/pgbackrest"
)

// A Recovery is the recovery of a set.
type Recovery struct { //nolint:recvcheck // unpack completes the copy of its caller
	begin

	Tool pgbackrest.Tool
	Set  pgbackrest.Set

	// Target is the time to recover to, or zero for all that the archive has. Immediate stops as
	// soon as the set is consistent.
	Target    time.Time
	Immediate bool

	// DataDir is the folder to restore into. It is emptied first.
	DataDir string

	// WorkDir is the folder for the socket and configuration files. It is created, and removed
	// again.
	WorkDir string

	// Processes is how many processes copy files at once.
	Processes int

	// RetryFor is how long errors of the archive are retried, or 0 for the package's RetryFor.
	RetryFor time.Duration

	// Log receives the output of PostgreSQL, or is nil.
	Log io.Writer

	// socket is that of an Offer, which answers the restore command, or "" for Tool.
	socket string
}

// begin is what a server needs besides its files.
type begin struct {
	// Last is the last segment of WAL in the archive that the recovery can replay.
	Last string `json:"last"`

	// Stays means that the recovery stays on the timeline of the set.
	Stays bool `json:"stays"`
}

// Run restores the set, recovers, and calls then while the database is up. Settings that only the
// recovery needed are removed from the configuration again.
func (r Recovery) Run(ctx context.Context, then func(ctx context.Context, connect Connect) error) error {
	if err := r.unpack(ctx); err != nil {
		return err
	}
	return r.play(ctx, func(s *server) error {
		if then == nil {
			return nil
		}
		return then(ctx, s.connect)
	})
}

// unpack restores the files of the set.
func (r *Recovery) unpack(ctx context.Context) error {
	branch, err := r.Tool.Branch(ctx, r.Set)
	if err != nil {
		return err
	}
	// PostgreSQL requests the history of a timeline that it has to follow, even of its own. An
	// archive that began after a failover has none.
	r.Stays = r.Immediate || branch.From() == branch.Timeline()
	r.Last = branch.Last().String()
	return r.restore(ctx, branch.Timeline(), r.Stays)
}

// play recovers, and calls then while the server is up.
func (r Recovery) play(ctx context.Context, then func(*server) error) error {
	if err := fresh(r.WorkDir); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(r.WorkDir) }()
	command, err := r.restoreCommand()
	if err != nil {
		return err
	}
	parameters := []string{"restore_command=" + command, "archive_mode=on"}
	if r.Immediate {
		// The server is only for verification, and is thrown away.
		parameters = []string{"restore_command=" + command, "archive_mode=off", "restart_after_crash=off"}
	}
	if r.Stays {
		// pgBackRest has no option for this.
		parameters = append(parameters, "recovery_target_timeline=current")
	}
	s, err := start(r.DataDir, r.WorkDir, r.Log, r.Tool.Env, parameters...)
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
	if err == nil {
		err = then(s)
	}
	if stopErr := s.stop(); err == nil {
		err = stopErr
	}
	return err
}

// toEnd reports whether all that the archive has is to be replayed.
func (r Recovery) toEnd() bool { return !r.Immediate && r.Target.IsZero() }

// restore restores the files of the set, with settings to follow a timeline unless it stays on
// its own. PostgreSQL's default, the latest timeline, may have come from another branch than the
// set.
func (r Recovery) restore(ctx context.Context, timeline uint32, stays bool) error {
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
		options = append(options, "--type=time", "--target="+r.Target.UTC().Format("2006-01-02 15:04:05.999999")+"+00", "--target-action=promote")
	default:
		options = append(options, "--type=default")
	}
	if !stays {
		options = append(options, "--target-timeline="+strconv.FormatUint(uint64(timeline), 10))
	}
	_, err := r.Tool.Run(ctx, r.Set.Stanza, "restore", options...)
	return err
}

// Empty empties a folder, or creates it.
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

// forget resets the settings that only the recovery needed.
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
