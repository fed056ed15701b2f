package supervisor

import (
	"context"
	"errors"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/mysql/group"
	"github.com/storeplane/storeplane/internal/instance/mysql/mysqld"
)

// restoreAgain is the pause after a restore that failed, which doubles up to restoreAtMost: some causes pass
// only with time, such as a store that cannot be reached, and others not without a change of the claim.
const (
	restoreAgain  = time.Minute
	restoreAtMost = 5 * time.Minute
)

// restore fills the volume from the backup that the claim names. The server leads with it afterwards. It is
// recorded as the founder before: servers that each restore the backup would differ in what is not part of
// transactions.
func (s *Supervisor) restore(ctx context.Context, record *group.Record) error {
	if !s.restoreFailed.IsZero() && time.Since(s.restoreFailed) < s.restorePause {
		return errNotYet
	}
	if record.Founder != s.Pod {
		with := *record
		with.Founder, with.Confirmed = s.Pod, false
		if err := s.outside.Change(ctx, *record, with); err != nil {
			return err
		}
	}
	err := s.fill(ctx)
	if err == nil || ctx.Err() != nil {
		s.note(nil)
		return err
	}
	s.restoreFailed, s.restorePause = time.Now(), min(max(2*s.restorePause, restoreAgain), restoreAtMost)
	s.note(&instance.RestoreState{Message: err.Error(), Failed: true})
	return err
}

var errNoSource = errors.New("cannot restore a backup: this server knows of none")

func (s *Supervisor) fill(ctx context.Context) error {
	if s.Fetch == nil {
		return errNoSource
	}
	fetch := func(ctx context.Context, folder string) (mysqld.Replay, error) {
		return s.Fetch(ctx, folder, func(message string) { s.note(&instance.RestoreState{Message: message}) })
	}
	return mysqld.Restore(ctx, s.Program, s.Files, s.Options, fetch, s.stillMine, s.output)
}

var errNotMine = errors.New("another server has become the one that restores the backup")

// stillMine returns an error if this server is not to restore the backup any more: the restore takes long.
func (s *Supervisor) stillMine(ctx context.Context) error {
	record, err := s.outside.Record(ctx)
	if err == nil && (record.Founder != s.Pod || record.Ran()) {
		err = errNotMine
	}
	return err
}

// Restoring returns the progress of the restore of this server from a backup, or nil.
func (s *Supervisor) Restoring() *instance.RestoreState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.restored
}

func (s *Supervisor) note(state *instance.RestoreState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.restored = state
}
