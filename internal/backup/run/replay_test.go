package run

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/binlog"
	"github.com/storeplane/storeplane/internal/backup/engine/mysql"
	"github.com/storeplane/storeplane/internal/backup/folder"
	"github.com/storeplane/storeplane/internal/backup/segment"
	"github.com/storeplane/storeplane/internal/backup/store"
	"github.com/storeplane/storeplane/internal/backup/stream"
	"github.com/storeplane/storeplane/internal/gtid"
)

// replayed is a server that keeps the binary logs which it is to apply.
type replayed struct {
	dir   string
	files []string
	want  gtid.Set
}

func (r *replayed) Create() (*os.File, error) {
	f, err := os.CreateTemp(r.dir, "relay-")
	if err == nil {
		r.files = append(r.files, f.Name())
	}
	return f, err
}

func (r *replayed) Apply(_ context.Context, want gtid.Set) error {
	r.want = want
	return nil
}

// in returns what is in the files.
func (r *replayed) in(t *testing.T) string {
	t.Helper()
	var out gtid.Set
	for _, name := range r.files {
		f, err := os.Open(name)
		must(t, err)
		defer func() { _ = f.Close() }()
		info, err := f.Stat()
		must(t, err)
		l, err := binlog.Open(f, info.Size())
		must(t, err)
		for {
			tx, err := l.Next(info.Size())
			if errors.Is(err, binlog.ErrIncomplete) {
				break
			}
			must(t, err)
			out = out.Union(tx.ID)
		}
	}
	return out.String()
}

// binaryLogs returns a job that archives binary logs on a volume, or replays them.
func binaryLogs(t *testing.T, volume string, now func() time.Time) *job {
	t.Helper()
	task := backup.Task{Method: backup.BinaryLog, Namespace: "shop", Name: "ledger-backup", Destination: backupv1.Destination{Type: backupv1.Volume, Bucket: "b"}}
	j := &job{Program: &Program{Volume: volume, Log: discard, Now: now}, task: task, hide: &secrets{}, log: discard}
	must(t, j.open(t.Context()))
	t.Cleanup(j.close)
	return j
}

