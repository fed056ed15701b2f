package run

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/storeplane/storeplane/internal/backup"
)

// testForged: an attacker who can write to the store puts newer backups there. What was not written
// with the key is listed, and neither counted, verified nor restored.
func testForged(t *testing.T, s *source) {
	identity := func() string {
		i, err := age.GenerateX25519Identity()
		must(t, err)
		return i.String() + "\n"
	}
	// later is an ID after those of all existing backups.
	later := backup.NewID(time.Now().Add(time.Hour))
	cases := map[string]struct {
		reason string

		// forge creates the forged backup. genuine is the folder of a genuine one, and other an
		// attacker's fixture for the same place.
		forge func(t *testing.T, genuine string, other *fixture)
		names bool

		// accepted means that a Restore that accepts it by its id restores it.
		accepted bool
	}{
		"Plain": {reason: "It is not encrypted, which needs no key.", names: true, forge: func(_ *testing.T, _ string, other *fixture) {
			other.succeed(backup.Backup)
		}},
		"Other": {reason: "It is encrypted for a key that another user has.", forge: func(t *testing.T, _ string, other *fixture) {
			other.task.Encrypted = true
			write(t, "", map[string]string{other.Key: identity()})
			other.succeed(backup.Backup)
		}},
		"Renamed": {reason: "It is an old one under a newer name: its recipient is no secret, and its content is good.", names: true, forge: func(t *testing.T, genuine string, _ *fixture) {
			dir := filepath.Join(filepath.Dir(genuine), later)
			must(t, os.CopyFS(dir, os.DirFS(genuine)))
			edit(t, filepath.Join(dir, backup.ManifestObject), func(m map[string]any) { m["id"], m["started"] = later, time.Now().Add(time.Hour).UTC() })
		}},
		"Unsealed": {reason: "Its seal is taken away, as none had one once.", names: true, accepted: true, forge: func(t *testing.T, genuine string, _ *fixture) {
			dir := filepath.Join(filepath.Dir(genuine), later)
			must(t, os.CopyFS(dir, os.DirFS(genuine)))
			edit(t, filepath.Join(dir, backup.ManifestObject), func(m map[string]any) { m["id"] = later; delete(m, "seal") })
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := newVolume(t)
			f := newFixture(t, s, "shop", d)
			f.task.Encrypted = true
			write(t, "", map[string]string{f.Key: identity()})
			made := f.succeed(backup.Backup)
			genuine := filepath.Join(f.Volume, backup.Logical(f.folder()), made.Backup.ID)
			other := newFixture(t, s, "shop", d)
			other.Now = func() time.Time { return time.Now().Add(30 * time.Minute) }
			tc.forge(t, genuine, other)

			r := f.succeed(backup.Check)
			if r.Catalog.Count != 1 || r.Catalog.Backups[0].ID != made.Backup.ID || len(r.Catalog.NotAuthentic) != map[bool]int{true: 1}[tc.names] {
				t.Errorf("%s\nThe catalog is %+v, want the genuine one alone, and the other one named: %t", tc.reason, r.Catalog, tc.names)
			}
			if r := f.succeed(backup.Verify); r.Backup.ID != made.Backup.ID {
				t.Errorf("%s\n%s was verified, and the genuine one is %s", tc.reason, r.Backup.ID, made.Backup.ID)
			}
			if r := f.succeed(backup.Restore, func(t *backup.Task) { t.Overwrite = true }); r.Backup.ID != made.Backup.ID {
				t.Errorf("%s\n%s was restored, and the genuine one is %s", tc.reason, r.Backup.ID, made.Backup.ID)
			}
			for _, id := range r.Catalog.NotAuthentic {
				f.fail(backup.Restore, backup.BackupNotAuthentic, func(t *backup.Task) { t.ID, t.Overwrite = id, true })
				accept := func(t *backup.Task) { t.ID, t.Overwrite, t.AcceptUnsealed = id, true, true }
				if !tc.accepted {
					f.fail(backup.Restore, backup.BackupNotAuthentic, accept)
				} else if r := f.succeed(backup.Restore, accept); r.Backup.ID != id {
					t.Errorf("%s\n%s was restored, and %s was accepted", tc.reason, r.Backup.ID, id)
				}
			}
			if !strings.Contains(f.log.String(), "is skipped: ") {
				t.Errorf("%s\nNobody says that it is skipped:\n%s", tc.reason, f.log)
			}
		})
	}

	// before returns a fixture with a plain backup from before encryption was turned on, and the
	// backup's ID.
	before := func(t *testing.T) (*fixture, string) {
		t.Helper()
		f := newFixture(t, s, "shop", newVolume(t))
		plain := f.succeed(backup.Backup).Backup.ID
		f.task.Encrypted = true
		write(t, "", map[string]string{f.Key: identity()})
		return f, plain
	}
	t.Run("Before", func(t *testing.T) {
		f, plain := before(t)
		if r := f.succeed(backup.Check); len(r.Catalog.NotAuthentic) != 0 || r.Catalog.Count != 0 || r.Catalog.Unsealed != 1 {
			t.Errorf("Before the first sealed one the plain one is not forged: got %+v", r.Catalog)
		}
		made := f.succeed(backup.Backup)
		if c := made.Catalog; len(c.NotAuthentic) != 0 || c.Count != 1 || c.Unsealed != 1 {
			t.Errorf("It is older than all that are sealed: got %+v", c)
		}
		if r := f.succeed(backup.Verify); r.Backup.ID != made.Backup.ID {
			t.Errorf("%s was verified, and the sealed one is %s", r.Backup.ID, made.Backup.ID)
		}
		f.fail(backup.Restore, backup.BackupNotAuthentic, func(t *backup.Task) { t.ID, t.Overwrite = plain, true })
	})
	t.Run("Backdated", func(t *testing.T) {
		f, plain := before(t)
		f.succeed(backup.Backup)
		folder := filepath.Join(f.Volume, backup.Logical(f.folder()))
		old := time.Now().Add(-time.Hour).UTC()
		id := backup.NewID(old)
		must(t, os.CopyFS(filepath.Join(folder, id), os.DirFS(filepath.Join(folder, plain))))
		manifest := filepath.Join(folder, id, backup.ManifestObject)
		edit(t, manifest, func(m map[string]any) { m["id"], m["started"], m["finished"] = id, old, old })
		must(t, os.Chtimes(manifest, old, old))
		if c := f.succeed(backup.Check).Catalog; c.Unsealed != 1 || len(c.NotAuthentic) != 1 || c.NotAuthentic[0] != id {
			t.Errorf("It was written after the sealed one, whatever it says of itself: got %+v", c)
		}
	})

	t.Run("Verified", func(t *testing.T) {
		f := newFixture(t, s, "shop", newVolume(t))
		f.task.Encrypted = true
		write(t, "", map[string]string{f.Key: identity()})
		made := f.succeed(backup.Backup)
		file := filepath.Join(f.Volume, backup.Logical(f.folder()), made.Backup.ID, backup.VerificationObject)
		must(t, os.WriteFile(file, []byte(`{"time":"2026-01-01T00:00:00Z","rows":1}`), 0o600))
		if r := f.succeed(backup.Check); r.Catalog.Verified != nil {
			t.Errorf("it has not been verified, and it is %+v", r.Catalog.Verified)
		}
		f.succeed(backup.Verify)
		if r := f.succeed(backup.Check); r.Catalog.Verified == nil {
			t.Error("it was verified, and is not")
		}
	})
}

