package run

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/engine"
	"github.com/storeplane/storeplane/internal/backup/store"
)

// The tests of this package use real databases and stores: those that are installed, and those that
// test/stores builds. A test without its programs is skipped with a message, except by make
// test-full, which installs them.

// password is used for everything. It contains characters that are often escaped wrongly.
const password = `p4ss:w/rd@%7\"'#x`

// built holds the paths of the programs of test/stores, by name.
var built = struct {
	sync.Mutex

	paths map[string]string
}{paths: map[string]string{}}

// tool builds a program of test/stores, and returns its path.
func tool(t *testing.T, name string) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if path, ok := built.paths[name]; ok {
		return path
	}
	if name == "azurite" {
		need(t, "node", "npm")
	}
	cmd := exec.CommandContext(t.Context(), "go", "run", ".", name)
	cmd.Dir = "../../../test/stores"
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("cannot build %s: %v\n%s", name, err, stderr.String())
	}
	path := strings.TrimSpace(string(out))
	built.paths[name] = path
	return path
}

// need requires programs: without them a short run skips the test, and a full one fails.
func need(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := engine.Look(name, "/usr/sbin/"+name); err != nil {
			if !testing.Short() {
				t.Fatalf("there is no %s on this machine: go run ./test/cluster packages installs it", name)
			}
			// What only root can install is left to make test-full.
			t.Skipf("there is no %s on this machine", name)
		}
	}
}

// long skips a test that is left to `make test-full`.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it takes long: run it without -short, as make test-full does")
	}
}

// TestMain adds the folder of PostgreSQL's servers to the PATH: Debian does not.
func TestMain(m *testing.M) {
	if dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin"); len(dirs) > 0 {
		_ = os.Setenv("PATH", dirs[len(dirs)-1]+":"+os.Getenv("PATH"))
	}
	os.Exit(m.Run())
}

// onPath puts programs on the PATH by the names that they have in images.
func onPath(t *testing.T, names ...string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		// A copy and not a link, because the user who runs it may have no access to the original.
		content, err := os.ReadFile(tool(t, name))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, name), content, 0o755))
	}
	openUp(t, dir)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// openUp makes a test's folder accessible to the user that servers run as.
func openUp(t *testing.T, dir string) {
	t.Helper()
	for ; strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // the folder of a test
			t.Fatal(err)
		}
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	var c net.ListenConfig
	l, err := c.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// accepts returns a check whether a port accepts connections.
func accepts(port int) func(context.Context) error {
	return func(ctx context.Context) error {
		var d net.Dialer
		c, err := d.DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return err
		}
		return c.Close()
	}
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A source is a database server for tests.
type source struct {
	engine backupv1.Engine

	// uri returns the URI of a database.
	uri func(database string) string

	// up and down start and kill the server.
	up, down func()
}

// data runs the data program of test/stores, with command load, sums or exec.
func (s *source) data(t *testing.T, database string, args ...string) string {
	t.Helper()
	args = append([]string{args[0], string(s.engine)}, args[1:]...)
	cmd := exec.CommandContext(t.Context(), tool(t, "data"), args...)
	cmd.Stdin = strings.NewReader(s.uri(database))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("data %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

// sums returns checksums of all that a database holds.
func (s *source) sums(t *testing.T, database string) string {
	t.Helper()
	return s.data(t, database, "sums")
}

// A fixture is a pod for tests: a program with its mounts.
type fixture struct {
	*Program

	t    *testing.T
	task backup.Task
	log  *bytes.Buffer
}

// newFixture returns a fixture for a database of a server and a store.
func newFixture(t *testing.T, s *source, database string, d *destination) *fixture {
	t.Helper()
	dir := t.TempDir()
	log := &bytes.Buffer{}
	p := &Program{
		Source: filepath.Join(dir, "source"), Store: d.credentials, Key: filepath.Join(dir, "key"), Volume: d.volume,
		Scratch: filepath.Join(dir, "scratch"), Report: filepath.Join(dir, "report"), Log: log, Now: time.Now,
		ObjectSize: 1 << 20, Beat: 50 * time.Millisecond,
	}
	for _, dir := range []string{p.Source, p.Scratch} {
		must(t, os.Mkdir(dir, 0o755))
	}
	openUp(t, p.Scratch)
	// The path of a socket has to be short.
	var err error
	p.Socket, err = os.MkdirTemp("", "shared-") //nolint:usetesting // t.TempDir returns a longer path
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(p.Socket) })
	f := &fixture{Program: p, t: t, log: log, task: backup.Task{
		Method: backupv1.Logical, Namespace: "shop", Name: "nightly", Destination: d.Destination,
		Database: backup.Database{Engine: s.engine},
	}}
	f.from(s, database)
	return f
}