// TestReplay: what is received becomes a segment, which a restore applies up to its time, and which expires once the
// oldest backup has all of it. The binary log is of MySQL; TestMySQLArchive does the same with its server.
func TestReplay(t *testing.T) {
	const uuid = "541947d5-eac4-11f1-aa87-02fc00000001"
	set := func(intervals string) gtid.Set {
		out, err := gtid.Parse(uuid + ":" + intervals)
		must(t, err)
		return out
	}
	now := time.Date(2026, 11, 28, 0, 42, 0, 0, time.UTC)
	j := binaryLogs(t, t.TempDir(), func() time.Time { return now })
	must(t, (&archiver{job: j}).record(t.Context(), segment.Reached{System: "one"}))
	said := 0
	a := &archiver{job: j, pace: pace, system: "one", have: set("1-8"), say: func(Archived) { said++ }}
	received := t.TempDir()
	content, err := os.ReadFile(filepath.Join("..", "binlog", "testdata", "rows"))
	must(t, err)
	// The end of the file, by which a server says that it closes it, is missing after it was killed.
	write(t, received, map[string]string{"binlog.000003": string(content), "binlog.000004": ""})
	must(t, a.read(t.Context(), received, false))
	if got := a.have.String(); got != uuid+":1-11" || said != 1 {
		t.Errorf("archived is %s, reported %d times", got, said)
	}
	if _, err := os.Stat(filepath.Join(received, "binlog.000003")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file whose transactions are in the store is left (%v)", err)
	}

	copyOf := func(position string) *backup.Manifest {
		return &backup.Manifest{ID: "20261128T004100Z-abcdef", Method: backupv1.Physical, System: "one", Position: set(position).String(), Started: now.Add(-time.Minute), Finished: now.Add(-time.Minute)}
	}
	for name, tc := range map[string]struct {
		reason, position, want string
		until                  time.Time
		fails                  backup.Reason
	}{
		"End":     {reason: "All is applied.", position: "1-8", want: uuid + ":9-11"},
		"Time":    {reason: "The last one was committed later.", position: "1-8", until: time.Date(2026, 11, 28, 0, 41, 17, 548_000_000, time.UTC), want: uuid + ":9-10"},
		"Skipped": {reason: "The backup has some of them, whenever they were committed.", position: "1-10", until: time.Date(2026, 11, 28, 0, 41, 7, 0, time.UTC), want: ""},
		"Has":     {reason: "The backup has all.", position: "1-11", want: ""},
		"Gap":     {reason: "What is between is missing.", position: "1-6", fails: backup.ArchiveGap},
		"Later":   {reason: "The archive ends before.", position: "1-8", until: now, fails: backup.BackupMissing},
	} {
		t.Run(name, func(t *testing.T) {
			task := j.task
			if !tc.until.IsZero() {
				task.Time = &tc.until
			}
			to := &replayed{dir: t.TempDir()}
			err := j.ReplayLogs(t.Context(), task, copyOf(tc.position), to)
			if backup.ReasonOf(err) != tc.fails {
				t.Fatalf("%s\nReplayLogs(): want reason %q, got %v", tc.reason, tc.fails, err)
			}
			if before := j.CanReplay(t.Context(), task, copyOf(tc.position)); backup.ReasonOf(before) != tc.fails {
				t.Errorf("%s\nCanReplay(): want reason %q, got %v", tc.reason, tc.fails, before)
			}
			if tc.fails != "" {
				return
			}
			if diff := cmp.Diff(tc.want, to.want.String()); diff != "" {
				t.Errorf("%s\nwhat is waited for: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, to.in(t)); diff != "" {
				t.Errorf("%s\nwhat is in the files: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}

	for _, tc := range []struct {
		position string
		left     int
	}{{"1-10", 1}, {"1-11", 0}} {
		m := copyOf(tc.position)
		must(t, copies{}.expire(t.Context(), j, &store.Listing{Items: []store.Item{{ID: m.ID, Manifest: m}}}))
		l, err := j.store.List(t.Context())
		must(t, err)
		if len(l.Items) != tc.left {
			t.Errorf("with %s in the oldest backup %d segments are left, want %d", tc.position, len(l.Items), tc.left)
		}
	}
}

// TestReplayGone: a backup beside which binary logs were archived is not restored to its end without them.
func TestReplayGone(t *testing.T) {
	now := time.Date(2026, 11, 28, 0, 42, 0, 0, time.UTC)
	j := binaryLogs(t, t.TempDir(), func() time.Time { return now })
	archived := func(want bool) {
		t.Helper()
		if got, err := j.archived(t.Context(), "one"); got != want || err != nil {
			t.Errorf("archived(): want %t, got %t, %v", want, got, err)
		}
	}
	archived(false)
	must(t, (&archiver{job: j}).record(t.Context(), segment.Reached{System: "two"}))
	archived(false)
	must(t, (&archiver{job: j}).record(t.Context(), segment.Reached{System: "one"}))
	archived(true)

	m := &backup.Manifest{ID: "20261128T004100Z-abcdef", Method: backupv1.Physical, System: "one", Archived: true, Started: now, Finished: now}
	must(t, j.CanReplay(t.Context(), j.task, m))
	must(t, j.store.Delete(t.Context(), reachedObject("one")))
	if err := j.CanReplay(t.Context(), j.task, m); backup.ReasonOf(err) != backup.ArchiveGap {
		t.Errorf("CanReplay() without an archive: want reason %s, got %v", backup.ArchiveGap, err)
	}
	m.Archived = false
	must(t, j.CanReplay(t.Context(), j.task, m))
}

// TestCutLate: what waited for the store is found by a restore of a backup that was made meanwhile.
func TestCutLate(t *testing.T) {
	now := time.Date(2026, 11, 28, 0, 42, 0, 0, time.UTC)
	volume := filepath.Join(t.TempDir(), "volume")
	must(t, os.Mkdir(volume, 0o700))
	j := binaryLogs(t, volume, func() time.Time { return now })
	a := &archiver{job: j, pace: pace, system: "one", say: func(Archived) {}}
	received := t.TempDir()
	content, err := os.ReadFile(filepath.Join("..", "binlog", "testdata", "rows"))
	must(t, err)
	write(t, received, map[string]string{"binlog.000003": string(content), "binlog.000004": ""})
	must(t, os.RemoveAll(volume))
	must(t, os.WriteFile(volume, nil, 0o600))
	if err := a.read(t.Context(), received, false); err == nil {
		t.Fatal("read(): want an error while there is no store")
	}
	must(t, os.Remove(volume))
	must(t, os.Mkdir(volume, 0o700))
	now = now.Add(26 * time.Hour)
	must(t, a.read(t.Context(), received, false))
	l, err := j.store.Since(t.Context(), now.Add(-segmentMargin))
	must(t, err)
	if len(l.Items) != 1 {
		t.Errorf("segments since a day ago: want one, got %d", len(l.Items))
	}
}

// TestCutAgain: a segment that may exist is not written to again, and what no manifest names is.
func TestCutAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		fails  int
		want   int
	}{
		"Objects":  {reason: "There is no manifest yet, and the next attempt replaces what is there.", fails: 1, want: 1},
		"Manifest": {reason: "The manifest was written, although its disk reported an error.", fails: 2, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Date(2026, 11, 28, 0, 42, 0, 0, time.UTC)
			j := binaryLogs(t, t.TempDir(), func() time.Time { return now })
			syncs := 0
			j.Sync = func(string) error {
				if syncs++; syncs == tc.fails {
					return syscall.EIO
				}
				return nil
			}
			must(t, j.open(t.Context()))
			a := &archiver{job: j, pace: pace, system: "one", say: func(Archived) {}}
			received := t.TempDir()
			content, err := os.ReadFile(filepath.Join("..", "binlog", "testdata", "rows"))
			must(t, err)
			write(t, received, map[string]string{"binlog.000003": string(content), "binlog.000004": ""})
			if err := a.read(t.Context(), received, false); err == nil {
				t.Fatal("read(): want the error of the disk")
			}
			must(t, a.read(t.Context(), received, false))
			l, err := j.store.List(t.Context())
			must(t, err)
			if got := len(l.Good()); got != tc.want || len(l.Items) != tc.want {
				t.Errorf("%s\nwant %d segments, got %d of %d", tc.reason, tc.want, got, len(l.Items))
			}
			var archive segment.Archive
			for _, item := range l.Good() {
				s, err := segment.Of(item.Manifest)
				must(t, err)
				archive.Segments = append(archive.Segments, s)
			}
			archive.Reached = &segment.Reached{Time: now, Executed: archive.Has()}
			if c, err := archive.Chain(gtid.Set{}, segment.Target{}); err != nil || len(c.Segments) != 1 {
				t.Errorf("%s\nwhat is there twice is applied %d times (%v)", tc.reason, len(c.Segments), err)
			}
		})
	}
}

// TestDeleteLogs: segments are removed, and records of archives, also of one that has no segment yet.
func TestDeleteLogs(t *testing.T) {
	j := binaryLogs(t, t.TempDir(), time.Now)
	a := &archiver{job: j, pace: pace, system: "one", say: func(Archived) {}}
	received := t.TempDir()
	content, err := os.ReadFile(filepath.Join("..", "binlog", "testdata", "rows"))
	must(t, err)
	write(t, received, map[string]string{"binlog.000003": string(content)})
	must(t, a.read(t.Context(), received, true))
	for _, system := range []string{"one", "two"} {
		must(t, a.record(t.Context(), segment.Reached{System: system}))
	}
	must(t, copies{}.delete(t.Context(), j))
	if left := (&destination{files: j.Volume}).objects(t); len(left) > 0 {
		t.Errorf("objects are left: %v", left)
	}
}

// TestNewestCopies: backups that were not completed, as their pods were killed, do not hide the newest good one.
func TestNewestCopies(t *testing.T) {
	j := binaryLogs(t, t.TempDir(), time.Now)
	s, err := j.storeOf(t.Context(), backupv1.Physical)
	must(t, err)
	defer func() { _ = s.Close() }()
	const good = "20261127T030000Z-abcdef"
	content, err := json.Marshal(backup.Manifest{Version: backup.ManifestVersion, ID: good, Engine: backupv1.MySQL, Method: backupv1.Physical, System: "one", Position: "541947d5-eac4-11f1-aa87-02fc00000001:1-8"})
	must(t, err)
	must(t, s.Write(t.Context(), good+"/"+backup.ManifestObject, content))
	for _, id := range []string{"20261128T030000Z-aaaaaa", "20261128T030100Z-bbbbbb", "20261128T030200Z-cccccc", "20261129T030000Z-dddddd"} {
		must(t, s.Write(t.Context(), id+"/"+store.RunningObject, nil))
	}
	a := &archiver{job: j, system: "one"}
	c, err := a.newestCopies(t.Context(), a.system)
	must(t, err)
	if c.newest == nil || c.newest.ID != good || c.has.Len() != 8 {
		t.Errorf("newestCopies(): want %s with 8 transactions, got %+v with %d", good, c.newest, c.has.Len())
	}
	a.system = "two"
	if c, err := a.newestCopies(t.Context(), a.system); err != nil || c.newest != nil {
		t.Errorf("newestCopies() of another history: want none, got %+v (%v)", c.newest, err)
	}
}

// TestFetchPinned: a backup stays pinned after it was unpacked, until its binary logs were replayed.
func TestFetchPinned(t *testing.T) {
	now := time.Date(2026, 11, 28, 0, 42, 0, 0, time.UTC)
	j := binaryLogs(t, t.TempDir(), func() time.Time { return now })
	task := j.task
	task.Method, task.Database.Engine = backupv1.Physical, backupv1.MySQL
	made := &job{Program: j.Program, task: task, hide: &secrets{}, log: discard}
	must(t, made.open(t.Context()))
	t.Cleanup(made.close)
	m := &backup.Manifest{Version: backup.ManifestVersion, ID: backup.NewID(now), Engine: backupv1.MySQL, Method: backupv1.Physical, System: "one", Started: now, Compression: stream.Zstd}
	data := t.TempDir()
	write(t, data, map[string]string{"ibdata1": "data"})
	root, err := os.OpenRoot(data)
	must(t, err)
	defer func() { _ = root.Close() }()
	d := backup.Dump{}
	must(t, made.upload(t.Context(), m, "001", copySuffix, &d, func(w io.Writer) error { return folder.Pack(t.Context(), root, w, mysql.LeaveOut) }))
	m.Dumps = []backup.Dump{d}
	must(t, made.finish(t.Context(), m))

	pins := func() int {
		t.Helper()
		out, err := filepath.Glob(filepath.Join(j.Volume, backup.Physical(backup.Folder("", task.Namespace, task.Name)), m.ID, "reading-*"))
		must(t, err)
		return len(out)
	}
	to := filepath.Join(t.TempDir(), "data")
	_, unpin, err := j.Fetch(t.Context(), task, to)
	must(t, err)
	if content, err := os.ReadFile(filepath.Join(to, "ibdata1")); err != nil || string(content) != "data" {
		t.Errorf("unpacked is %q (%v)", content, err)
	}
	if n := pins(); n != 1 {
		t.Errorf("after Fetch() the backup has %d pins, want 1", n)
	}
	unpin()
	unpin()
	if n := pins(); n != 0 {
		t.Errorf("%d pins are left", n)
	}
	if _, _, err := j.Fetch(t.Context(), task, to); backup.ReasonOf(err) != backup.InvalidTask {
		t.Errorf("Fetch() into a folder that exists: want reason %s, got %v", backup.InvalidTask, err)
	}
	if n := pins(); n != 0 {
		t.Errorf("a failed Fetch() has left %d pins", n)
	}
}
