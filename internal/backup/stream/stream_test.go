package stream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"
	"testing"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"github.com/storeplane/storeplane/internal/backup"
)

// memory is a store in memory.
type memory struct {
	mu      sync.Mutex
	objects map[string][]byte

	// failAfter is the number of bytes after which writing fails, or 0 for no limit.
	failAfter int
	// breakAfter is the number of bytes after which each read breaks, or 0 for no limit.
	breakAfter int
}

func newMemory() *memory { return &memory{objects: map[string][]byte{}} }

type memoryWriter struct {
	bytes.Buffer

	ctx  context.Context //nolint:containedctx // as in the real writer
	m    *memory
	name string
}

var errStore = backup.Errorf(backup.StoreUnreachable, "the store is gone")

func (m *memory) Writer(ctx context.Context, name string) (io.WriteCloser, error) {
	return &memoryWriter{ctx: ctx, m: m, name: name}, nil
}

func (w *memoryWriter) Write(p []byte) (int, error) {
	if w.m.failAfter > 0 && w.Len()+len(p) > w.m.failAfter {
		return 0, errStore
	}
	return w.Buffer.Write(p)
}

func (w *memoryWriter) Close() error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	w.m.mu.Lock()
	defer w.m.mu.Unlock()
	w.m.objects[w.name] = bytes.Clone(w.Bytes())
	return nil
}

type breaking struct {
	io.Reader

	left int
}

func (b *breaking) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, errStore
	}
	n, err := b.Reader.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

func (m *memory) Reader(_ context.Context, name string, offset int64) (io.ReadCloser, error) {
	o, ok := m.objects[name]
	if !ok {
		return nil, backup.Errorf(backup.BackupMissing, "there is no %s", name)
	}
	r := io.Reader(bytes.NewReader(o[min(offset, int64(len(o))):]))
	if m.breakAfter > 0 && offset == 0 {
		r = &breaking{Reader: r, left: m.breakAfter}
	}
	return io.NopCloser(r), nil
}

