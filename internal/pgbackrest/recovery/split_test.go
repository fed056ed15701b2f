package recovery

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/pgbackrest"
)

// tool stands for pgBackRest. Its archive holds the files of folder $ARCHIVE, and all others are
// missing. If a file "fails" exists there, each call fails with its content.
const tool = `#!/bin/sh
while [ $# -gt 2 ]; do shift; done
if [ -e "$ARCHIVE/fails" ]; then echo "ERROR: [103]: $(cat "$ARCHIVE/fails")" >&2; exit 103; fi
[ -e "$ARCHIVE/$1" ] || exit 1
cp "$ARCHIVE/$1" "$2"
`

// offered returns the folder of an archive with one segment, a recovery that serves it, and the
// socket on which it does.
func offered(t *testing.T) (archive string, r Recovery, socket string) {
	t.Helper()
	bin, archive, work := t.TempDir(), t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, pgbackrest.Program), []byte(tool), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	if err := os.WriteFile(filepath.Join(archive, segment), []byte("what was written"), 0o600); err != nil {
		t.Fatal(err)
	}
	r = Recovery{Tool: pgbackrest.Tool{Env: []string{"ARCHIVE=" + archive}}, Set: pgbackrest.Set{Stanza: "7"}, WorkDir: work, RetryFor: 1}
	server := httptest.NewUnstartedServer(r.archive())
	listener, socket := listen(t)
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	return archive, r, socket
}

const segment = "000000010000000000000003"

// TestAsk: the restore command gets files of the archive from the container beside, or the reason
// why a file is unavailable.
func TestAsk(t *testing.T) {
	archive, _, socket := offered(t)
	into := filepath.Join(t.TempDir(), "RECOVERYXLOG")

	if err := ask(socket, segment, into); err != nil {
		t.Errorf("ask for a segment that is there: %v", err)
	}
	if got, _ := os.ReadFile(into); string(got) != "what was written" {
		t.Errorf("the segment: got %q", got)
	}
	failure := &pgbackrest.Error{}
	if err := ask(socket, "00000002.history", into); !errors.As(err, &failure) || failure.Code != codeMissing {
		t.Errorf("ask for a history that is not there: got %v, want code %d", err, codeMissing)
	}
	if err := os.WriteFile(filepath.Join(archive, "fails"), []byte("unable to connect to s3"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := &pgbackrest.Error{Command: "archive-get", Code: 103, Message: "unable to connect to s3"}
	if err := ask(socket, segment, into); !errors.As(err, &failure) {
		t.Errorf("ask while the store does not answer: got %v", err)
	} else if diff := cmp.Diff(want, failure); diff != "" {
		t.Errorf("why there is no segment: -want, +got:\n%s", diff)
	}
	if err := ask(filepath.Join(t.TempDir(), "gone"), segment, into); err == nil || errors.As(err, &failure) && failure.Code == codeMissing {
		t.Errorf("ask where nothing answers: got %v, want an error that ends no archive", err)
	}
}

// TestArchiveNames: the client may be a program that a backup contains, so it gets only what a
// restore command needs, and nothing else that pgBackRest could find.
func TestArchiveNames(t *testing.T) {
	archive, r, _ := offered(t)
	for _, name := range []string{"x", "..", "0000000100000000000000030", "--repo1-path=x", "00000002.history.gz", "000000010000000000000003.partial", "%2e%2e%2fetc%2fpasswd"} {
		if err := os.WriteFile(filepath.Join(archive, "x"), []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		r.archive().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, walPath+name, nil))
		if w.Code == http.StatusOK || w.Code == http.StatusBadGateway {
			t.Errorf("ask for %s: got %d, want it refused", name, w.Code)
		}
	}
	w := httptest.NewRecorder()
	r.archive().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, walPath+segment, nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("post: got %d, want %d", w.Code, http.StatusMethodNotAllowed)
	}
}

func listen(t *testing.T) (net.Listener, string) {
	t.Helper()
	// The path of a socket may have at most 107 bytes.
	dir, err := os.MkdirTemp("", "r") //nolint:usetesting // t.TempDir returns a longer path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "archive.sock")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	return listener, socket
}

// TestCopyControl: what pgBackRest reads of a server is copied, with the label of an online backup
// if there is one.
func TestCopyControl(t *testing.T) {
	cases := map[string]map[string]string{
		"Online":  {"global/pg_control": "control", "backup_label": "label"},
		"Offline": {"global/pg_control": "control"},
	}
	for name, files := range cases {
		t.Run(name, func(t *testing.T) {
			from, to := t.TempDir(), t.TempDir()
			for name, content := range files {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(from, name)), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(from, name), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := copyControl(from, to); err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, name := range []string{"global/pg_control", "backup_label"} {
				if content, err := os.ReadFile(filepath.Join(to, name)); err == nil {
					got[name] = string(content)
				}
			}
			if diff := cmp.Diff(files, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if err := copyControl(t.TempDir(), t.TempDir()); err == nil {
		t.Error("without a control file: got no error")
	}
}
