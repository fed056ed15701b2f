package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"filippo.io/age"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/store"
)

// soon waits up to a minute for the condition.
func soon(t *testing.T, what string, is func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !is() {
		if time.Now().After(deadline) {
			t.Errorf("%s did not come to be", what)
			return
		}
		time.Sleep(5 * time.Millisecond) // there is no event to wait for
	}
}

// halfWay runs a backup, and calls do when part of it is written.
func (f *fixture) halfWay(d *destination, do func()) (backup.Report, int) {
	f.t.Helper()
	before := len(d.objects(f.t))
	done := make(chan struct{})
	go func() {
		defer close(done)
		// The marker of a running backup, and some objects.
		soon(f.t, "a part of the backup", func() bool { return count(d) > before+4 })
		do()
	}()
	r, code := f.do(f.t.Context(), backup.Backup)
	<-done
	return r, code
}

// count returns the number of files in a store, some of which may be removed meanwhile.
func count(d *destination) int {
	n := 0
	_ = filepath.WalkDir(d.files, func(_ string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			n++
		}
		return nil
	})
	return n
}

// nothingLeft checks that a store that keeps files is empty.
func nothingLeft(t *testing.T, d *destination) {
	t.Helper()
	if left := d.objects(t); len(left) > 0 {
		t.Errorf("objects are left: %v", left)
	}
}

// loaded starts a server with a database that takes some time to dump.
func loaded(t *testing.T, start func(*testing.T) *source) *source {
	t.Helper()
	s := start(t)
	createDatabase(t, s, "shop")
	s.data(t, "shop", "load", "--rows=2000", "--bulk=40")
	return s
}

func TestFaults(t *testing.T) {
	long(t)
	s := loaded(t, startPostgreSQL)

	// fake-gcs-server cannot be used: it cannot list a bucket while objects are deleted from it.
	t.Run("StoreDies", func(t *testing.T) {
		d := startS3(t)
		f := newFixture(t, s, "shop", d)
		began := time.Now()
		r, code := f.halfWay(d, d.down)
		f.failed(r, code, backup.StoreUnreachable)
		t.Logf("it took %s", time.Since(began).Round(time.Second))
		d.up()
		made := f.succeed(backup.Backup)
		if made.Catalog.Count != 1 {
			t.Errorf("there are %d backups and should be one", made.Catalog.Count)
		}
		for _, o := range d.objects(t) {
			if !strings.Contains(o, made.Backup.ID) {
				t.Errorf("the next backup left %s", o)
			}
		}
		f.succeed(backup.Verify)
	})

	t.Run("DatabaseDies", func(t *testing.T) {
		d := newVolume(t)
		f := newFixture(t, s, "shop", d)
		r, code := f.halfWay(d, s.down)
		s.up()
		f.failed(r, code, backup.SourceUnreachable)
		nothingLeft(t, d)
		soon(t, "the database", func() bool {
			r, _ := f.do(t.Context(), backup.Check)
			return r.Failure == nil
		})
		f.succeed(backup.Backup)
	})

	t.Run("Cancelled", func(t *testing.T) {
		for _, kind := range []backupv1.StoreType{backupv1.S3, backupv1.GCS, backupv1.Volume} {
			t.Run(string(kind), func(t *testing.T) {
				d := destinations[kind](t)
				f := newFixture(t, s, "shop", d)
				ctx, cancel := context.WithCancel(t.Context())
				go func() {
					soon(t, "a part of the backup", func() bool { return count(d) > 4 })
					cancel()
				}()
				r, code := f.do(ctx, backup.Backup)
				f.failed(r, code, backup.Interrupted)
				nothingLeft(t, d)
				f.succeed(backup.Backup)
			})
		}
	})

	t.Run("Killed", func(t *testing.T) {
		d := startS3(t)
		f := newFixture(t, s, "shop", d)
		// This is what a pod leaves that is killed without cleanup.
		st := f.open()
		id := backup.NewID(time.Now().Add(-time.Hour))
		must(t, st.Write(t.Context(), id+"/"+store.RunningObject, nil))
		must(t, st.Write(t.Context(), id+"/001-00001.pgdump.zst", []byte("half")))
		r := f.succeed(backup.Check)
		if r.Catalog.Count != 0 {
			t.Errorf("what is unfinished counts as a backup")
		}
		made := f.succeed(backup.Backup)
		for _, o := range d.objects(t) {
			if !strings.Contains(o, made.Backup.ID) {
				t.Errorf("the next backup left %s", o)
			}
		}
	})

	t.Run("TwoAtOnce", func(t *testing.T) {
		d := newVolume(t)
		f := newFixture(t, s, "shop", d)
		st := f.open()
		id := backup.NewID(time.Now())
		stop, err := st.Keep(t.Context(), id)
		must(t, err)
		f.succeed(backup.Backup)
		stop()
		if !slices.ContainsFunc(d.objects(t), func(o string) bool { return strings.Contains(o, id) }) {
			t.Errorf("a backup removed another one that is being made")
		}
	})

	t.Run("Content", func(t *testing.T) { testContent(t, s) })
	t.Run("Key", func(t *testing.T) { testKey(t, s) })
	t.Run("Forged", func(t *testing.T) { testForged(t, s) })
	t.Run("Retention", func(t *testing.T) { testRetention(t, s) })
	t.Run("Query", func(t *testing.T) { testQuery(t, s) })
	t.Run("VolumeFull", func(t *testing.T) {
		d := newVolume(t)
		tmpfs(t, d.volume, "24m")
		f := newFixture(t, s, "shop", d)
		f.fail(backup.Backup, backup.StoreFull)
		nothingLeft(t, d)
		must(t, syscall.Mount("tmpfs", d.volume, "tmpfs", syscall.MS_REMOUNT, "size=200m"))
		f.succeed(backup.Backup)
	})
}