func newKey(t interface{ Fatal(args ...any) }) Key {
	i, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	k, err := ParseKey(i.String())
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// put writes a dump into a store.
func put(t interface{ Fatal(args ...any) }, m *memory, dump []byte, o Options) []backup.Object {
	w, err := NewWriter(context.Background(), m, "id", o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(dump); err != nil {
		t.Fatal(err)
	}
	objects, n, err := w.Finish()
	if err != nil || n != int64(len(dump)) {
		t.Fatal(n, err)
	}
	return objects
}

// get reads a dump.
func get(m *memory, objects []backup.Object, o Options, key Key) ([]byte, error) {
	r, err := NewReader(context.Background(), m, "id", objects, o.Compression, o.Key.Recipient(), key)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// TestThereAndBack: what was written is read, however it is split into objects, and any changed
// byte is detected.
func TestThereAndBack(t *testing.T) {
	key := newKey(t)
	rapid.Check(t, func(t *rapid.T) {
		dump := bytes.Repeat(rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "dump"), rapid.IntRange(1, 50).Draw(t, "times"))
		o := Options{
			Compression: rapid.SampledFrom([]string{Zstd, None}).Draw(t, "compression"), Prefix: "001", Suffix: ".sql",
			ObjectSize: rapid.Int64Range(1, 700).Draw(t, "size"),
		}
		if rapid.Bool().Draw(t, "encrypted") {
			o.Key = key
		}
		m := newMemory()
		objects := put(t, m, dump, o)
		got, err := get(m, objects, o, o.Key)
		if err != nil || !bytes.Equal(got, dump) {
			t.Fatalf("read %d bytes of %d: %v", len(got), len(dump), err)
		}
		if err := Check(context.Background(), m, "id", objects); err != nil {
			t.Fatal(err)
		}

		names := slices.DeleteFunc(slices.Sorted(maps.Keys(m.objects)), func(n string) bool { return len(m.objects[n]) == 0 })
		if len(names) == 0 {
			return
		}
		name := rapid.SampledFrom(names).Draw(t, "object")
		content := bytes.Clone(m.objects[name])
		switch rapid.IntRange(0, 3).Draw(t, "fault") {
		case 0:
			content[rapid.IntRange(0, len(content)-1).Draw(t, "at")] ^= byte(1 << rapid.IntRange(0, 7).Draw(t, "bit"))
			m.objects[name] = content
		case 1:
			m.objects[name] = content[:rapid.IntRange(0, len(content)-1).Draw(t, "length")]
		case 2:
			m.objects[name] = append(content, 0)
		default:
			delete(m.objects, name)
		}
		if _, err := get(m, objects, o, o.Key); backup.ReasonOf(err) != backup.BackupCorrupt {
			t.Errorf("a fault was read as %v", err)
		}
		if err := Check(context.Background(), m, "id", objects); backup.ReasonOf(err) != backup.BackupCorrupt {
			t.Errorf("a fault was checked as %v", err)
		}
	})
}

func TestNames(t *testing.T) {
	m := newMemory()
	objects := put(t, m, make([]byte, 250), Options{Compression: None, Prefix: "002", Suffix: ".pgdump", ObjectSize: 100})
	var names []string
	for _, o := range objects {
		names = append(names, o.Name)
	}
	if diff := cmp.Diff([]string{"002-00001.pgdump", "002-00002.pgdump", "002-00003.pgdump"}, names); diff != "" {
		t.Errorf("names: -want, +got:\n%s", diff)
	}
	o := Options{Compression: Zstd, Key: newKey(t), Suffix: ".sql"}
	if got := o.suffix(); got != ".sql.zst.age" {
		t.Errorf("the suffix is %s", got)
	}
}

func TestStoreFails(t *testing.T) {
	m := newMemory()
	m.failAfter = 50
	w, err := NewWriter(t.Context(), m, "id", Options{Compression: None, Prefix: "001"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 100)); !errors.Is(err, errStore) {
		t.Errorf("writing said %v", err)
	}
	if _, _, err := w.Finish(); !errors.Is(err, errStore) {
		t.Errorf("finishing said %v", err)
	}
	if len(m.objects) > 0 {
		t.Errorf("objects came to be: %v", m.objects)
	}
}

func TestAborted(t *testing.T) {
	m := newMemory()
	w, err := NewWriter(t.Context(), m, "id", Options{Compression: Zstd, Key: newKey(t), Prefix: "001"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	w.Abort()
	if _, _, err := w.Finish(); err == nil {
		t.Error("an aborted dump was finished")
	}
	if len(m.objects) > 0 {
		t.Errorf("objects came to be: %v", m.objects)
	}
}

// TestBreaks: a broken connection is opened again, from where it broke.
func TestBreaks(t *testing.T) {
	m := newMemory()
	dump := bytes.Repeat([]byte("0123456789"), 100)
	o := Options{Compression: None, Prefix: "001"}
	objects := put(t, m, dump, o)
	m.breakAfter = 123
	got, err := get(m, objects, o, Key{})
	if err != nil || !bytes.Equal(got, dump) {
		t.Errorf("read %d bytes: %v", len(got), err)
	}
}

// prose returns rows of numbers, words and noise, like a dump.
func prose(n int) []byte {
	var b bytes.Buffer
	x := uint64(1)
	for b.Len() < n {
		x = x*6364136223846793005 + 1442695040888963407
		b.WriteString("customer ")
		b.WriteByte(byte('a' + x>>60))
		const hex = "0123456789abcdef"
		for i := range 24 {
			b.WriteByte(hex[x>>(2*i)&15])
		}
		b.WriteString("\t2026-01-01 00:00:00\tpending\n")
	}
	return b.Bytes()[:n]
}

// BenchmarkStream compares the processing of a dump with a plain pipe, which is zstd alone.
func BenchmarkStream(b *testing.B) {
	dump := prose(64 << 20)
	key := newKey(b)
	nowhere := &null{}
	cases := map[string]Options{
		"Plain":   {Compression: None, Prefix: "001"},
		"Zstd":    {Compression: Zstd, Prefix: "001"},
		"Age":     {Compression: None, Key: key, Prefix: "001"},
		"ZstdAge": {Compression: Zstd, Key: key, Prefix: "001"},
	}
	for name, o := range cases {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(dump)))
			b.ReportAllocs()
			var size int64
			for b.Loop() {
				w, err := NewWriter(b.Context(), nowhere, "id", o)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.CopyBuffer(w, onlyReader{bytes.NewReader(dump)}, make([]byte, 256<<10)); err != nil {
					b.Fatal(err)
				}
				objects, _, err := w.Finish()
				if err != nil {
					b.Fatal(err)
				}
				size = objects[0].Size
			}
			b.ReportMetric(float64(len(dump))/float64(size), "ratio")
		})
	}
	for name, l := range map[string]zstd.EncoderLevel{"Fastest": zstd.SpeedFastest, "Default": zstd.SpeedDefault} {
		b.Run("Floor"+name, func(b *testing.B) {
			b.SetBytes(int64(len(dump)))
			for b.Loop() {
				w, err := zstd.NewWriter(io.Discard, zstd.WithEncoderLevel(l), zstd.WithEncoderConcurrency(2))
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.CopyBuffer(onlyWriter{w}, onlyReader{bytes.NewReader(dump)}, make([]byte, 256<<10)); err != nil {
					b.Fatal(err)
				}
				_ = w.Close()
			}
		})
	}
}

type (
	onlyReader struct{ io.Reader }
	onlyWriter struct{ io.Writer }
)

// null is a store that discards everything.
type null struct{}

type nullWriter struct{ io.Writer }

func (nullWriter) Close() error { return nil }

func (*null) Writer(context.Context, string) (io.WriteCloser, error) {
	return nullWriter{io.Discard}, nil
}

func (*null) Reader(context.Context, string, int64) (io.ReadCloser, error) { return nil, errStore }
