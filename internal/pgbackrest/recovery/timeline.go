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
)

// Timeline ends the timeline of a stopped server's data, and begins another one: what a
// promotion does, but for the number. PostgreSQL takes the first after its own of which
// there is no history (findNewestTimeLine in
// https://github.com/postgres/postgres/blob/master/src/backend/access/transam/timeline.c),
// and asks for histories by its restore command.
type Timeline struct {
	// DataDir of the server.
	DataDir string

	// WorkDir is for the socket and files of the configuration. It is made, and
	// removed again.
	WorkDir string

	// From is the timeline that the data is on, and Taken the last one whose number
	// somebody else has used.
	From, Taken uint32

	// Log gets what PostgreSQL says, or nil.
	Log io.Writer
}

// Begin the timeline after those that are taken. The server has stopped properly then. To
// do it again after a failure is fine.
func (t Timeline) Begin(ctx context.Context) error {
	if err := fresh(t.WorkDir); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(t.WorkDir) }()
	// It replays what is on the volume, and no more.
	if err := os.Remove(filepath.Join(t.DataDir, "standby.signal")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot begin a timeline: %w", err)
	}
	if err := os.WriteFile(filepath.Join(t.DataDir, "recovery.signal"), nil, 0o600); err != nil {
		return fmt.Errorf("cannot begin a timeline: %w", err)
	}
	// Slots of the server must be allowed, or it does not start. The control file may say
	// less than From: it follows at the next checkpoint.
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
	return err
}

// taken is a restore command by which there is a history of each timeline that is taken,
// and nothing else. PostgreSQL does not read them.
func (t Timeline) taken() string {
	return fmt.Sprintf(`f="%%f"; case "$f" in *.history) n=$((0x${f%%%%.history})); test $n -gt %d && test $n -le %d && : > "%%p";; *) exit 1;; esac`, t.From, t.Taken)
}
