package mysqld

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/instance/mysql/group"
)

func TestData(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		files  []string
		want   group.Data
	}{
		"New":         {reason: "A volume may have a folder of the file system's.", files: []string{"lost+found/x"}, want: group.Empty},
		"Initialized": {reason: "What has the folder's name is complete.", files: []string{"data/ibdata1"}, want: group.Whole},
		"Unfinished":  {reason: "One that is being initialized has another name.", files: []string{"data.new/ibdata1"}, want: group.Empty},
		"Copy":        {reason: "A copy is marked before it begins.", files: []string{"data/ibdata1", "copy-unfinished"}, want: group.Copy},
		"Folder":      {reason: "A user may have the server write a copy anywhere on the volume, and that is no mark.", files: []string{"data/ibdata1", "copy-unfinished/ibdata1"}, want: group.Whole},
		"Killed":      {reason: "So is one that MySQL has begun by itself.", files: []string{"data/ibdata1", "data/#clone/#status_error"}, want: group.Copy},
		"Copied":      {reason: "Other files of a copy stay.", files: []string{"data/ibdata1", "data/#clone/#view_status"}, want: group.Whole},
	} {
		t.Run(name, func(t *testing.T) {
			f := Files{Volume: t.TempDir()}
			for _, file := range tc.files {
				file = filepath.Join(f.Volume, file)
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := f.Data(); err != nil || got != tc.want {
				t.Errorf("%s\nData(): want %s, got %s, %v", tc.reason, tc.want, got, err)
			}
		})
	}
}

// TestBefore: a copy is complete once the server has another UUID than when it was begun.
func TestBefore(t *testing.T) {
	f := Files{Volume: t.TempDir()}
	begin := func(uuid string, same, known bool) {
		t.Helper()
		if err := f.BeginCopy(); err != nil {
			t.Fatal(err)
		}
		if s, k, err := f.Before(uuid); s != same || k != known || err != nil {
			t.Errorf("Before(%s): got %t, %t, %v, want %t, %t", uuid, s, k, err, same, known)
		}
	}
	if err := os.MkdirAll(filepath.Join(f.Volume, copyFile, "mysql"), 0o700); err != nil {
		t.Fatal(err)
	}
	begin("a-1", false, false)
	if err := f.EndCopy(); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(f.DataDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(uuid string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(f.DataDir(), "auto.cnf"), []byte("[auto]\nserver-uuid="+uuid+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a-1")
	begin("a-1", true, true)
	// To begin again does not forget what the server was at first.
	write("b-2")
	begin("b-2", false, true)
}

// TestSetAside: data that is set aside is neither data nor an unfinished copy any more. What no other server has is
// never removed.
func TestSetAside(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tc := range map[string]struct {
		reason string
		own    bool
		want   []string
	}{
		"Own":    {reason: "It stays beside what was set aside before.", own: true, want: []string{"data-aside-20260102T030405Z", "data-aside-before"}},
		"Failed": {reason: "Of data that the members have the last stays.", want: []string{"data-aside-before", "data-failed-20260102T030405Z"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := Files{Volume: t.TempDir()}
			for _, folder := range []string{"data", "data-aside-before", "data-failed-before"} {
				if err := os.Mkdir(filepath.Join(f.Volume, folder), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(f.BeginCopy(), f.SetAside(f.Aside(tc.own, at))); err != nil {
				t.Fatal(err)
			}
			if got, err := f.Data(); err != nil || got != group.Empty {
				t.Errorf("%s\nthe volume is %s, %v, want it empty", tc.reason, got, err)
			}
			var got []string
			entries, err := os.ReadDir(f.Volume)
			for _, e := range entries {
				if strings.HasPrefix(e.Name(), "data") {
					got = append(got, e.Name())
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("%s\n-want, +got:\n%s%v", tc.reason, diff, err)
			}
		})
	}
}

// TestClear: what a server has left that was killed does not keep the next one from starting.
func TestClear(t *testing.T) {
	f, o := Files{Volume: t.TempDir()}, Options{RunDir: t.TempDir()}
	for _, name := range []string{o.Socket(), o.Socket() + ".lock", o.pidFile(), f.TemporaryDir()} {
		if err := os.WriteFile(name, []byte("1"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := f.clear(o); err != nil {
			t.Fatal(err)
		}
	}
	for dir, want := range map[string]int{o.RunDir: 0, f.TemporaryDir(): 0} {
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != want {
			t.Errorf("%s: got %d files, %v", dir, len(entries), err)
		}
	}
}

func TestLastError(t *testing.T) {
	var passed bytes.Buffer
	l := &lastError{to: &passed}
	const text = `2026-01-02T03:04:05.000000Z 0 [System] [MY-010116] [Server] mysqld starting
2026-01-02T03:04:05.000000Z 0 [ERROR] [MY-000067] [Server] unknown variable 'x=1'.
2026-01-02T03:04:05.000000Z 0 [ERROR] [MY-010119] [Server] Aborting
`
	for _, part := range []string{text[:100], text[100:150], text[150:]} {
		if _, err := l.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if got := l.text(); got != "unknown variable 'x=1'." {
		t.Errorf("text(): got %q", got)
	}
	if passed.String() != text {
		t.Errorf("passed on: %q", passed.String())
	}
}

// TestForgetIdentity: a server has another UUID from its next start on, also where it has none.
func TestForgetIdentity(t *testing.T) {
	f := Files{Volume: t.TempDir()}
	if err := os.Mkdir(f.DataDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := f.ForgetIdentity(); err != nil {
			t.Fatal(err)
		}
		if there, err := exists(filepath.Join(f.DataDir(), "auto.cnf")); err != nil || there {
			t.Errorf("ForgetIdentity(): auto.cnf exists is %t, %v", there, err)
		}
		if err := os.WriteFile(filepath.Join(f.DataDir(), "auto.cnf"), []byte("[auto]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := (Files{Volume: filepath.Join(f.Volume, "none")}).ForgetIdentity(); err == nil {
		t.Error("ForgetIdentity(): got no error where there is no data")
	}
}

// TestDropTemporary: what the next start would replace is removed, and nothing else.
func TestDropTemporary(t *testing.T) {
	f := Files{Volume: t.TempDir()}
	kept := []string{"data/ibdata1", "data/auto.cnf", "data/#innodb_redo/#ib_redo1", "data/app/ledger.ibd", "data-aside-20260301T100000Z/ibtmp1"}
	for _, name := range append([]string{"data/ibtmp1", "data/#innodb_temp/temp_1.ibt", "tmp/MLfd=33", "tmp/folder/file"}, kept...) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(f.Volume, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(f.Volume, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.DropTemporary(); err != nil {
		t.Fatal(err)
	}
	var left []string
	err := filepath.WalkDir(f.Volume, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			name, _ := filepath.Rel(f.Volume, path)
			left = append(left, name)
		}
		return err
	})
	slices.Sort(left)
	slices.Sort(kept)
	if diff := cmp.Diff(kept, left); err != nil || diff != "" {
		t.Errorf("DropTemporary(): %v: -want, +got:\n%s", err, diff)
	}
}
