package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/storeplane/storeplane/internal/backup"
)

// An Item is one backup in the store.
type Item struct {
	ID string

	// Manifest is the manifest of the backup, or nil if it is missing or cannot be read.
	Manifest *backup.Manifest

	// Written is when the manifest was last written, according to the store and not to the
	// manifest, or zero if that is not known.
	Written time.Time

	// Verified is when the backup was last restored and found good.
	Verified *time.Time

	// Err is what can be found wrong with it without reading its objects, or nil: an object is
	// missing or has another size than when it was written, or the manifest is not authentic.
	Err error
}

// Entry returns the entry of a Catalog.
func (i Item) Entry() backup.Entry {
	e := backup.Entry{ID: i.ID, Verified: i.Verified}
	if t, err := backup.ParseID(i.ID); err == nil {
		e.Time = t
	}
	if m := i.Manifest; m != nil {
		e.Time = m.Started
		e.Seconds = m.Finished.Sub(m.Started).Round(time.Millisecond).Seconds()
		e.Size = m.Size()
	}
	return e
}

// A Listing is the content of the store, each part oldest first.
type Listing struct {
	// Items are finished backups, good or not.
	Items []Item

	// Unfinished are the ids of backups that were begun and not finished: some are running,
	// others were left by a pod that was killed.
	Unfinished []string
}

// Good returns the backups without an Err.
func (l *Listing) Good() []Item {
	return slices.DeleteFunc(slices.Clone(l.Items), func(i Item) bool { return i.Err != nil })
}

// atOnce is how many manifests are read at a time.
const atOnce = 8

// List lists the backups in the store.
func (s *Store) List(ctx context.Context) (*Listing, error) { return s.listOf(ctx, choice{}) }

// Newest lists the newest backups, n at most: the manifests of older ones are not read.
func (s *Store) Newest(ctx context.Context, n int) (*Listing, error) {
	return s.listOf(ctx, choice{newest: n})
}

// Since lists the backups that were begun at a time or later, by the clocks of their pods: the manifests of older ones
// are not read.
func (s *Store) Since(ctx context.Context, at time.Time) (*Listing, error) {
	return s.listOf(ctx, choice{from: at.UTC().Format(backup.IDFormat)})
}

// Before lists the backups that were begun before a time, by the clocks of their pods: the manifests of newer ones are
// not read.
func (s *Store) Before(ctx context.Context, at time.Time) (*Listing, error) {
	return s.listOf(ctx, choice{before: at.UTC().Format(backup.IDFormat)})
}

