package stream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"time"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/text"
)

// Check reads every object whole, and returns an error unless each is what was written.
func Check(ctx context.Context, s Store, folder string, objects []backup.Object) error {
	r := newJoiner(ctx, s, folder, objects)
	defer r.close()
	_, err := io.Copy(io.Discard, r)
	return err
}

// A Reader reads one dump. Its data may be trusted only once Read has returned io.EOF, which
// proves that the whole dump is what was written.
type Reader struct {
	top  io.Reader
	join *joiner
	zstd *zstd.Decoder
}

// NewReader returns a Reader of a dump in a folder of the store.
func NewReader(ctx context.Context, s Store, folder string, objects []backup.Object, compression string, recipient string, key Key) (*Reader, error) {
	// With a key, a plain backup was not written by this Backup.
	if recipient == "" && key.Recipient() != "" {
		return nil, backup.Errorf(backup.BackupNotAuthentic, "the backup is not encrypted, and there is a key")
	}
	if recipient != "" && !slices.Contains(key.names, recipient) {
		return nil, backup.Errorf(backup.KeyMissing, "the backup is encrypted for %s, and the key is not its key", recipient)
	}
	r := &Reader{join: newJoiner(ctx, s, folder, objects)}
	r.top = r.join
	if recipient != "" {
		opened, err := age.Decrypt(r.top, key.identities...)
		if err != nil {
			r.Close()
			return nil, corrupt(fmt.Errorf("cannot decrypt: %w", err))
		}
		r.top = opened
	}
	switch compression {
	case Zstd:
		// A forged dump could request a window as large as the pod's memory.
		d, err := zstd.NewReader(r.top, zstd.WithDecoderConcurrency(2), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(8*window))
		if err != nil {
			r.Close()
			return nil, corrupt(fmt.Errorf("cannot decompress: %w", err))
		}
		r.zstd, r.top = d, d
	case None:
	default:
		return nil, backup.Errorf(backup.BackupCorrupt, "there is no compression %q", compression)
	}
	return r, nil
}

// Read reads the dump. io.EOF means that all of it was read, and is what was written.
func (r *Reader) Read(p []byte) (int, error) {
	n, err := r.top.Read(p)
	if err == nil {
		return n, nil
	}
	if err != io.EOF {
		return n, corrupt(err)
	}
	// The layers may stop before the objects end.
	if rest, err := io.Copy(io.Discard, r.join); err != nil || rest > 0 {
		if err == nil {
			err = fmt.Errorf("%s after its end", text.Count(rest, "byte"))
		}
		return n, corrupt(err)
	}
	return n, io.EOF
}

// Close closes the Reader.
func (r *Reader) Close() {
	if r.zstd != nil {
		r.zstd.Close()
	}
	r.join.close()
}

// corrupt gives err the reason BackupCorrupt, or Interrupted if a context was cancelled, unless it
// has a reason already.
func corrupt(err error) error {
	if errors.Is(err, context.Canceled) {
		return backup.WithReason(backup.Interrupted, err)
	}
	return backup.WithReason(backup.BackupCorrupt, err)
}

// A joiner reads objects one after another, and fails at the end of the first one that is not
// what was written.
type joiner struct {
	ctx     context.Context //nolint:containedctx // a Reader lives as long as one call
	store   Store
	folder  string
	objects []backup.Object

	current io.ReadCloser
	size    int64
	sum     hash.Hash
	tries   int
	failed  error
}

func newJoiner(ctx context.Context, s Store, folder string, objects []backup.Object) *joiner {
	return &joiner{ctx: ctx, store: s, folder: folder, objects: objects, sum: sha256.New()}
}

// tries is how often an object is attempted whose connection breaks, retryWait the pause in
// between.
const (
	tries     = 5
	retryWait = 2 * time.Second
)

func (j *joiner) Read(p []byte) (int, error) {
	for {
		if j.failed != nil {
			return 0, j.failed
		}
		if len(j.objects) == 0 {
			return 0, io.EOF
		}
		n, err := j.read(p)
		if err != nil {
			j.failed = err
		}
		if n > 0 {
			return n, nil
		}
	}
}

// read reads from the first object, and continues with the next one at its end.
func (j *joiner) read(p []byte) (int, error) {
	o := j.objects[0]
	if j.current == nil {
		if err := j.open(o); err != nil {
			return 0, err
		}
	}
	n, err := j.current.Read(p)
	j.sum.Write(p[:n])
	j.size += int64(n)
	switch {
	case j.size > o.Size:
		return n, backup.Errorf(backup.BackupCorrupt, "object %s has more than the %d bytes that were written", o.Name, o.Size)
	case err == nil:
		return n, nil
	case err == io.EOF:
		return n, j.next(o)
	}
	return n, j.retry(err)
}

func (j *joiner) open(o backup.Object) error {
	r, err := j.store.Reader(j.ctx, j.folder+"/"+o.Name, j.size)
	if backup.ReasonOf(err) == backup.BackupMissing {
		return backup.Errorf(backup.BackupCorrupt, "object %s is missing", o.Name)
	}
	if err != nil {
		return err
	}
	j.current = r
	return nil
}

// next continues with the next object, if this one is what was written.
func (j *joiner) next(o backup.Object) error {
	if j.size != o.Size {
		return backup.Errorf(backup.BackupCorrupt, "object %s has %d bytes, and had %d when it was written", o.Name, j.size, o.Size)
	}
	if hex.EncodeToString(j.sum.Sum(nil)) != o.SHA256 {
		return backup.Errorf(backup.BackupCorrupt, "object %s is not what was written: its SHA-256 differs", o.Name)
	}
	j.objects = j.objects[1:]
	j.size, j.tries, j.sum = 0, 0, sha256.New()
	j.close()
	return nil
}

// retry continues where the connection broke, after a pause.
func (j *joiner) retry(err error) error {
	j.close()
	j.tries++
	if backup.ReasonOf(err) != backup.StoreUnreachable || j.tries == tries {
		return err
	}
	timer := time.NewTimer(retryWait)
	defer timer.Stop()
	select {
	case <-j.ctx.Done():
		return backup.WithReason(backup.Interrupted, context.Cause(j.ctx))
	case <-timer.C:
		return nil
	}
}

func (j *joiner) close() {
	if j.current != nil {
		_ = j.current.Close()
		j.current = nil
	}
}
