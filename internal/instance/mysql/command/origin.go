package command

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"time"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/binlog"
	"github.com/storeplane/storeplane/internal/backup/run"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/mysql/mysqld"
)

// origin is the folder with what a new cluster is restored from: an instance.Restore, credentials of the
// store, and the key of the encryption.
type origin struct {
	folder, program string
	log             io.Writer
}

// fetch fills a folder with the data of the backup, and returns what was written after it.
func (o origin) fetch(ctx context.Context, folder string, progress func(string)) (mysqld.Replay, error) {
	content, err := os.ReadFile(filepath.Join(o.folder, instance.RestoreFile))
	if err != nil {
		return nil, fmt.Errorf("cannot read what to restore: %w", err)
	}
	want := instance.Restore{}
	if err := json.Unmarshal(content, &want); err != nil {
		return nil, fmt.Errorf("cannot read what to restore: %w", err)
	}
	task := backup.Task{
		Action: backup.Restore, Method: backupv1.Physical, Namespace: want.Namespace, Name: want.Name,
		Database: backup.Database{Engine: backupv1.MySQL}, Destination: want.Destination, Encrypted: want.Encrypted, System: want.System, ID: want.ID, Time: want.Time, Before: want.Before,
	}
	// A backup that is named without a target is restored as it was made.
	targeted := want.Time != nil || want.Before != ""
	replays := want.ID == "" || targeted
	p := run.Program{Store: o.folder, Key: filepath.Join(o.folder, instance.RestoreKey), Log: o.log, Now: time.Now}
	p.Accept = func(m *backup.Manifest) error {
		if err := o.check(ctx, m); err != nil {
			return err
		}
		progress("Restoring backup " + m.ID)
		if !replays {
			return nil
		}
		return p.CanReplay(ctx, task, m)
	}
	cannot := func(err error) error {
		err = fmt.Errorf("cannot restore from %s/%s: %w", want.Namespace, want.Name, err)
		if r := backup.ReasonOf(err); replays && (r == backup.ArchiveGap || r == backup.BackupMissing) {
			err = fmt.Errorf("%w. %s", err, instead(&want))
		}
		return err
	}
	m, unpin, err := p.Fetch(ctx, task, folder)
	if err != nil {
		return nil, cannot(err)
	}
	if !replays {
		unpin()
		return func(context.Context, *sql.DB) error { return nil }, nil
	}
	return pinned(ctx, unpin, func(ctx context.Context, db *sql.DB) error {
		progress("Applying the binary logs since backup " + m.ID)
		relay, err := binlog.NewRelay(ctx, db)
		if err == nil {
			err = p.ReplayLogs(ctx, task, m, relay)
		}
		if err != nil {
			return cannot(err)
		}
		return nil
	}), nil
}

// pinned returns a Replay until whose end a backup is pinned, or until ctx ends, as where no server starts with it: an expiry
// meanwhile would remove the binary logs that the Replay is to execute.
func pinned(ctx context.Context, unpin func(), replay mysqld.Replay) mysqld.Replay {
	stop := context.AfterFunc(ctx, unpin)
	return func(ctx context.Context, db *sql.DB) error {
		if stop() {
			defer unpin()
		}
		return replay(ctx, db)
	}
}

// instead describes what can be restored if the archive does not have what is wanted.
func instead(want *instance.Restore) string {
	switch {
	case want.Before != "" && want.ID != "":
		return "To restore something else create the claim again, with another restoreFrom.beforeTransaction, or another restoreFrom.id or none"
	case want.Before != "":
		return "To restore something else create the claim again, with another restoreFrom.beforeTransaction"
	case want.Time != nil:
		return "To restore something else create the claim again, with another restoreFrom.time, or with restoreFrom.id and no time"
	}
	return "To restore a backup alone set restoreFrom.id, and to restore what the archive has create the claim again with restoreFrom.time"
}

// series matches the series in a version, such as 9.7 in 9.7.4.
var series = regexp.MustCompile(`\b\d+\.\d+`)

// check refuses a backup of another series of MySQL than that of the program: a newer server would upgrade
// the data for good, and an older one cannot read it.
func (o origin) check(ctx context.Context, m *backup.Manifest) error {
	out, err := exec.CommandContext(ctx, o.program, "--version").Output() //nolint:gosec // the program is part of the image
	if err != nil {
		return fmt.Errorf("cannot find the version of MySQL: %w", err)
	}
	have, of := series.FindString(string(out)), series.FindString(m.Server)
	if have != of {
		return backup.Errorf(backup.InvalidTask, "backup %s is of MySQL %s, and this is %s: ask for version %s", m.ID, m.Server, have, of)
	}
	return nil
}
