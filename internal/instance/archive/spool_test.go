package archive

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/pgbackrest"
	"github.com/storeplane/storeplane/internal/pgbackrest/wal"
)

// TestPushedBefore: a segment that the store has lost is archived again, although pgBackRest has
// noted that it pushed it.
func TestPushedBefore(t *testing.T) {
	p := newPlace(t)
	s, name := p.archivedOne()
	files, err := filepath.Glob(p.path("store/archive/*/*/*/" + name + "-*"))
	p.must(err)
	for _, f := range files {
		p.must(os.Remove(f))
	}
	s.pushed(s.outs(), name)
	s.complete()
	s.storedAtLast(name)
}

// TestPushedElsewhere: pgBackRest's process for a former destination continues after the archive at
// the new one was compared. What it pushes does not count as archived there.
func TestPushedElsewhere(t *testing.T) {
	p := newPlace(t)
	s, name := p.archivedOne()
	former := s.outs()
	p.must(os.RemoveAll(p.path("store")))
	p.must(os.Mkdir(p.path("store"), 0o700))
	p.move()
	p.must(s.Create(t.Context(), testLog{t}))
	s.complete()
	s.pushed(former, name)
	s.storedAtLast(name)
}

// TestMovedMeanwhile: a segment does not count as archived if the destination changes while it is
// being pushed.
func TestMovedMeanwhile(t *testing.T) {
	p := newPlace(t)
	s := p.primary("one")
	s.keep()
	segment := s.write()
	s.archived()
	s.stop()
	s.must(os.WriteFile(filepath.Join(s.DataDir(), "pg_wal", "archive_status", segment+".ready"), nil, 0o600))
	program, err := exec.LookPath(pgbackrest.Program)
	p.must(err)
	config := p.path("config/" + pgbackrest.FileConfig)
	p.must(os.Mkdir(p.path("bin"), 0o700))
	p.must(os.WriteFile(p.path("bin/"+pgbackrest.Program), []byte("#!/bin/sh\n"+program+` "$@" && echo "# moved" >> `+config+"\n"), 0o700))
	t.Setenv("PATH", p.path("bin")+":"+os.Getenv("PATH"))
	t.Setenv(spoolVariable, p.path("one-spool"))
	if err := Push(t.Context(), s.Config, "pg_wal/"+segment, testLog{t}); !errors.Is(err, ErrMoved) {
		t.Errorf("Push(): want %v, got %v", ErrMoved, err)
	}
	t.Setenv("PATH", filepath.Dir(program)+":"+os.Getenv("PATH"))
	if err := Push(t.Context(), s.Config, "pg_wal/"+segment, testLog{t}); err != nil {
		t.Errorf("Push() to the new destination: %v", err)
	}
}

// TestSpool: each destination has a spool of its own, also if pgBackRest's configuration is the same
// for both since a server of the same name serves their volumes.
func TestSpool(t *testing.T) {
	const config, backup = "repo1-path=/shop/orders", `{"destination":{"type":"volume","bucket":"one"}}`
	cases := map[string]struct {
		reason         string
		config, backup string
		same           bool
		want           error
	}{
		"Same":   {reason: "Files that were written again with the same content are no other destination.", config: config, backup: backup, same: true},
		"Bucket": {reason: "Another bucket or path is.", config: "repo1-path=/other/shop/orders", backup: backup},
		"Volume": {reason: "Another volume is.", config: config, backup: `{"destination":{"type":"volume","bucket":"two"}}`},
		"None":   {reason: "The pod is older than backups.", config: config, want: ErrNone},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := Config{Repository: t.TempDir()}
			write := func(name, content string) {
				t.Helper()
				file := filepath.Join(c.Repository, name)
				if content == "" {
					_ = os.Remove(file)
				} else if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write(pgbackrest.FileConfig, config)
			write(instance.BackupFile, backup)
			before, err := c.spool()
			if err != nil {
				t.Fatal(err)
			}
			write(pgbackrest.FileConfig, tc.config)
			write(instance.BackupFile, tc.backup)
			after, err := c.spool()
			if diff := cmp.Diff(tc.want, err, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("%s\nspool(): -want, +got:\n%s", tc.reason, diff)
			}
			if (before == after) != tc.same {
				t.Errorf("%s\nspool(): got %q after %q", tc.reason, after, before)
			}
		})
	}
}

// archivedOne returns a primary and a segment that it has archived, which is not its last one.
func (p *place) archivedOne() (*server, string) {
	p.t.Helper()
	s := p.primary("one")
	s.keep()
	name := s.write()
	s.write()
	s.archived()
	return s, name
}

// storedAtLast checks that a segment is in the store once PostgreSQL takes all for archived.
func (s *server) storedAtLast(name string) {
	s.t.Helper()
	s.write() // which makes PostgreSQL archive at once
	s.archived()
	if segment, _ := wal.Parse(name); !s.inStore()[segment] {
		s.t.Errorf("PostgreSQL takes %s for archived, and the store does not have it", name)
	}
}

// complete compares the archive with this server's WAL.
func (s *server) complete() {
	s.t.Helper()
	s.t.(*testing.T).Setenv(spoolVariable, s.path(s.name+"-spool"))
	_, err := Complete(s.t.Context(), s.Config, s.current(), testLog{s.t})
	s.must(err)
}

// move changes the destination in pgBackRest's configuration. That of tests is in a variable.
func (p *place) move() {
	p.t.Helper()
	repo := pgbackrest.Repository{Destination: backupv1.Destination{Type: backupv1.Volume, Bucket: "claim", Prefix: "other"}, Namespace: "shop", Name: "orders"}
	config, err := repo.ServerConfig()
	p.must(err)
	p.must(os.WriteFile(p.path("config/"+pgbackrest.FileConfig), []byte(config), 0o600))
}

// outs returns the folders in which pgBackRest has noted what it pushed.
func (s *server) outs() []string {
	s.t.Helper()
	var out []string
	s.must(filepath.WalkDir(s.path(s.name+"-spool"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Name() == "out" {
			out = append(out, path)
		}
		return err
	}))
	if len(out) == 0 {
		s.t.Fatal("pgBackRest has noted nothing")
	}
	return out
}

// pushed notes in these folders that a segment was pushed, as pgBackRest does.
func (s *server) pushed(outs []string, name string) {
	s.t.Helper()
	for _, dir := range outs {
		s.must(os.WriteFile(filepath.Join(dir, name+".ok"), nil, 0o600))
	}
}
