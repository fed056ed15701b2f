package folder

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/backup"
)

// root opens a folder.
func root(t *testing.T, dir string) *os.Root {
	t.Helper()
	r, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// fill writes files into a folder. A name that ends with a slash is a folder.
func fill(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		var err error
		if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(path, 0o750)
		} else {
			err = os.WriteFile(path, []byte(content), 0o640)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// all returns the content of a folder, by path: the mode, and what a file contains.
func all(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, dir+"/")
		if out[name] = info.Mode().String(); info.Mode().IsRegular() {
			content, err := os.ReadFile(path)
			out[name] += " " + string(content)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPackAndUnpack(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	large := strings.Repeat("0123456789abcdef", 3*bufferSize/16+1)
	fill(t, from, map[string]string{
		"ibdata1": large, "empty": "", "shop/orders.ibd": "rows", "shop/@002d.ibd": "a name of MySQL's", "none/": "",
		"#innodb_redo/#ib_redo5": "redo", "auto.cnf": "uuid", "#innodb_temp/temp_1.ibt": "temporary",
	})
	if err := os.Chmod(filepath.Join(from, "shop/orders.ibd"), 0o400); err != nil {
		t.Fatal(err)
	}
	want := all(t, from)
	for _, out := range []string{"auto.cnf", "#innodb_temp", "#innodb_temp/temp_1.ibt"} {
		delete(want, out)
	}
	leaveOut := func(path string, _ bool) bool { return path == "auto.cnf" || path == "#innodb_temp" }

	var archive, again bytes.Buffer
	for _, w := range []io.Writer{&archive, &again} {
		if err := Pack(t.Context(), root(t, from), w, leaveOut); err != nil {
			t.Fatalf("Pack(): %v", err)
		}
	}
	if !bytes.Equal(archive.Bytes(), again.Bytes()) {
		t.Error("two archives of one folder differ")
	}
	u := Unpacking{Root: root(t, to), Limit: int64(archive.Len()), Sync: true}
	if err := u.Unpack(t.Context(), &archive); err != nil {
		t.Fatalf("Unpack(): %v", err)
	}
	if diff := cmp.Diff(want, all(t, to)); diff != "" {
		t.Errorf("what was unpacked: -want, +got:\n%s", diff)
	}
}

// TestPackRefuses: a server has only files and folders, and whatever else another program has put there is not read.
func TestPackRefuses(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	fill(t, filepath.Dir(secret), map[string]string{"secret": "secret", "folder/secret": "secret"})
	cases := map[string]struct {
		reason string
		put    func(dir string) error
	}{
		"Link":   {reason: "A link may lead to a Secret.", put: func(dir string) error { return os.Symlink(secret, filepath.Join(dir, "ibdata1")) }},
		"Folder": {reason: "So may one to a folder.", put: func(dir string) error { return os.Symlink(filepath.Dir(secret), filepath.Join(dir, "shop")) }},
		"Pipe":   {reason: "Reading a pipe would wait for ever.", put: func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600) }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := tc.put(dir); err != nil {
				t.Fatal(err)
			}
			var archive bytes.Buffer
			err := Pack(t.Context(), root(t, dir), &archive, func(string, bool) bool { return false })
			if err == nil || bytes.Contains(archive.Bytes(), []byte("secret")) {
				t.Errorf("%s\nPack(): %v, and the archive has:\n%q", tc.reason, err, archive.Bytes())
			}
		})
	}
}

