package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"gocloud.dev/blob"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
)

// An object is written in parts of partSize, concurrency of which are in memory at a time. A pod
// has 128 MiB for everything.
const (
	partSize    = 8 << 20
	concurrency = 2
)

// A Store holds the backups of one Backup.
type Store struct {
	bucket  *blob.Bucket
	folders folders
	where   string

	// uploads lists the unfinished uploads of names with the prefix, which no other list shows,
	// and abort removes one of them. They are nil for stores that remove them themselves.
	uploads func(ctx context.Context, prefix string) ([]upload, error)
	abort   func(ctx context.Context, u upload) error

	// tidy removes an empty folder that remains after all its objects are deleted, or is nil.
	tidy func(folder string)

	// commit returns once all that was written is on disk. It is nil for stores that acknowledge
	// nothing before.
	commit func() error

	// readable returns an error if the folder, or that of one of its backups, cannot be read. It is
	// nil for stores whose listings fail then.
	readable func(folder string) error

	// written returns when an object of that name was last written, by a clock that the writer
	// cannot set, or zero if that is unknown. It is nil for stores whose listings contain that
	// time.
	written func(key string) time.Time

	beat time.Duration
	seal backup.Seal
}

// An upload is an unfinished upload of an object.
type upload struct{ key, id string }

// Options are the options of a Store.
type Options struct {
	// Method is that of the backups: each has folders of its own. Empty is logical.
	Method backupv1.Method

	// Credentials is the folder with the credentials of the store.
	Credentials string

	// Volume is where a destination of type volume is mounted.
	Volume string

	// Seal authenticates what is read.
	Seal backup.Seal

	// Beat is how often the RunningObject of a backup is renewed, or 0 for 15 seconds.
	Beat time.Duration

	// Sync writes what the file system with a folder holds in memory to its disk. Nil is syncfs(2).
	Sync func(dir string) error
}

// Open opens the folder of a Backup's backups in its destination, as backup.Folder names it. No
// request is sent before the Store is used.
func Open(ctx context.Context, d backupv1.Destination, folder string, o Options) (*Store, error) {
	s := &Store{folders: newFolders(folder, o.Method), where: fmt.Sprintf("%s %s", words[d.Type], d.Bucket), beat: o.Beat, seal: o.Seal}
	if s.beat == 0 {
		s.beat = beat
	}
	var err error
	switch d.Type {
	case backupv1.S3:
		err = s.openS3(ctx, d, o.Credentials)
	case backupv1.GCS:
		err = s.openGCS(ctx, d, o.Credentials)
	case backupv1.Azure:
		err = s.openAzure(d, o.Credentials)
	case backupv1.Volume:
		err = s.openVolume(o.Volume, o.Sync)
	default:
		err = backup.Errorf(backup.InvalidTask, "it is of the unknown type %q", d.Type)
	}
	if err != nil {
		return nil, s.fail("open", "", err)
	}
	return s, nil
}

// words are the names of the types in messages.
var words = map[backupv1.StoreType]string{
	backupv1.S3: "bucket", backupv1.GCS: "bucket", backupv1.Azure: "container", backupv1.Volume: "volume claim",
}

// Close closes the Store.
func (s *Store) Close() error { return s.bucket.Close() }

// key returns the key of an object in the bucket.
func (s *Store) key(name string) string { return s.folders.of(name) + "/" + name }

// fail adds to an error of the store what was attempted, and its reason.
func (s *Store) fail(verb, name string, err error) error {
	what := s.where
	if name != "" {
		what = fmt.Sprintf("%s in %s", s.key(name), s.where)
	}
	r := reason(err)
	// Writing and listing need no existing object, so it is the bucket that is missing.
	if r == backup.BackupMissing && (verb == "write" || verb == "list") {
		r = backup.BucketMissing
	}
	return backup.Errorf(r, "cannot %s %s: %s", verb, what, inWords(err))
}

// Writer writes an object, which exists only after Close has returned no error. If ctx ends
// before Close, there is no object.
func (s *Store) Writer(ctx context.Context, name string) (io.WriteCloser, error) {
	r, pipe := io.Pipe()
	w := &writer{PipeWriter: pipe, ctx: ctx, done: make(chan struct{})}
	// Closing a blob.Writer completes the object even after its context was cancelled, and that
	// of Azure panics if an upload failed. Upload, which reads from a reader, has neither fault.
	go func() {
		defer close(w.done)
		err := s.bucket.Upload(ctx, s.key(name), r, &blob.WriterOptions{
			BufferSize: partSize, MaxConcurrency: concurrency, ContentType: "application/octet-stream",
		})
		if err != nil {
			w.err = s.fail("write", name, err)
		}
		_ = r.CloseWithError(w.err)
	}()
	return w, nil
}

// A writer passes what is written to the upload.
type writer struct {
	*io.PipeWriter

	ctx  context.Context //nolint:containedctx // a writer lives as long as one upload
	done chan struct{}
	err  error
}

func (w *writer) Write(p []byte) (int, error) {
	n, err := w.PipeWriter.Write(p)
	if err != nil {
		<-w.done
		return n, w.err
	}
	return n, nil
}

