package store

import (
	"context"
	"strings"
	"sync"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
)

// folders are the folders of the backups of a Backup. They may contain other objects: the old one
// may also be that of a DatabaseCluster, with its pgBackRest repository.
type folders struct {
	// current is where backups are written, and old is where older versions wrote them, or "" for a method
	// that older versions did not have.
	current, old string

	// whole is the folder that has those of all methods.
	whole string

	mu sync.Mutex
	// inOld are the ids of the backups that were found in the old folder.
	inOld map[string]bool
}

func newFolders(folder string, m backupv1.Method) folders {
	switch m {
	case backupv1.Physical:
		return folders{current: backup.Physical(folder), whole: folder}
	case backup.BinaryLog:
		return folders{current: backup.BinaryLogs(folder), whole: folder}
	case backupv1.Logical:
	}
	return folders{current: backup.Logical(folder), old: folder, whole: folder, inOld: map[string]bool{}}
}

// all returns the folders that have backups.
func (f *folders) all() []string {
	if f.old == "" {
		return []string{f.current}
	}
	return []string{f.old, f.current}
}

// of returns the folder of an object by its name, which begins with the id of its backup.
func (f *folders) of(name string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id, _, _ := strings.Cut(name, "/"); f.inOld[id] {
		return f.old
	}
	return f.current
}

// found records the folder in which a backup was found.
func (f *folders) found(id, folder string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if folder == f.old {
		f.inOld[id] = true
	}
}

// millennium is the first digit of all ids. As a prefix it avoids listing a pgBackRest repository
// with millions of objects.
const millennium = "2"

// eachObject passes on the objects of all backups, with the ids of these and the names in them.
func (s *Store) eachObject(ctx context.Context, do func(id, name string, o object)) error {
	for _, folder := range s.folders.all() {
		if s.readable != nil {
			if err := s.readable(folder); err != nil {
				return s.fail("list", "", err)
			}
		}
		err := s.each(ctx, folder, millennium, func(o object) {
			id, name, ok := backupOf(o.name)
			if !ok {
				return
			}
			s.folders.found(id, folder)
			do(id, name, o)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// A choice is which backups are listed, by their ids, which are in the order of time: those from one on, and before
// another one, unless these are "", and of them the newest, unless that is 0.
type choice struct {
	from, before string
	newest       int
}

// objects returns the objects of the backups that are chosen, by id and name. It holds no others: a database may have
// hundreds of thousands of segments of binary logs.
func (s *Store) objects(ctx context.Context, c choice) (map[string]map[string]object, error) {
	out := map[string]map[string]object{}
	err := s.eachObject(ctx, func(id, name string, o object) {
		if id < c.from || c.before != "" && id >= c.before {
			return
		}
		if out[id] == nil {
			out[id] = map[string]object{}
			// The one that is removed may be this one.
			if c.newest > 0 && len(out) > c.newest {
				delete(out, oldest(out))
			}
		}
		if in := out[id]; in != nil {
			in[name] = o
		}
	})
	return out, err
}

// oldest returns the first id.
func oldest[V any](of map[string]V) string {
	first := ""
	for id := range of {
		if first == "" || id < first {
			first = id
		}
	}
	return first
}

// backupOf splits the name of an object in a folder into the id of its backup and its name in the
// backup. An object whose name does not begin with an id belongs to no backup.
func backupOf(name string) (id, in string, ok bool) {
	id, in, ok = strings.Cut(name, "/")
	if _, err := backup.ParseID(id); err != nil {
		return "", "", false
	}
	return id, in, ok
}

// unfinished returns the unfinished uploads of the backups, by their ids.
func (s *Store) unfinished(ctx context.Context) (map[string][]upload, error) {
	out := map[string][]upload{}
	if s.uploads == nil {
		return out, nil
	}
	for _, folder := range s.folders.all() {
		uploads, err := s.uploads(ctx, folder+"/"+millennium)
		if err != nil {
			return nil, s.fail("list unfinished uploads of", "", err)
		}
		for _, u := range uploads {
			if id, _, ok := backupOf(strings.TrimPrefix(u.key, folder+"/")); ok {
				out[id] = append(out[id], u)
			}
		}
	}
	return out, nil
}

// abandon aborts uploads.
func (s *Store) abandon(ctx context.Context, uploads []upload) error {
	for _, u := range uploads {
		if err := s.abort(ctx, u); err != nil {
			return s.fail("remove an unfinished upload of", "", err)
		}
	}
	return nil
}