// tmpfs mounts a tmpfs of a size at a folder.
func tmpfs(t *testing.T, dir, size string) {
	t.Helper()
	err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=1777,size="+size)
	if errors.Is(err, syscall.EPERM) {
		// Only root may mount. The suite backup fills a pod's disk, whichever user runs it.
		t.Skipf("a small disk cannot be mounted here: %v", err)
	}
	must(t, err)
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
}

// testContent: a backup that was changed is recognized.
func testContent(t *testing.T, s *source) {
	cases := map[string]struct {
		reason string
		do     func(t *testing.T, file string)
		want   backup.Reason
	}{
		"FlippedByte": {reason: "One byte in the middle is not what was written.", want: backup.BackupCorrupt, do: func(t *testing.T, file string) {
			content, err := os.ReadFile(file)
			must(t, err)
			content[len(content)/2] ^= 1
			must(t, os.WriteFile(file, content, 0o600))
		}},
		"LastByte": {reason: "Neither is the last one.", want: backup.BackupCorrupt, do: func(t *testing.T, file string) {
			content, err := os.ReadFile(file)
			must(t, err)
			content[len(content)-1] ^= 1
			must(t, os.WriteFile(file, content, 0o600))
		}},
		"Truncated": {reason: "An object is cut off.", want: backup.BackupCorrupt, do: func(t *testing.T, file string) { must(t, os.Truncate(file, 1000)) }},
		"Longer": {reason: "An object has more than was written.", want: backup.BackupCorrupt, do: func(t *testing.T, file string) {
			content, err := os.ReadFile(file)
			must(t, err)
			must(t, os.WriteFile(file, append(content, 0), 0o600))
		}},
		"Missing": {reason: "An object is gone.", want: backup.BackupCorrupt, do: func(t *testing.T, file string) { must(t, os.Remove(file)) }},
		"Manifest": {reason: "The manifest is gone.", want: backup.BackupMissing, do: func(t *testing.T, file string) {
			must(t, os.Remove(filepath.Join(filepath.Dir(file), backup.ManifestObject)))
		}},
		"ManifestWrong": {reason: "The manifest is not JSON.", want: backup.BackupCorrupt, do: func(t *testing.T, file string) {
			must(t, os.WriteFile(filepath.Join(filepath.Dir(file), backup.ManifestObject), []byte("{"), 0o600))
		}},
	}
	d := newVolume(t)
	f := newFixture(t, s, "shop", d)
	createDatabase(t, s, "content")
	s.data(t, "content", "load", "--rows=100", "--bulk=3")
	f.from(s, "content")
	before := s.sums(t, "content")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f.t = t
			made := f.succeed(backup.Backup)
			f.succeed(backup.Verify)
			objects := slices.DeleteFunc(d.objects(t), func(o string) bool { return !strings.Contains(o, made.Backup.ID+"/001-00002") })
			tc.do(t, filepath.Join(d.files, objects[0]))

			f.fail(backup.Verify, tc.want)
			f.fail(backup.Restore, tc.want, func(t *backup.Task) { t.Overwrite = true })
			if after := s.sums(t, "content"); after != before {
				t.Errorf("%s\nThe restore changed its target though it could not begin:\n%s\n%s", tc.reason, before, after)
			}
			r := f.succeed(backup.Backup)
			if r.Catalog.Backups[0].ID != r.Backup.ID || r.Catalog.Verified != nil && r.Catalog.Verified.ID == made.Backup.ID {
				t.Errorf("%s\nThe catalog still takes the backup for good: %+v", tc.reason, r.Catalog)
			}
			f.succeed(backup.Verify)
			f.succeed(backup.Delete)
			nothingLeft(t, d)
		})
	}
}

