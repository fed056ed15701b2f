package binlog

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/storeplane/storeplane/internal/gtid"
)

// The files of testdata are of MySQL 9.7.4: rows has three transactions, and tagged has two
// with a tag.

func content(t testing.TB, name string) []byte {
	t.Helper()
	out, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A read is what was read of a file.
type read struct {
	IDs       []string
	Committed []time.Time
	Ends      []int64
}

// readAll reads a file, and returns the error that it ends with.
func readAll(file []byte) (read, error) {
	size := int64(len(file))
	out := read{}
	l, err := Open(bytes.NewReader(file), size)
	if err != nil {
		return out, err
	}
	for {
		t, err := l.Next(size)
		if err != nil {
			return out, err
		}
		out.IDs, out.Committed, out.Ends = append(out.IDs, t.ID.String()), append(out.Committed, t.Committed), append(out.Ends, t.End)
	}
}

func TestTransactions(t *testing.T) {
	const server = "541947d5-eac4-11f1-aa87-02fc00000001"
	at := func(text string) time.Time {
		out, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	cases := map[string]struct {
		file string
		want read
		err  error
	}{
		"Closed": {file: "rows", err: io.EOF, want: read{
			IDs:       []string{server + ":9", server + ":10", server + ":11"},
			Committed: []time.Time{at("2026-11-28T00:41:07.101428Z"), at("2026-11-28T00:41:17.547617Z"), at("2026-11-28T00:41:17.549535Z")},
			Ends:      []int64{474, 668, 943},
		}},
		"Tagged": {file: "tagged", err: io.EOF, want: read{
			IDs:       []string{server + ":mytag:1", server + ":mytag:2"},
			Committed: []time.Time{at("2026-11-28T00:43:36.750166Z"), at("2026-11-28T00:43:36.846187Z")},
			Ends:      []int64{465, 732},
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := readAll(content(t, tc.file))
			if !errors.Is(err, tc.err) {
				t.Errorf("Next(): want %v in the end, got %v", tc.err, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("transactions: -want, +got:\n%s", diff)
			}
		})
	}
}

// TestAnyPart: a file that ends anywhere has the transactions that are in it whole, and may grow.
func TestAnyPart(t *testing.T) {
	for _, name := range []string{"rows", "tagged"} {
		file := content(t, name)
		all, _ := readAll(file)
		for n := range file {
			got, err := readAll(file[:n])
			if !errors.Is(err, ErrIncomplete) {
				t.Fatalf("%s, %d bytes: want %v, got %v", name, n, ErrIncomplete, err)
			}
			want := 0
			for _, end := range all.Ends {
				if end <= int64(n) {
					want++
				}
			}
			if len(got.IDs) != want {
				t.Fatalf("%s, %d bytes: want %d transactions, got %d", name, n, want, len(got.IDs))
			}
		}
	}
}

// TestGrows: what follows is read where the reading had stopped.
func TestGrows(t *testing.T) {
	file := content(t, "rows")
	all, _ := readAll(file)
	l, err := Open(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for n := l.Head(); n <= int64(len(file)); n++ {
		tx, err := l.Next(n)
		if err == nil {
			got = append(got, tx.ID.String())
		} else if !errors.Is(err, ErrIncomplete) && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(all.IDs, got); diff != "" {
		t.Errorf("transactions of a file that grows: -want, +got:\n%s", diff)
	}
}

// TestBegun: which transaction it is whose end is missing is known from its first event.
func TestBegun(t *testing.T) {
	file := content(t, "rows")
	all, _ := readAll(file)
	for n := all.Ends[0] + 1; n < all.Ends[1]; n++ {
		l, err := OpenAt(bytes.NewReader(file), n, all.Ends[0])
		if err != nil {
			t.Fatal(err)
		}
		first, err := l.event(all.Ends[0], all.Ends[1])
		if err != nil {
			t.Fatal(err)
		}
		want := Transaction{}
		if n >= all.Ends[0]+first.size {
			want, _ = l.Next(all.Ends[1])
			l.at = all.Ends[0]
		}
		got, err := l.Next(n)
		if diff := cmp.Diff(want, got, cmp.Comparer(gtid.Set.Equal)); !errors.Is(err, ErrIncomplete) || diff != "" {
			t.Fatalf("%d bytes: want %v with the transaction, got %v, -want, +got:\n%s", n, ErrIncomplete, err, diff)
		}
	}
}

// TestChanged: a byte of a transaction that differs from what was written is an error, and no program fails.
func TestChanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"rows", "tagged"}).Draw(t, "file")
		file, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		all, _ := readAll(file)
		at := rapid.IntRange(0, int(all.Ends[len(all.Ends)-1])-1).Draw(t, "at")
		file[at] ^= byte(1 << rapid.IntRange(0, 7).Draw(t, "bit"))
		got, err := readAll(file)
		if err == nil || len(got.IDs) == len(all.IDs) {
			t.Errorf("a changed byte at %d was not noticed: %v", at, err)
		}
	})
}

// TestAlone: the head of a file with some of its transactions is a file.
func TestAlone(t *testing.T) {
	file := content(t, "rows")
	all, _ := readAll(file)
	l, err := Open(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	part := append(bytes.Clone(file[:l.Head()]), file[all.Ends[0]:all.Ends[2]]...)
	got, err := readAll(part)
	if !errors.Is(err, ErrIncomplete) {
		t.Errorf("Next(): want %v in the end, got %v", ErrIncomplete, err)
	}
	if diff := cmp.Diff(all.IDs[1:], got.IDs); diff != "" {
		t.Errorf("transactions: -want, +got:\n%s", diff)
	}
}

func FuzzNext(f *testing.F) {
	for _, name := range []string{"rows", "tagged"} {
		f.Add(content(f, name))
	}
	f.Fuzz(func(_ *testing.T, file []byte) { _, _ = readAll(file) })
}