// listOf lists the backups that are chosen.
func (s *Store) listOf(ctx context.Context, c choice) (*Listing, error) {
	backups, err := s.objects(ctx, c)
	if err != nil {
		return nil, err
	}
	l := &Listing{}
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for _, id := range slices.Sorted(maps.Keys(backups)) {
		objects := backups[id]
		// A backup without either object was finished, and its manifest was deleted since. It is
		// listed, as the manifest may be restored.
		_, finished := objects[backup.ManifestObject]
		_, running := objects[RunningObject]
		if running && !finished {
			l.Unfinished = append(l.Unfinished, id)
			continue
		}
		g.Go(func() error {
			item, err := s.item(ctx, id, objects)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			l.Items = append(l.Items, item)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	slices.SortFunc(l.Items, func(a, b Item) int { return strings.Compare(a.ID, b.ID) })
	slices.Sort(l.Unfinished)
	return l, nil
}

// item returns the backup with the id, which has these objects.
func (s *Store) item(ctx context.Context, id string, objects map[string]object) (Item, error) {
	item := Item{ID: id}
	if _, ok := objects[backup.VerificationObject]; ok {
		v := &backup.Verification{}
		switch ok, err := s.ReadJSON(ctx, id+"/"+backup.VerificationObject, v); {
		case backup.ReasonOf(err) == backup.BackupMissing:
			// It was deleted since it was listed: the backup expires.
		case err != nil:
			return Item{}, err
		case ok && s.seal.CheckVerification(v, id):
			item.Verified = &v.Time
		}
	}
	m := &backup.Manifest{}
	err := s.Manifest(ctx, id, m)
	switch backup.ReasonOf(err) {
	case "":
		sizes := make(map[string]int64, len(objects))
		for name, o := range objects {
			sizes[name] = o.size
		}
		item.Manifest, item.Written = m, s.writtenAt(id, objects[backup.ManifestObject])
		if item.Err = s.seal.CheckManifest(m); item.Err == nil {
			item.Err = Compare(m, sizes)
		}
	case backup.BackupMissing, backup.BackupCorrupt:
		item.Err = err
	default:
		return Item{}, err
	}
	return item, nil
}

// writtenAt returns when a manifest was last written.
func (s *Store) writtenAt(id string, o object) time.Time {
	if s.written == nil {
		return o.modified
	}
	return s.written(s.key(id + "/" + backup.ManifestObject))
}

// Manifest reads the manifest of a backup.
func (s *Store) Manifest(ctx context.Context, id string, m *backup.Manifest) error {
	name := id + "/" + backup.ManifestObject
	ok, err := s.ReadJSON(ctx, name, m)
	switch {
	case backup.ReasonOf(err) == backup.BackupMissing:
		return backup.Errorf(backup.BackupMissing, "the manifest of backup %s is gone from %s", id, s.where)
	case err != nil:
		return err
	case !ok || m.ID != id:
		return backup.Errorf(backup.BackupCorrupt, "the manifest of backup %s is not what was written", id)
	case m.Version != backup.ManifestVersion:
		return backup.Errorf(backup.BackupCorrupt, "the manifest of backup %s has version %d, of which this program knows nothing", id, m.Version)
	}
	return nil
}

// ReadJSON reads an object, and reports whether it is valid JSON of its type.
func (s *Store) ReadJSON(ctx context.Context, name string, into any) (bool, error) {
	content, err := s.Read(ctx, name)
	if err != nil {
		return false, err
	}
	return json.Unmarshal(content, into) == nil, nil
}

// Compare checks that all objects of a manifest exist and have their original sizes.
func Compare(m *backup.Manifest, sizes map[string]int64) error {
	for _, d := range m.Dumps {
		for _, o := range d.Objects {
			switch size, ok := sizes[o.Name]; {
			case !ok:
				return backup.Errorf(backup.BackupCorrupt, "object %s of backup %s is missing", o.Name, m.ID)
			case size != o.Size:
				return backup.Errorf(backup.BackupCorrupt, "object %s of backup %s has %d bytes, and had %d when it was written", o.Name, m.ID, size, o.Size)
			}
		}
	}
	return nil
}

// Remove removes all objects of a backup. If it is interrupted, the rest counts as an unfinished
// backup, and not as one that only looks complete.
func (s *Store) Remove(ctx context.Context, id string) error {
	if _, err := backup.ParseID(id); err != nil {
		return fmt.Errorf("cannot remove a backup: %w", err)
	}
	// A full store refuses this object, but has to be emptied all the same.
	if err := s.Write(ctx, id+"/"+RunningObject, []byte("This backup is being removed.\n")); err != nil && backup.ReasonOf(err) != backup.StoreFull {
		return err
	}
	for _, name := range []string{backup.VerificationObject, backup.ManifestObject} {
		if err := s.Delete(ctx, id+"/"+name); err != nil {
			return err
		}
	}
	uploads, err := s.unfinished(ctx)
	if err != nil {
		return err
	}
	if err := s.abandon(ctx, uploads[id]); err != nil {
		return err
	}
	objects, err := s.list(ctx, s.folders.of(id), id+"/")
	if err != nil {
		return err
	}
	for _, o := range objects {
		if o.name == id+"/"+RunningObject {
			continue
		}
		if err := s.Delete(ctx, o.name); err != nil {
			return err
		}
	}
	if err := s.Delete(ctx, id+"/"+RunningObject); err != nil {
		return err
	}
	if s.tidy != nil {
		s.tidy(s.key(id))
	}
	return nil
}

// RemoveAll removes all backups. Other objects in their folders stay, since they belong to
// another program.
func (s *Store) RemoveAll(ctx context.Context) error {
	ids := map[string]bool{}
	if err := s.eachObject(ctx, func(id, _ string, _ object) { ids[id] = true }); err != nil {
		return err
	}
	var errs []error
	for id := range ids {
		if err := s.Remove(ctx, id); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	uploads, err := s.unfinished(ctx)
	if err != nil {
		return err
	}
	for _, u := range uploads {
		if err := s.abandon(ctx, u); err != nil {
			return err
		}
	}
	return s.removeProbes(ctx)
}

// Beside returns the names of the objects in the folder of the backups that begin with a prefix, and belong to none.
func (s *Store) Beside(ctx context.Context, prefix string) ([]string, error) {
	var out []string
	err := s.each(ctx, s.folders.current, prefix, func(o object) { out = append(out, o.name) })
	return out, err
}

// removeProbes removes objects that a check may have left, and the folders if they are empty.
func (s *Store) removeProbes(ctx context.Context) error {
	for _, folder := range s.folders.all() {
		if err := s.bucket.Delete(ctx, folder+"/"+probe); err != nil && !missing(err) {
			return s.fail("delete", probe, err)
		}
	}
	if s.tidy != nil {
		s.tidy(s.folders.current)
		s.tidy(s.folders.whole)
	}
	return nil
}
