package store

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gocloud.dev/blob"
	"gocloud.dev/blob/driver"
	"gocloud.dev/gcerrors"

	"github.com/storeplane/storeplane/internal/backup"
)

// many is a bucket with many backups of two objects each, one begun a minute after the other.
type many struct {
	driver.Bucket

	folder  string
	backups int

	// least and held are how much memory was in use before the first and after the last page of a list.
	least, held uint64
}

var firstOfMany = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const manyPerPage = 1000

// ListPaged implements driver.Bucket.
func (b *many) ListPaged(_ context.Context, o *driver.ListOptions) (*driver.ListPage, error) {
	at := 0
	if len(o.PageToken) > 0 {
		if _, err := fmt.Sscan(string(o.PageToken), &at); err != nil {
			return nil, err
		}
	} else {
		b.least = inUse()
	}
	page := &driver.ListPage{}
	for ; at < b.backups && len(page.Objects) < manyPerPage; at++ {
		id := firstOfMany.Add(time.Duration(at)*time.Minute).Format(backup.IDFormat) + "-abcdef"
		for _, name := range []string{"001-00001.binlog.zst", backup.ManifestObject} {
			page.Objects = append(page.Objects, &driver.ListObject{Key: b.folder + "/" + id + "/" + name, Size: 100})
		}
	}
	if at < b.backups {
		page.NextPageToken = fmt.Append(nil, at)
		return page, nil
	}
	b.held = inUse()
	return page, nil
}

// NewRangeReader implements driver.Bucket. Manifests are missing.
func (b *many) NewRangeReader(context.Context, string, int64, int64, *driver.ReaderOptions) (driver.Reader, error) {
	return nil, errors.New("there is none")
}

// ErrorCode implements driver.Bucket.
func (b *many) ErrorCode(error) gcerrors.ErrorCode { return gcerrors.NotFound }

// Close implements driver.Bucket.
func (b *many) Close() error { return nil }

// inUse returns how much memory is in use.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestMany: a listing holds what is chosen, and not all that there is.
func TestMany(t *testing.T) {
	const backups, most = 50_000, 2 << 20
	newest := firstOfMany.Add((backups - 1) * time.Minute)
	for name, tc := range map[string]struct {
		reason      string
		list        func(*Store) (*Listing, error)
		count       int
		first, last time.Time
	}{
		"Newest": {
			reason: "Those that end the list.", count: 16, first: newest.Add(-15 * time.Minute), last: newest,
			list: func(s *Store) (*Listing, error) { return s.Newest(t.Context(), 16) },
		},
		"Since": {
			reason: "The last hour.", count: 61, first: newest.Add(-time.Hour), last: newest,
			list: func(s *Store) (*Listing, error) { return s.Since(t.Context(), newest.Add(-time.Hour)) },
		},
		"Before": {
			reason: "The first hour.", count: 60, first: firstOfMany, last: firstOfMany.Add(59 * time.Minute),
			list: func(s *Store) (*Listing, error) { return s.Before(t.Context(), firstOfMany.Add(time.Hour)) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := &many{backups: backups}
			s := &Store{bucket: blob.NewBucket(b), folders: newFolders("shop/ledger-backup", backup.BinaryLog)}
			b.folder = s.folders.current
			l, err := tc.list(s)
			if err != nil {
				t.Fatal(err)
			}
			var got []time.Time
			for _, item := range l.Items {
				got = append(got, item.Entry().Time)
			}
			if len(got) != tc.count {
				t.Fatalf("%s\nwant %d backups, got %d", tc.reason, tc.count, len(got))
			}
			if diff := cmp.Diff([]time.Time{tc.first, tc.last}, []time.Time{got[0], got[len(got)-1]}); diff != "" {
				t.Errorf("%s\nfirst and last backup: -want, +got:\n%s", tc.reason, diff)
			}
			if b.held > b.least+most {
				t.Errorf("%s\nof %d backups %d bytes are held, want %d at most", tc.reason, backups, b.held-b.least, most)
			}
		})
	}
}

// TestNewestUnordered: the newest backups are chosen in whatever order a store lists them.
func TestNewestUnordered(t *testing.T) {
	s, _ := volume(t, Options{})
	// The folder that is listed first has the newest one.
	s.folders.current, s.folders.old = s.folders.old, s.folders.current
	old := backup.NewID(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC))
	for _, name := range []string{"manifest.json", "001-00001"} {
		if err := s.Write(t.Context(), old+"/"+name, []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	l, err := s.Newest(t.Context(), 1)
	if err != nil || len(l.Items) != 1 || l.Items[0].ID != id {
		t.Errorf("want %s, got %v, %v", id, l, err)
	}
}
