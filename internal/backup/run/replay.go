package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/binlog"
	"github.com/storeplane/storeplane/internal/backup/segment"
	"github.com/storeplane/storeplane/internal/backup/stream"
	"github.com/storeplane/storeplane/internal/gtid"
	"github.com/storeplane/storeplane/internal/text"
)

// batchMost is how much is applied at once, and is on the disk beside the data meanwhile.
const batchMost = 256 << 20

// A Replayer is a server that has a backup, and applies segments to it.
type Replayer interface {
	// Create returns a new file for binary logs, and Apply applies those that were created since, in their order, until
	// the server has executed a set of transactions.
	Create() (*os.File, error)
	Apply(ctx context.Context, want gtid.Set) error
}

// ReplayLogs has a server that was started with a backup, whose manifest is given, apply the archived segments: up to the
// Task's Time, before its transaction Before, or all that there are.
func (p *Program) ReplayLogs(ctx context.Context, t backup.Task, m *backup.Manifest, to Replayer) error {
	hide := secrets{}
	hide.addFolder(p.Store)
	hide.addFile(p.Key)
	log := &lines{to: p.Log, hide: &hide}
	defer log.flush()
	t.Method = backup.BinaryLog
	j := &job{Program: p, task: t, hide: &hide, log: log}
	defer j.close()
	err := j.replayPinned(ctx, m, to)
	if err == nil {
		return nil
	}
	reason := backup.ReasonOf(backup.WithReason(backup.ToolFailed, err))
	if ctx.Err() != nil {
		reason = backup.Interrupted
	}
	return backup.Errorf(reason, "%s", hide.in(oneLine(err.Error())))
}

// CanReplay returns an error unless ReplayLogs has all that it needs for a backup: it is known before the backup is
// unpacked.
func (p *Program) CanReplay(ctx context.Context, t backup.Task, m *backup.Manifest) error {
	t.Method = backup.BinaryLog
	j := &job{Program: p, task: t, hide: &secrets{}, log: p.Log}
	defer j.close()
	if err := j.open(ctx); err != nil {
		return err
	}
	_, err := j.plan(ctx, m)
	return err
}

func (j *job) replayPinned(ctx context.Context, m *backup.Manifest, to Replayer) error {
	if err := j.open(ctx); err != nil {
		return err
	}
	// Segments expire with the oldest backup, and this may be it.
	unpin, err := j.pinCopy(ctx, m.ID)
	if err != nil {
		return err
	}
	defer unpin()
	r, err := j.plan(ctx, m)
	if err != nil {
		return err
	}
	return j.apply(ctx, r, to)
}

// A replay is what leads from a backup to a target: a chain, with the manifests of its
// segments by id, and the transactions of the backup.
type replay struct {
	segment.Chain

	has       gtid.Set
	manifests map[string]*backup.Manifest
}

// plan returns what leads from a backup to the Task's target.
func (j *job) plan(ctx context.Context, m *backup.Manifest) (replay, error) {
	r := replay{}
	var err error
	if r.has, err = gtid.Parse(m.Position); err != nil {
		return r, backup.Errorf(backup.BackupCorrupt, "the manifest of %s: %w", m.ID, err)
	}
	var a segment.Archive
	if a, r.manifests, err = j.segments(ctx, m); err != nil {
		return r, err
	}
	a.Expected = m.Archived
	to := segment.Target{}
	if j.task.Time != nil {
		to.Time = *j.task.Time
	}
	if to.Before, err = gtid.Parse(j.task.Before); err != nil {
		return r, backup.Errorf(backup.InvalidTask, "cannot read the transaction to restore up to: %w", err)
	}
	r.Chain, err = a.Chain(r.has, to)
	return r, err
}

// apply has a server that has the backup apply the segments.
func (j *job) apply(ctx context.Context, r replay, to Replayer) error {
	j.sayf("applying %s of binary logs", text.Count(len(r.Segments), "segment"))
	var size int64
	var want gtid.Set
	has := r.has
	for _, s := range r.Segments {
		m := r.manifests[s.ID]
		if len(m.Dumps) != 1 {
			return backup.Errorf(backup.BackupCorrupt, "segment %s has %d objects, and not one", s.ID, len(m.Dumps))
		}
		n := m.Dumps[0].Bytes
		if size > 0 && size+n > batchMost {
			if err := to.Apply(ctx, want); err != nil {
				return err
			}
			size = 0
		}
		in, ends, err := j.fetchSegment(ctx, m, has, r.To, to)
		if err != nil {
			return err
		}
		if !ends && !in.Equal(s.Transactions) {
			return backup.Errorf(backup.BackupCorrupt, "segment %s has not the transactions that its manifest lists", s.ID)
		}
		size, want, has = size+n, want.Union(in), has.Union(in)
		if ends {
			return to.Apply(ctx, want)
		}
	}
	if r.Incomplete != nil {
		return r.Incomplete
	}
	if !r.To.Before.IsEmpty() {
		return backup.Errorf(backup.BackupCorrupt, "transaction %s is in no segment, although a manifest lists it", r.To.Before)
	}
	return to.Apply(ctx, want)
}