// edit changes a manifest.
func edit(t *testing.T, file string, change func(map[string]any)) {
	t.Helper()
	content, err := os.ReadFile(file)
	must(t, err)
	m := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	must(t, d.Decode(&m))
	change(m)
	content, err = json.Marshal(m)
	must(t, err)
	must(t, os.WriteFile(file, content, 0o600))
}

// TestSeal: a seal covers the whole manifest, is accepted for any of the keys, and holds for one
// place only.
func TestSeal(t *testing.T) {
	seal := func(place string, secrets ...string) backup.Seal {
		s, err := backup.NewSeal(secrets, secrets, place)
		must(t, err)
		return s
	}
	made := func() *backup.Manifest {
		m := &backup.Manifest{Version: 1, ID: "x", Recipient: "a", Started: time.Now().UTC(), Roles: []string{"r"}, Dumps: []backup.Dump{{Database: "d", Objects: []backup.Object{{Name: "o", Size: 1, SHA256: "s"}}, Tables: map[string]int64{"b": 2, "a": 1}}}}
		must(t, seal("shop/nightly", "a").Manifest(m))
		content, err := json.Marshal(m)
		must(t, err)
		out := &backup.Manifest{}
		must(t, json.Unmarshal(content, out))
		return out
	}
	cases := map[string]struct {
		reason string
		seal   backup.Seal
		change func(*backup.Manifest)
		want   backup.Reason
	}{
		"Good":       {reason: "It is what was written.", seal: seal("shop/nightly", "a")},
		"Newer":      {reason: "A newer key was put before it.", seal: seal("shop/nightly", "b", "a")},
		"Place":      {reason: "It is another Backup's.", seal: seal("shop/other", "a"), want: backup.BackupNotAuthentic},
		"Key":        {reason: "It is for another key.", seal: seal("shop/nightly", "b"), want: backup.KeyMissing},
		"Recipient":  {reason: "It only says to be for the key.", seal: seal("shop/nightly", "b"), change: func(m *backup.Manifest) { m.Recipient = "b" }, want: backup.BackupNotAuthentic},
		"Plain":      {reason: "It says to be plain.", seal: seal("shop/nightly", "a"), change: func(m *backup.Manifest) { m.Recipient = "" }, want: backup.BackupNotAuthentic},
		"Object":     {reason: "An object is another one.", seal: seal("shop/nightly", "a"), change: func(m *backup.Manifest) { m.Dumps[0].Objects[0].SHA256 = "t" }, want: backup.BackupNotAuthentic},
		"Rows":       {reason: "It says to have more rows.", seal: seal("shop/nightly", "a"), change: func(m *backup.Manifest) { m.Dumps[0].Tables["a"] = 2 }, want: backup.BackupNotAuthentic},
		"NoKey":      {reason: "Without a key nothing is asked, but for what needs one.", seal: seal("shop/nightly"), want: backup.KeyMissing},
		"NoKeyPlain": {reason: "What is plain does not.", seal: seal("shop/nightly"), change: func(m *backup.Manifest) { m.Recipient, m.Seal = "", "" }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := made()
			if tc.change != nil {
				tc.change(m)
			}
			if err := tc.seal.CheckManifest(m); backup.ReasonOf(err) != tc.want {
				t.Errorf("%s\nCheckManifest(): got %v, want %q", tc.reason, err, tc.want)
			}
		})
	}
}
