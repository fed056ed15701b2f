package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/binlog"
	"github.com/storeplane/storeplane/internal/backup/segment"
	"github.com/storeplane/storeplane/internal/backup/stream"
)

// cutAt is the size at which what was received becomes a segment.
const cutAt = 64 << 20

// A part is the part of a file that the next segment is made of.
type part struct {
	segment.Segment

	file       string
	head       int64
	start, end int64
	since      time.Time
}

// read reads the transactions that the files in a folder have whole, and makes segments of them. With all, of the last
// ones too.
func (a *archiver) read(ctx context.Context, folder string, all bool) error {
	for {
		files, err := received(folder)
		if err != nil {
			return err
		}
		if len(files) == 0 {
			return nil
		}
		more := len(files) > 1
		complete, err := a.readFile(ctx, filepath.Join(folder, files[0]), all || more)
		switch {
		case err != nil:
			return err
		case more && !complete:
			return backup.Errorf(backup.ToolFailed, "binary log %s ends in a transaction, and another one follows", files[0])
		case !more:
			return nil
		}
		if err := os.Remove(filepath.Join(folder, files[0])); err != nil {
			return unusable(err)
		}
		a.stored.Store(0)
	}
}

// received returns the names of the files in a folder, in the order of their numbers.
func received(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, unusable(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) })
	return out, nil
}

// readFile reads what was added to a file, and reports whether all of it is in the store. With end, nothing will be
// added.
func (a *archiver) readFile(ctx context.Context, name string, end bool) (bool, error) {
	f, err := os.Open(name) //nolint:gosec // a file of this program
	if err != nil {
		return false, unusable(err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return false, unusable(err)
	}
	size := info.Size()
	l, err := binlog.OpenAt(f, size, a.part.endOf(name))
	if errors.Is(err, binlog.ErrIncomplete) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	rest, err := a.take(ctx, f, l, size)
	closed := errors.Is(err, io.EOF)
	if errors.Is(err, binlog.ErrIncomplete) {
		// That of a server that was killed ends without saying so.
		closed = end && l.Offset() == size
	} else if !closed {
		return false, err
	}
	large := rest.Size() > a.pace.Largest
	a.grows(rest, size)
	// What is archived after a problem says that it is over.
	due := closed || end || large || a.state.Problem != a.stopped || a.Now().Sub(a.part.since) >= a.pace.Cut
	if !a.part.Transactions.IsEmpty() && due {
		if err := a.cut(ctx, f); err != nil {
			return closed, err
		}
	}
	if large {
		return false, &tooLargeError{Transaction: rest, most: a.pace.Largest}
	}
	return closed, nil
}

// grows notes how much of a transaction has arrived that is not whole, in a file of a size.
func (a *archiver) grows(rest binlog.Transaction, size int64) {
	a.growing.Store(min(rest.Size(), a.pace.Largest))
	if rest.Size() == 0 {
		a.arrived = 0
		return
	}
	if arrived := size - rest.Start; arrived != a.arrived {
		a.arrived, a.received = arrived, time.Now()
	}
}

// take adds the transactions to the part that a file has, which has a size, and cuts it where it has become large. It
// returns the error that the file ends with, and the transaction that is not whole.
func (a *archiver) take(ctx context.Context, f *os.File, l *binlog.Log, size int64) (rest binlog.Transaction, err error) {
	for {
		t, err := l.Next(size)
		if err != nil {
			return t, err
		}
		a.part.add(f.Name(), l.Head(), t, a.Now())
		a.received = time.Now()
		if a.part.end-a.part.start >= cutAt {
			if err := a.cut(ctx, f); err != nil {
				return binlog.Transaction{}, err
			}
		}
	}
}

// A tooLargeError is the error for a transaction that is not archived because of its size.
type tooLargeError struct {
	binlog.Transaction

	most int64
}

// Error returns what becomes of the transaction.
func (e *tooLargeError) Error() string {
	return fmt.Sprintf("transaction %s has %d MiB, and the archive takes %d MiB of one at most: it is skipped, and what is committed after it can be restored once another backup is complete, which starts automatically. Use smaller transactions", e.ID, e.Size()>>20, e.most>>20)
}

// endOf returns how far a file was read, or 0 for another one.
func (p *part) endOf(name string) int64 {
	if p.file != name {
		return 0
	}
	return p.end
}

// add adds a transaction of a file.
func (p *part) add(name string, head int64, t binlog.Transaction, now time.Time) {
	if p.file != name {
		*p = part{file: name, start: t.Start}
	}
	if p.Transactions.IsEmpty() {
		p.start, p.since, p.First, p.Last = t.Start, now, t.Committed, t.Committed
	}
	p.head, p.end, p.Transactions = head, t.End, p.Transactions.Union(t.ID)
	if t.Committed.Before(p.First) {
		p.First = t.Committed
	}
	if t.Committed.After(p.Last) {
		p.Last = t.Committed
	}
}

// renameAfter is how old the id of a part may be that could not be written. What is added meanwhile may be newer than
// a backup, and a restore of that looks for newer ids alone (segmentMargin).
const renameAfter = time.Hour

// cut writes the part into the store. While that is not possible it is kept, and more may be added.
func (a *archiver) cut(ctx context.Context, f *os.File) error {
	if begun, err := backup.ParseID(a.part.ID); err != nil || a.Now().Sub(begun) > renameAfter {
		// Another attempt replaces what this one leaves.
		a.part.ID = backup.NewID(a.Now())
	}
	s := a.part.Segment
	s.System, s.Before = a.system, a.have
	content := io.MultiReader(io.NewSectionReader(f, 0, a.part.head), io.NewSectionReader(f, a.part.start, a.part.end-a.part.start))
	m, err := a.write(ctx, s, content)
	if err == nil {
		// Even if this fails the segment may exist: another attempt does not change its object, and is one of its own.
		// The same twice does no harm.
		a.part.ID = ""
		err = a.complete(ctx, m)
	}
	if err != nil {
		return fmt.Errorf("cannot archive binary logs: %w", err)
	}
	a.have, a.cuts = a.have.Union(s.Transactions), true
	a.extend(s)
	a.part = part{file: a.part.file, start: a.part.end, end: a.part.end}
	a.stored.Store(a.part.end)
	a.state.Problem = a.stopped
	a.say(a.state)
	return nil
}

// segmentSuffix is the end of the names of a segment's objects.
const segmentSuffix = ".binlog"

// write writes the object of a segment, which exists once the manifest is written that is returned.
func (a *archiver) write(ctx context.Context, s segment.Segment, content io.Reader) (*backup.Manifest, error) {
	m := &backup.Manifest{Version: backup.ManifestVersion, Engine: backupv1.MySQL, Compression: cmp.Or(a.task.Compression, stream.Zstd), Recipient: a.key.Recipient()}
	s.Describe(m)
	d := backup.Dump{}
	err := a.upload(ctx, m, "001", segmentSuffix, &d, func(w io.Writer) error {
		_, err := io.Copy(w, content)
		return err
	})
	if err != nil {
		return nil, err
	}
	m.Dumps = []backup.Dump{d}
	return m, a.settle(ctx, m)
}