// segmentMargin is how much older than a backup a segment may be that the backup does not have, by the clocks of the
// pods that made them.
const segmentMargin = 24 * time.Hour

// segments returns what is archived for a backup, with the manifests by id.
func (j *job) segments(ctx context.Context, m *backup.Manifest) (segment.Archive, map[string]*backup.Manifest, error) {
	a := segment.Archive{}
	manifests := map[string]*backup.Manifest{}
	// The record is read before the segments are listed, so that it names none that is not.
	var err error
	if a.Reached, err = j.reached(ctx, m.System); err != nil {
		return a, nil, err
	}
	l, err := j.store.Since(ctx, m.Started.Add(-segmentMargin))
	if err != nil {
		return a, nil, err
	}
	for _, item := range l.Items {
		if item.Err != nil {
			j.sayf("segment %s is skipped: %v", item.ID, item.Err)
		}
		if item.Manifest == nil || foreign(item.Err) {
			continue
		}
		s, err := segment.Of(item.Manifest)
		if err != nil {
			return a, nil, err
		}
		if item.Err != nil {
			// What it has is missing, unless another one has it too.
			a.Damaged = append(a.Damaged, s)
			continue
		}
		a.Segments, manifests[s.ID] = append(a.Segments, s), item.Manifest
	}
	return a.Of(m.System), manifests, nil
}

// reached returns the newest record of how far the archive of a database is, or nil if there is no authentic one.
func (j *job) reached(ctx context.Context, system string) (*segment.Reached, error) {
	r := segment.Reached{}
	switch ok, err := j.store.ReadJSON(ctx, reachedObject(system), &r); {
	case backup.ReasonOf(err) == backup.BackupMissing, err == nil && !ok:
		return nil, nil
	case err != nil:
		return nil, err
	}
	seal := r.Seal
	r.Seal = ""
	if r.System != system || !j.seal.Check(r, reachedObject(system), seal) {
		return nil, nil
	}
	return &r, nil
}

// fetchSegment writes a segment into a file of a server that has a set of transactions, up to the first other one that is
// not wanted. It returns what is in the file, and whether it was cut.
func (j *job) fetchSegment(ctx context.Context, m *backup.Manifest, has gtid.Set, target segment.Target, to Replayer) (in gtid.Set, ends bool, err error) {
	d := m.Dumps[0]
	r, err := stream.NewReader(ctx, j.store, m.ID, d.Objects, m.Compression, m.Recipient, j.key)
	if err != nil {
		return in, false, err
	}
	defer r.Close()
	f, err := to.Create()
	if err != nil {
		return in, false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	counted := &counting{r: r}
	if _, err := io.Copy(f, counted); err != nil {
		return in, false, fmt.Errorf("cannot read segment %s: %w", m.ID, err)
	}
	if err := counted.finish(d); err != nil {
		return in, false, fmt.Errorf("cannot read segment %s: %w", m.ID, err)
	}
	return cut(f.Name(), d.Bytes, has, target)
}

// cut cuts a file before the first transaction that is not in a set and not wanted. It returns what is in the file, and
// whether it was cut.
func cut(name string, size int64, has gtid.Set, to segment.Target) (in gtid.Set, ends bool, err error) {
	f, err := os.OpenFile(name, os.O_RDWR, 0) //nolint:gosec // a file of this program
	if err != nil {
		return in, false, unusable(err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	l, err := binlog.Open(f, size)
	if err != nil {
		return in, false, backup.WithReason(backup.BackupCorrupt, err)
	}
	for {
		t, err := l.Next(size)
		switch {
		case errors.Is(err, binlog.ErrIncomplete) && l.Offset() == size:
			return in, false, nil
		case err != nil:
			return in, false, backup.WithReason(backup.BackupCorrupt, err)
		case to.Ends(t.ID, t.Committed) && !has.Contains(t.ID):
			return in, true, f.Truncate(t.Start)
		}
		in = in.Union(t.ID)
	}
}
