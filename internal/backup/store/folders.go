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

// objects returns the objects of all backups, by id and name.
func (s *Store) objects(ctx context.Context) (map[string]map[string]object, error) {
	out := map[string]map[string]object{}
	for _, folder := range s.folders.all() {
		if s.readable != nil {
			if err := s.readable(folder); err != nil {
				return nil, s.fail("list", "", err)
			}
		}
		listed, err := s.list(ctx, folder, millennium)
		if err != nil {
			return nil, err
		}
		for _, o := range listed {
			id, name, ok := backupOf(o.name)
			if !ok {
				continue
			}
			s.folders.found(id, folder)
			if out[id] == nil {
				out[id] = map[string]object{}
			}
			out[id][name] = o
		}
	}
	return out, nil
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