// testKey: a backup can be read only with its key.
func testKey(t *testing.T, s *source) {
	d := newVolume(t)
	f := newFixture(t, s, "shop", d)
	identity := func() string {
		i, err := age.GenerateX25519Identity()
		must(t, err)
		return i.String() + "\n"
	}
	key := identity()
	f.task.Encrypted = true
	f.fail(backup.Backup, backup.KeyMissing)
	write(t, "", map[string]string{f.Key: "no key\n"})
	f.fail(backup.Backup, backup.KeyMissing)
	write(t, "", map[string]string{f.Key: key})
	f.succeed(backup.Backup)
	f.succeed(backup.Verify)

	overwrite := func(t *backup.Task) { t.Overwrite = true }
	write(t, "", map[string]string{f.Key: identity()})
	f.fail(backup.Verify, backup.KeyMissing)
	f.fail(backup.Restore, backup.KeyMissing, overwrite)
	f.task.Encrypted = false
	f.fail(backup.Verify, backup.KeyMissing)

	// The new key is listed before the old one: backups for either can be read.
	f.task.Encrypted = true
	write(t, "", map[string]string{f.Key: "# new\n" + identity() + "# old\n" + key})
	f.succeed(backup.Verify)
	f.succeed(backup.Backup)
	f.succeed(backup.Verify)
	f.succeed(backup.Restore, overwrite)
}

// testRetention: the backups that a Task retains.
func testRetention(t *testing.T, s *source) {
	d := newVolume(t)
	f := newFixture(t, s, "content", d)
	createDatabase(t, s, "retention")
	f.from(s, "retention")
	now := time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC)
	f.Now = func() time.Time { return now }
	f.task.Retention = "7d"
	first := f.succeed(backup.Backup)
	f.succeed(backup.Verify)
	for range 10 {
		now = now.Add(24 * time.Hour)
		f.succeed(backup.Backup)
	}
	r := f.succeed(backup.Check)
	// Seven by their age, and the verified one.
	if r.Catalog.Count != 8 || r.Catalog.Verified == nil || r.Catalog.Verified.ID != first.Backup.ID || !r.Catalog.Oldest.Equal(first.Backup.Time) {
		t.Errorf("retention kept the wrong ones: %+v", r.Catalog)
	}
	f.succeed(backup.Verify)
	now = now.Add(time.Hour)
	if r := f.succeed(backup.Backup); r.Expired != 1 || r.Catalog.Count != 8 {
		t.Errorf("once a newer one is verified, the older one expires: %+v", r)
	}
	// A backup is selected by ID or by time.
	at := now.Add(-36 * time.Hour)
	if r := f.succeed(backup.Verify, func(t *backup.Task) { t.Time = &at }); r.Backup.Time.After(at) || at.Sub(r.Backup.Time) > 24*time.Hour {
		t.Errorf("the wrong backup was taken: %+v", r.Backup)
	}
	f.fail(backup.Verify, backup.BackupMissing, func(t *backup.Task) { t.ID = first.Backup.ID })
	f.fail(backup.Verify, backup.BackupMissing, func(t *backup.Task) { t.Time = new(now.Add(-1000 * time.Hour)) })
}

// testQuery: verification fails unless the query returns true in the restored database.
func testQuery(t *testing.T, s *source) {
	f := newFixture(t, s, "shop", newVolume(t))
	f.succeed(backup.Backup)
	with := func(q string) func(*backup.Task) { return func(t *backup.Task) { t.Query = q } }
	f.succeed(backup.Verify, with("SELECT count(*) > 100 FROM orders"))
	f.succeed(backup.Verify, with("SELECT count(*) FROM orders"))
	f.fail(backup.Verify, backup.ContentDiffers, with("SELECT count(*) > 100000 FROM orders"))
	f.fail(backup.Verify, backup.ContentDiffers, with("SELECT 1 WHERE false"))
	f.fail(backup.Verify, backup.ContentDiffers, with("SELECT NULL"))
	f.fail(backup.Verify, backup.ContentDiffers, with("SELECT 0"))
	f.fail(backup.Verify, backup.ContentDiffers, with("SELECT no_such_thing"))
}

// TestScratchFull: a throw-away database without enough disk space is reported as such, not as a
// corrupt backup.
func TestScratchFull(t *testing.T) {
	long(t)
	sizes := map[backupv1.Engine]string{backupv1.PostgreSQL: "96m", backupv1.MySQL: "64m", backupv1.MongoDB: "24m"}
	for engine, start := range sources {
		t.Run(string(engine), func(t *testing.T) {
			s := loaded(t, start)
			f := newFixture(t, s, "shop", newVolume(t))
			f.succeed(backup.Backup)
			tmpfs(t, f.Scratch, sizes[engine])
			f.fail(backup.Verify, backup.NoSpace)
			if entries, err := os.ReadDir(f.Scratch); err != nil || len(entries) > 0 {
				t.Errorf("the throw-away database left %v (%v)", entries, err)
			}
		})
	}
}

// TestDatabaseDies: the database is killed while it is dumped, for the engines that TestFaults
// omits.
func TestDatabaseDies(t *testing.T) {
	long(t)
	for _, engine := range []backupv1.Engine{backupv1.MySQL, backupv1.MongoDB} {
		t.Run(string(engine), func(t *testing.T) {
			s := loaded(t, sources[engine])
			d := newVolume(t)
			f := newFixture(t, s, "shop", d)
			r, code := f.halfWay(d, s.down)
			s.up()
			f.failed(r, code, backup.SourceUnreachable)
			nothingLeft(t, d)
			f.succeed(backup.Backup)
		})
	}
}