// Close completes the object, unless ctx has ended: then there is none.
func (w *writer) Close() error {
	_ = w.CloseWithError(context.Cause(w.ctx))
	<-w.done
	return w.err
}

// smallWithin is how long a request for a small object, or for a page of a list, may take.
const smallWithin = time.Minute

// Write writes a small object.
func (s *Store) Write(ctx context.Context, name string, content []byte) error {
	ctx, cancel := context.WithTimeout(ctx, smallWithin)
	defer cancel()
	w, err := s.Writer(ctx, name)
	if err != nil {
		return err
	}
	if _, err := w.Write(content); err != nil {
		cancel()
		_ = w.Close()
		return err
	}
	return w.Close()
}

// Commit returns once all that was written survives the loss of the node: a volume's files are in
// the node's memory at first.
func (s *Store) Commit() error {
	if s.commit == nil {
		return nil
	}
	if err := s.commit(); err != nil {
		return s.fail("write", "", fmt.Errorf("not all that was written is on its disk: %w", err))
	}
	return nil
}

// Read reads a small object.
func (s *Store) Read(ctx context.Context, name string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, smallWithin)
	defer cancel()
	content, err := s.bucket.ReadAll(ctx, s.key(name))
	if err != nil {
		return nil, s.fail("read", name, err)
	}
	return content, nil
}

// Reader reads an object from an offset on.
func (s *Store) Reader(ctx context.Context, name string, offset int64) (io.ReadCloser, error) {
	r, err := s.bucket.NewRangeReader(ctx, s.key(name), offset, -1, nil)
	if err != nil {
		return nil, s.fail("read", name, err)
	}
	return &reader{r: r, store: s, name: name}, nil
}

type reader struct {
	r     *blob.Reader
	store *Store
	name  string
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // a Reader returns io.EOF itself
		return n, r.store.fail("read", r.name, err)
	}
	return n, err
}

func (r *reader) Close() error { return r.r.Close() }

// Delete deletes an object. It is no error if there is none.
func (s *Store) Delete(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, smallWithin)
	defer cancel()
	if err := s.bucket.Delete(ctx, s.key(name)); err != nil && !missing(err) {
		return s.fail("delete", name, err)
	}
	return nil
}

// An object is an entry of a list.
type object struct {
	name     string
	size     int64
	modified time.Time
}

// lists is how often a list is attempted while files are deleted meanwhile.
const lists = 10

// list lists the objects of a folder whose names begin with the prefix.
func (s *Store) list(ctx context.Context, folder, prefix string) ([]object, error) {
	var out []object
	err := s.each(ctx, folder, prefix, func(o object) { out = append(out, o) })
	return out, err
}

// each passes on the objects of a folder whose names begin with the prefix: there may be too many to hold all of them.
func (s *Store) each(ctx context.Context, folder, prefix string, do func(object)) error {
	last := ""
	for try := 1; ; try++ {
		// What was passed on before is not again. A volume lists names in their order.
		from := last
		err := s.eachOnce(ctx, folder, prefix, func(o object) {
			if try > 1 && o.name <= from {
				return
			}
			last = max(last, o.name)
			do(o)
		})
		// On a volume, a file that is deleted during the listing is an error.
		if errors.Is(err, fs.ErrNotExist) && try < lists {
			continue
		}
		if err != nil {
			return s.fail("list", strings.TrimSuffix(prefix, "/"), err)
		}
		return nil
	}
}

func (s *Store) eachOnce(ctx context.Context, folder, prefix string, do func(object)) error {
	it := s.bucket.List(&blob.ListOptions{Prefix: folder + "/" + prefix})
	for {
		o, err := next(ctx, it)
		if err == io.EOF { //nolint:errorlint // List returns io.EOF itself
			return nil
		}
		if err != nil {
			return err
		}
		do(object{name: strings.TrimPrefix(o.Key, folder+"/"), size: o.Size, modified: o.ModTime})
	}
}

// next returns the next object of a list, for which it requests a new page at times.
func next(ctx context.Context, it *blob.ListIterator) (*blob.ListObject, error) {
	ctx, cancel := context.WithTimeout(ctx, smallWithin)
	defer cancel()
	return it.Next(ctx)
}

// Sizes returns the sizes of a backup's objects, by their names without the id.
func (s *Store) Sizes(ctx context.Context, id string) (map[string]int64, error) {
	objects, err := s.list(ctx, s.folders.of(id), id+"/")
	if err != nil {
		return nil, err
	}
	out := make(map[string]int64, len(objects))
	for _, o := range objects {
		out[strings.TrimPrefix(o.name, id+"/")] = o.size
	}
	return out, nil
}

// probe is an object that is written and deleted to check whether both are allowed.
const probe = "probe"

// Probe checks whether objects can be written, read and deleted.
func (s *Store) Probe(ctx context.Context) error {
	if err := s.Write(ctx, probe, []byte("This object may be deleted.\n")); err != nil {
		return err
	}
	if _, err := s.Read(ctx, probe); err != nil {
		return err
	}
	return s.Delete(ctx, probe)
}
