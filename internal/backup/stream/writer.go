package stream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"

	"github.com/storeplane/storeplane/internal/backup"
)

// ObjectSize is the largest size of an object. It is what has to be sent again when an object
// fails, and stores of all types accept it.
const ObjectSize = 1 << 30

// The compressions of a dump.
const (
	Zstd = "zstd"
	None = "none"
)

// A Store is where objects are written to and read from.
type Store interface {
	// Writer writes an object, which exists only after Close has returned no error.
	Writer(ctx context.Context, name string) (io.WriteCloser, error)

	// Reader reads an object from an offset on.
	Reader(ctx context.Context, name string, offset int64) (io.ReadCloser, error)
}

// Options are the options of a Writer.
type Options struct {
	// Compression is zstd or none.
	Compression string

	// Key is the key to encrypt with.
	Key Key

	// ObjectSize is the largest size of an object, or 0 for the package's.
	ObjectSize int64

	// Prefix is the beginning of the objects' names in the folder, for example 001.
	Prefix string

	// Suffix is the end of the objects' names that shows the format of the dump, for example
	// .sql.
	Suffix string
}

// suffix returns the end of the objects' names, which shows how to read an object by hand.
func (o Options) suffix() string {
	s := o.Suffix
	if o.Compression == Zstd {
		s += ".zst"
	}
	if o.Key.Recipient() != "" {
		s += ".age"
	}
	return s
}

// A Writer writes one dump.
type Writer struct {
	top    io.Writer
	layers []io.Closer // from the top down
	cut    *cutter
	bytes  int64
}

// NewWriter returns a Writer of a dump into a folder of the store.
func NewWriter(ctx context.Context, s Store, folder string, o Options) (*Writer, error) {
	if o.ObjectSize == 0 {
		o.ObjectSize = ObjectSize
	}
	w := &Writer{cut: newCutter(ctx, s, folder, o)}
	w.top = w.cut
	if r := o.Key.recipients; len(r) > 0 {
		sealed, err := age.Encrypt(w.top, r[0])
		if err != nil {
			w.Abort()
			return nil, fmt.Errorf("cannot encrypt: %w", err)
		}
		w.push(sealed)
	}
	switch o.Compression {
	case Zstd:
		packed, err := zstd.NewWriter(w.top,
			zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(2),
			zstd.WithWindowSize(window), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(true))
		if err != nil {
			w.Abort()
			return nil, fmt.Errorf("cannot compress: %w", err)
		}
		w.push(packed)
	case None:
	default:
		return nil, backup.Errorf(backup.InvalidTask, "there is no compression %q: it is zstd or none", o.Compression)
	}
	return w, nil
}

// level and window limit how much memory and time zstd takes: it has to keep pace with the tool
// that dumps. BenchmarkStream has the figures.
const (
	level  = zstd.SpeedFastest
	window = 1 << 20
)

func (w *Writer) push(c io.WriteCloser) {
	w.top = c
	w.layers = append([]io.Closer{c}, w.layers...)
}

// Write writes a part of the dump.
func (w *Writer) Write(p []byte) (int, error) {
	n, err := w.top.Write(p)
	w.bytes += int64(n)
	return n, err
}

// Finish completes the dump, and returns its objects, which are all in the store then, and its
// size.
func (w *Writer) Finish() ([]backup.Object, int64, error) {
	for _, c := range w.layers {
		if err := c.Close(); err != nil {
			w.Abort()
			return nil, 0, err
		}
	}
	if err := w.cut.finish(); err != nil {
		w.Abort()
		return nil, 0, err
	}
	return w.cut.objects, w.bytes, nil
}

// Abort aborts the dump: the object that is being written is not created. The caller has to
// remove those before it.
func (w *Writer) Abort() {
	// The goroutines of an encoder end only when it is closed. What it writes then is discarded.
	w.cut.abort()
	for _, c := range w.layers {
		_ = c.Close()
	}
}

// A cutter cuts what is written into objects.
type cutter struct {
	ctx    context.Context //nolint:containedctx // a Writer lives as long as one call
	cancel context.CancelFunc
	store  Store
	folder string
	o      Options

	current io.WriteCloser
	name    string
	size    int64
	sum     hash.Hash
	failed  error

	objects []backup.Object
}

func newCutter(ctx context.Context, s Store, folder string, o Options) *cutter {
	ctx, cancel := context.WithCancel(ctx)
	return &cutter{ctx: ctx, cancel: cancel, store: s, folder: folder, o: o}
}

var errAborted = errors.New("the dump was aborted")

func (c *cutter) Write(p []byte) (int, error) {
	written := 0
	for len(p) > 0 {
		if c.failed != nil {
			return written, c.failed
		}
		if c.current == nil {
			c.failed = c.open()
			continue
		}
		part := p[:min(int64(len(p)), c.o.ObjectSize-c.size)]
		n, err := c.current.Write(part)
		c.sum.Write(part[:n])
		c.size += int64(n)
		written += n
		p = p[n:]
		switch {
		case err != nil:
			c.failed = err
		case c.size == c.o.ObjectSize:
			c.failed = c.close()
		}
	}
	return written, c.failed
}

func (c *cutter) open() error {
	c.name = fmt.Sprintf("%s-%05d%s", c.o.Prefix, len(c.objects)+1, c.o.suffix())
	c.size, c.sum = 0, sha256.New()
	w, err := c.store.Writer(c.ctx, c.folder+"/"+c.name)
	if err != nil {
		return err
	}
	c.current = w
	return nil
}

func (c *cutter) close() error {
	w := c.current
	c.current = nil
	if err := w.Close(); err != nil {
		return err
	}
	c.objects = append(c.objects, backup.Object{Name: c.name, Size: c.size, SHA256: hex.EncodeToString(c.sum.Sum(nil))})
	return nil
}

func (c *cutter) finish() error {
	if c.failed != nil {
		return c.failed
	}
	if c.current != nil {
		c.failed = c.close()
	}
	// The last object is in the store, and no upload is in progress any more.
	c.cancel()
	return c.failed
}

func (c *cutter) abort() {
	if c.failed == nil {
		c.failed = errAborted
	}
	c.cancel()
	if c.current != nil {
		// After its context has ended, closing creates no object.
		_ = c.current.Close()
		c.current = nil
	}
}
