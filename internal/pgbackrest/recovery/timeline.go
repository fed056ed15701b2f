package recovery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/storeplane/storeplane/internal/pgbackrest/wal"
)

// A Timeline ends the timeline of a stopped server's data, and begins another one, as a promotion
// does, but with a chosen number. PostgreSQL takes the first number after its own for which there
// is no history (findNewestTimeLine in
// https://github.com/postgres/postgres/blob/master/src/backend/access/transam/timeline.c), and
// requests histories by its restore command.
type Timeline struct {
	// DataDir is the folder of the server's data.
	DataDir string

	// WorkDir is the folder for the socket and configuration files. It is created, and removed
	// again.
	WorkDir string

	// From is the timeline that the data is on, and Taken the last one whose number another
	// server has used.
	From, Taken uint32

	// Log receives the output of PostgreSQL, or is nil.
	Log io.Writer
}

// Begin begins the timeline after those that are taken, and stops the server properly. It may be
// repeated after a failure.
func (t Timeline) Begin(ctx context.Context) error {
	if err := fresh(t.WorkDir); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(t.WorkDir) }()
	// The server replays only the WAL on its volume.
	if err := os.Remove(filepath.Join(t.DataDir, "standby.signal")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot begin a timeline: %w", err)
	}
	if err := os.WriteFile(filepath.Join(t.DataDir, "recovery.signal"), nil, 0o600); err != nil {
		return fmt.Errorf("cannot begin a timeline: %w", err)
	}
	// The replication slots of the server need these settings, or it does not start. The timeline
	// is set, since the control file may have an older one until the next checkpoint.
	s, err := start(t.DataDir, t.WorkDir, t.Log, nil, "restore_command="+t.taken(), "archive_mode=on",
		"recovery_target_timeline="+strconv.FormatUint(uint64(t.From), 10), "wal_level=logical", "max_replication_slots=1024")
	if err != nil {
		return err
	}
	if err = s.promoted(ctx); errors.Is(err, errEnded) {
		err = fmt.Errorf("cannot begin a timeline: %w: %s", err, s.log.lastFatal())
	}
	if stopErr := s.stop(); err == nil {
		err = stopErr
	}
	if err != nil {
		return err
	}
	return t.leaveHistories()
}

// leaveHistories writes a history of each timeline that is taken and that the server has none of. A
// standby that follows it later asks for all of those between its own timeline and the server's, and
// does not follow if one is missing (WalRcvFetchTimeLineHistoryFiles in
// https://github.com/postgres/postgres/blob/master/src/backend/replication/walreceiver.c). Only the
// last one is read. They are marked as archived, so that none replaces another server's in the archive.
func (t Timeline) leaveHistories() error {
	for n := t.From + 1; n <= t.Taken; n++ {
		name := wal.History(n)
		file := filepath.Join(t.DataDir, "pg_wal", name)
		if _, err := os.Stat(file); err == nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(t.DataDir, "pg_wal", "archive_status", name+".done"), nil, 0o600); err != nil {
			return fmt.Errorf("cannot note that timeline %d is taken: %w", n, err)
		}
		if err := os.WriteFile(file, []byte("# Another server has taken this timeline.\n"), 0o600); err != nil {
			return fmt.Errorf("cannot note that timeline %d is taken: %w", n, err)
		}
	}
	return nil
}

// taken returns a restore command that finds a history of each timeline that is taken, and
// nothing else. The histories are empty, since PostgreSQL does not read them.
func (t Timeline) taken() string {
	return fmt.Sprintf(`f="%%f"; case "$f" in *.history) n=$((0x${f%%%%.history})); test $n -gt %d && test $n -le %d && : > "%%p";; *) exit 1;; esac`, t.From, t.Taken)
}
