package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/pgbackrest"
	"github.com/storeplane/storeplane/internal/pgbackrest/recovery"
)

// againAfter is how long a restore waits if the last one failed. Patroni calls it again at
// once, and some causes pass only with time, such as the archive of a source that still
// writes.
const againAfter = time.Minute

// processes is how many processes copy files at once.
const processes = 2

// Restore creates the data directory of a new cluster from a backup, and recovers it to the
// requested time. Patroni starts the server afterwards. The data directory does not exist
// before it is complete.
func Restore(ctx context.Context, c Config, log io.Writer) error {
	if before := c.RestoreState(); before != nil && before.Failed && !pause(ctx, againAfter) {
		return context.Cause(ctx)
	}
	err := c.vacant()
	if err == nil {
		err = restore(ctx, c, log)
	}
	if err == nil {
		err = c.deliver()
	}
	if err != nil {
		c.noteRestore(&instance.RestoreState{Message: err.Error(), Failed: true})
		return err
	}
	c.noteRestore(nil)
	return nil
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func restore(ctx context.Context, c Config, log io.Writer) error {
	want := instance.Restore{}
	if err := readJSON(filepath.Join(c.Origin, instance.RestoreFile), &want); err != nil {
		return err
	}
	tool, remove, err := c.sourceTool(&want, log)
	if err != nil {
		return err
	}
	defer remove()
	sets, err := tool.Sets(ctx)
	if err != nil {
		return err
	}
	target := time.Time{}
	if want.Time != nil {
		target = *want.Time
	}
	set, err := choose(sets, want, target, time.Now())
	if err == nil && target.IsZero() {
		set, err = latest(ctx, tool, set.Stanza, sets)
	}
	if err != nil {
		return err
	}
	if have, err := major(ctx); err == nil && have != set.Version {
		return fmt.Errorf("cannot restore backup %s: it is of PostgreSQL %s, and this is %s: ask for version %s", set.Label, set.Version, have, set.Version)
	}
	if state := c.RestoreState(); state == nil || !state.Failed {
		c.noteRestore(&instance.RestoreState{Message: "Restoring backup " + set.Label})
	}
	r := recovery.Recovery{
		Tool: tool, Set: set, Target: target, DataDir: c.stage(), WorkDir: filepath.Join(os.TempDir(), "recovery"), Processes: processes, Log: log,
	}
	return advise(r.Run(ctx, nil))
}

// choose returns the set to restore. restoreFrom.systemIdentifier has to name the database if
// there are backups of several ones, such as that of a deleted cluster and that of a new one
// under its name.
func choose(sets []pgbackrest.Set, want instance.Restore, target, now time.Time) (pgbackrest.Set, error) {
	set, err := pgbackrest.Choose(sets, want.System, target, now)
	switch {
	case errors.Is(err, pgbackrest.ErrSystems):
		return set, fmt.Errorf("cannot restore from %s/%s: %w: set restoreFrom.systemIdentifier to that of the one to restore", want.Namespace, want.Name, err)
	case err != nil:
		return set, fmt.Errorf("cannot restore from %s/%s: %w", want.Namespace, want.Name, err)
	}
	return set, nil
}

// latest returns the set from which a restore reaches what was written last.
func latest(ctx context.Context, tool pgbackrest.Tool, stanza string, sets []pgbackrest.Set) (pgbackrest.Set, error) {
	set, err := tool.Latest(ctx, stanza, sets)
	if errors.Is(err, pgbackrest.ErrBranch) {
		return set, fmt.Errorf("cannot restore all that there is: %w: set restoreFrom.time to restore that branch up to a time", err)
	}
	return set, err
}

// advise adds to the error of a recovery what to do about it.
func advise(err error) error {
	switch {
	case errors.Is(err, recovery.ErrEarly):
		return fmt.Errorf("cannot restore: %w: choose an earlier time, or none for all that there is", err)
	case errors.Is(err, recovery.ErrHole):
		return fmt.Errorf("cannot restore: %w: choose a time before that change", err)
	}
	return err
}

// sourceTool returns pgBackRest for the repository to restore from, and a function that
// removes its configuration.
func (c Config) sourceTool(want *instance.Restore, log io.Writer) (pgbackrest.Tool, func(), error) {
	repo := pgbackrest.Repository{Destination: want.Destination, Namespace: want.Namespace, Name: want.Name, Host: want.Host, Encrypted: want.Encrypted}
	config, err := repo.Config()
	if err != nil {
		return pgbackrest.Tool{}, nil, fmt.Errorf("cannot restore: %w", err)
	}
	env, err := pgbackrest.Environment(want.Destination, want.Encrypted, pgbackrest.Credentials{StoreDir: c.Origin, KeyFile: filepath.Join(c.Origin, instance.RestoreKey)})
	if err != nil {
		return pgbackrest.Tool{}, nil, err
	}
	dir, err := os.MkdirTemp("", "restore")
	if err != nil {
		return pgbackrest.Tool{}, nil, fmt.Errorf("cannot make a folder for the configuration: %w", err)
	}
	remove := func() { _ = os.RemoveAll(dir) }
	file := filepath.Join(dir, pgbackrest.FileConfig)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		remove()
		return pgbackrest.Tool{}, nil, fmt.Errorf("cannot write the configuration: %w", err)
	}
	return pgbackrest.Tool{ConfigFile: file, Env: env, Log: log}, remove, nil
}

// major returns the major version of the PostgreSQL that is installed here.
func major(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "postgres", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("cannot ask PostgreSQL for its version: %w", err)
	}
	fields := strings.Fields(string(out))
	for i, f := range fields {
		if f == "(PostgreSQL)" && i+1 < len(fields) {
			v, _, _ := strings.Cut(fields[i+1], ".")
			return v, nil
		}
	}
	return "", fmt.Errorf("cannot read PostgreSQL's version: %q", out)
}

func (c Config) stateFile() string { return filepath.Join(c.Volume, instance.RestoreStateFile) }

// noteRestore notes the state of the restore, or with nil removes the note. Errors are
// ignored.
func (c Config) noteRestore(s *instance.RestoreState) {
	if s == nil {
		_ = os.Remove(c.stateFile())
		return
	}
	if data, err := json.Marshal(s); err == nil {
		_ = os.WriteFile(c.stateFile(), data, 0o600)
	}
}

// RestoreState returns the state that was noted last, or nil.
func (c Config) RestoreState() *instance.RestoreState {
	data, err := os.ReadFile(c.stateFile())
	if err != nil {
		return nil
	}
	s := &instance.RestoreState{}
	if json.Unmarshal(data, s) != nil {
		return nil
	}
	return s
}