// TestUnpackRefuses: an archive that Pack has not written is an error, and nothing is written beside the folder.
func TestUnpackRefuses(t *testing.T) {
	file := func(name, content string) entry {
		return entry{Header: tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Size: int64(len(content))}, content: content}
	}
	dir := func(name string) entry {
		return entry{Header: tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o700}}
	}
	other := func(kind byte, name, to string) entry {
		return entry{Header: tar.Header{Typeflag: kind, Name: name, Linkname: to, Mode: 0o600}}
	}
	cases := map[string]struct {
		reason  string
		archive []byte
	}{
		"Absolute":     {reason: "A path begins at the root.", archive: archive(t, file("/escaped", "x"))},
		"Up":           {reason: "A path leads up.", archive: archive(t, file("../escaped", "x"))},
		"UpWithin":     {reason: "A path leads up after a folder.", archive: archive(t, dir("a/"), file("a/../../escaped", "x"))},
		"NotClean":     {reason: "A path is not the shortest one.", archive: archive(t, dir("a/"), file("a//b", "x"))},
		"Dot":          {reason: "A path is the folder itself.", archive: archive(t, dir("./"))},
		"Empty":        {reason: "A path is empty.", archive: archive(t, file("", "x"))},
		"Backslash":    {reason: "A path has a backslash.", archive: archive(t, file(`..\escaped`, "x"))},
		"Link":         {reason: "A link leads to a file.", archive: archive(t, other(tar.TypeSymlink, "a", "../escaped"))},
		"LinkedFolder": {reason: "A folder is a link, through which a file is written.", archive: archive(t, other(tar.TypeSymlink, "a", ".."), file("a/escaped", "x"))},
		"HardLink":     {reason: "A second name of a file outside.", archive: archive(t, other(tar.TypeLink, "a", "../escaped"))},
		"Device":       {reason: "A device.", archive: archive(t, other(tar.TypeChar, "null", ""))},
		"Pipe":         {reason: "A pipe.", archive: archive(t, other(tar.TypeFifo, "pipe", ""))},
		"Twice":        {reason: "A file is there twice.", archive: archive(t, file("a", "x"), file("a", "y"))},
		"FolderTwice":  {reason: "So is a folder.", archive: archive(t, dir("a/"), dir("a/"))},
		"NoFolder":     {reason: "The folder of a file is not there.", archive: archive(t, file("a/b", "x"))},
		"FileAsFolder": {reason: "The folder of a file is a file.", archive: archive(t, file("a", "x"), file("a/b", "x"))},
		"Sparse":       {reason: "A few bytes stand for a file that fills the disk.", archive: sparse(t)},
		"Larger":       {reason: "The files have more than the backup has.", archive: archive(t, file("a", strings.Repeat("x", 1<<20)))},
		"Truncated":    {reason: "The archive ends in a file.", archive: archive(t, file("a", strings.Repeat("x", 2000)))[:1024]},
		"NoArchive":    {reason: "It is no archive.", archive: bytes.Repeat([]byte("x"), 1024)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			beside := t.TempDir()
			in := filepath.Join(beside, "in")
			fill(t, beside, map[string]string{"in/": ""})
			err := Unpacking{Root: root(t, in), Limit: 1 << 16}.Unpack(t.Context(), bytes.NewReader(tc.archive))
			if got := backup.ReasonOf(err); got != backup.BackupCorrupt {
				t.Errorf("%s\nUnpack(): want reason %s, got %q: %v", tc.reason, backup.BackupCorrupt, got, err)
			}
			got := all(t, beside)
			for path := range got {
				if path != "in" && !strings.HasPrefix(path, "in/") {
					t.Errorf("%s\nUnpack() has written %s beside the folder", tc.reason, path)
				}
			}
		})
	}
}

// TestUnpackReasons: an error that is not the archive's keeps its own reason.
func TestUnpackReasons(t *testing.T) {
	content := archive(t, entry{Header: tar.Header{Typeflag: tar.TypeReg, Name: "a", Mode: 0o600, Size: 2000}, content: strings.Repeat("x", 2000)})
	t.Run("Store", func(t *testing.T) {
		lost := backup.Errorf(backup.StoreUnreachable, "the connection was lost")
		err := Unpacking{Root: root(t, t.TempDir()), Limit: 1 << 16}.Unpack(t.Context(), io.MultiReader(bytes.NewReader(content[:1024]), failing{lost}))
		if backup.ReasonOf(err) != backup.StoreUnreachable {
			t.Errorf("Unpack(): want reason %s, got %v", backup.StoreUnreachable, err)
		}
	})
	t.Run("Interrupted", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := Unpacking{Root: root(t, t.TempDir()), Limit: 1 << 16}.Unpack(ctx, bytes.NewReader(content))
		if backup.ReasonOf(err) != backup.Interrupted || !errors.Is(err, context.Canceled) {
			t.Errorf("Unpack(): want reason %s, got %v", backup.Interrupted, err)
		}
	})
}

// failing is a reader that fails.
type failing struct{ error }

func (f failing) Read([]byte) (int, error) { return 0, f.error }

// An entry is one of an archive.
type entry struct {
	tar.Header

	content string
}

// archive returns an archive of entries.
func archive(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		if err := w.WriteHeader(&e.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// sparse returns an archive of a file of 1 TiB without any data, in GNU's format 0.1.
func sparse(t *testing.T) []byte {
	t.Helper()
	records := strings.Join([]string{
		record("GNU.sparse.major=0"), record("GNU.sparse.minor=1"), record("GNU.sparse.size=1099511627776"),
		record("GNU.sparse.numblocks=1"), record("GNU.sparse.map=1099511627776,0"),
	}, "")
	content := archive(t,
		entry{Header: tar.Header{Typeflag: tar.TypeReg, Name: "x", Mode: 0o600, Size: int64(len(records))}, content: records},
		entry{Header: tar.Header{Typeflag: tar.TypeReg, Name: "a", Mode: 0o600}})
	// Package tar writes no such records, so that a file is made the extended header of the next one.
	const kind, sumFrom, sumTo, header = 156, 148, 156, 512
	content[kind] = tar.TypeXHeader
	copy(content[sumFrom:sumTo], "        ")
	sum := 0
	for _, b := range content[:header] {
		sum += int(b)
	}
	copy(content[sumFrom:sumTo], fmt.Sprintf("%06o\x00 ", sum))
	return content
}

// record returns a record of an extended header, which begins with its own length.
func record(text string) string {
	for n := len(text); ; n++ {
		if line := fmt.Sprintf("%d %s\n", n, text); len(line) == n {
			return line
		}
	}
}