// from makes a database of a server the source from now on.
func (f *fixture) from(s *source, database string) {
	f.task.Database.Engine = s.engine
	write(f.t, f.Source, map[string]string{"uri": s.uri(database)})
}

// do runs an action, and returns its report as the provider receives it.
func (f *fixture) do(ctx context.Context, a backup.Action, with ...func(*backup.Task)) (backup.Report, int) {
	f.t.Helper()
	task := f.task
	task.Action = a
	for _, w := range with {
		w(&task)
	}
	content, err := json.Marshal(task)
	must(f.t, err)
	if a == backup.Verify || a == backup.Backup && task.Method == backupv1.Physical {
		defer f.beServed(task)()
	}
	code := f.Main(ctx, string(content))
	raw, err := os.ReadFile(f.Report)
	must(f.t, err)
	var r backup.Report
	if err := json.Unmarshal(raw, &r); err != nil || len(raw) > backup.MaxReport {
		f.t.Fatalf("the report is no report: %v\n%s", err, raw)
	}
	for name, text := range map[string]string{"report": string(raw), "log": f.log.String()} {
		for _, secret := range []string{password, storeKey, "AGE-SECRET-KEY"} {
			if strings.Contains(text, secret) {
				f.t.Errorf("the %s holds a secret:\n%s", name, text)
			}
		}
	}
	return r, code
}

// beServed runs a throw-away database, as the container beside does, until end is called.
func (f *fixture) beServed(task backup.Task) (end func()) {
	f.t.Helper()
	must(f.t, os.RemoveAll(f.Socket))
	must(f.t, os.Mkdir(f.Socket, 0o755))
	beside := *f.Program
	beside.Source, beside.Store, beside.Key, beside.Volume = "", "", "", ""
	beside.Report, beside.Log = filepath.Join(f.t.TempDir(), "report"), discard
	serve := backup.Task{Action: backup.Serve, Database: backup.Database{Engine: task.Database.Engine}}
	if task.Method == backupv1.Physical {
		serve.Method, serve.For = task.Method, task.Action
	}
	content, err := json.Marshal(serve)
	must(f.t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(f.t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		beside.Main(ctx, string(content))
	}()
	return func() {
		cancel()
		<-ended
	}
}

// succeed runs an action that must succeed.
func (f *fixture) succeed(a backup.Action, with ...func(*backup.Task)) backup.Report {
	f.t.Helper()
	r, code := f.do(f.t.Context(), a, with...)
	if r.Failure != nil || code != backup.ExitSuccess {
		f.t.Fatalf("%s failed with code %d: %+v\n%s", a, code, r.Failure, f.log.String())
	}
	return r
}

// fail runs an action that must fail for a reason.
func (f *fixture) fail(a backup.Action, reason backup.Reason, with ...func(*backup.Task)) backup.Report {
	f.t.Helper()
	r, code := f.do(f.t.Context(), a, with...)
	f.failed(r, code, reason)
	return r
}

func (f *fixture) failed(r backup.Report, code int, reason backup.Reason) {
	f.t.Helper()
	if r.Failure == nil {
		f.t.Fatalf("%s succeeded, though it should fail with %s\n%s", r.Action, reason, f.log.String())
	}
	f.t.Logf("%s: %s", r.Failure.Reason, r.Failure.Message)
	if r.Failure.Reason != reason {
		f.t.Errorf("%s failed with %s and should with %s: %s", r.Action, r.Failure.Reason, reason, r.Failure.Message)
	}
	want := backup.ExitFailure
	if reason.Permanent() || r.Action == backup.Restore && !slices.Contains(passing, reason) {
		want = backup.ExitPermanent
	}
	if code != want {
		f.t.Errorf("%s ended with code %d and should with %d", r.Action, code, want)
	}
}

// open opens the store of the fixture.
func (f *fixture) open() *store.Store {
	f.t.Helper()
	s, err := store.Open(f.t.Context(), f.task.Destination, backup.Folder(f.task.Destination.Prefix, f.task.Namespace, f.task.Name),
		store.Options{Method: f.task.Method, Credentials: f.Store, Volume: f.Volume, Beat: f.Beat})
	must(f.t, err)
	f.t.Cleanup(func() { _ = s.Close() })
	return s
}

// discard is for logs that no test reads.
var discard = io.Discard
