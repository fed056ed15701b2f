package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/mysql/group"
	"github.com/storeplane/storeplane/internal/instance/mysql/mysqld"
	"github.com/storeplane/storeplane/internal/mysqltest"
	"github.com/storeplane/storeplane/internal/pki"
)

// world is a cluster of servers on this machine, each at an address of its own, with an API server
// that is a record in memory.
type world struct {
	t       *testing.T
	dir     string
	program string
	port    int

	mu      sync.Mutex
	size    int
	record  group.Record
	named   string
	servers map[string]*running
	primary string
	marked  time.Time
	away    map[string]bool

	// roles are the marks of pods. handedOver is when a server has handed over last, and unmarked is true if the next
	// primary had no mark then.
	roles      map[string]string
	handedOver time.Time
	unmarked   bool

	// grace is how long the pods of servers that stop have to end, or 0 if they are not deleted.
	grace time.Duration

	// nameless are the servers whose names lead nowhere: they were removed, and their volumes stay.
	nameless map[string]bool

	// options are more options of the servers that are started from now on, as lines.
	options string

	// fetch fills a folder from a backup, and makes the servers that are started from now on those of a
	// cluster that a backup fills, or is nil.
	fetch func(ctx context.Context, folder string, progress func(string)) (mysqld.Replay, error)

	// warnings are the events that servers have created, a line each.
	warnings []string

	// confirms is called before a founder is confirmed, or nil.
	confirms func(pod string)
}

// resize changes how many servers are desired.
func (w *world) resize(size int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.size = size
}

// deleted has servers that stop do so because their pods are deleted, with a grace period.
func (w *world) deleted(grace time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.grace = grace
}

// handed returns when a server has handed over last, and whether the next primary had no mark then.
func (w *world) handed() (time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.handedOver, w.unmarked
}

// marks returns how many pods are marked with each role.
func (w *world) marks() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[string]int{}
	for _, role := range w.roles {
		out[role]++
	}
	return out
}

// desired is how many servers are desired, as supervisors know it.
func (w *world) desired() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.size
}

// name names the volume claim of a server to lead, or none if n is negative.
func (w *world) name(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.named = "data-" + pod(n); n < 0 {
		w.named = ""
	}
}

// running is a server with its supervisor.
type running struct {
	*Supervisor

	stop context.CancelFunc
	done chan error
	log  *os.File
}

func newWorld(t *testing.T, size int) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), program: mysqltest.Program(t), port: 23060, size: size, servers: map[string]*running{}, away: map[string]bool{}, roles: map[string]string{}}
	// The servers know each other by one authority, and clients know them by another.
	now := time.Now()
	control, controlErr := pki.Authority("orders-control", pki.Pair{}, now)
	peer, peerErr := pki.Peer(control, "server", []string{"orders-mysql.shop.svc"}, now)
	authority, authorityErr := pki.Authority("orders", pki.Pair{}, now)
	pair, pairErr := pki.Server(authority, []string{"localhost"}, now)
	if err := errors.Join(controlErr, peerErr, authorityErr, pairErr); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"ca.crt": authority.Certificate, "tls.crt": pair.Certificate, "tls.key": pair.Key,
		"control.crt": control.Certificate, "peer.crt": peer.Certificate, "peer.key": peer.Key,
	} {
		if err := os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(w.end)
	return w
}

func pod(n int) string { return fmt.Sprintf("orders-mysql-%d", n) }

func ordinal(pod string) int {
	var n int
	if _, err := fmt.Sscanf(pod, "orders-mysql-%d", &n); err != nil {
		return -1
	}
	return n
}

// variablesFile is the file of the variables of all servers, which need not exist.
func (w *world) variablesFile() string { return filepath.Join(w.dir, "variables.json") }

// config returns the configuration of a server, whose folders and files exist.
func (w *world) config(n int) Config {
	w.t.Helper()
	name := pod(n)
	volume, run := filepath.Join(w.dir, name), filepath.Join(w.dir, "run", name)
	file := filepath.Join(w.dir, name+".cnf")
	for _, dir := range []string{volume, run} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			w.t.Fatal(err)
		}
	}
	options := "[mysqld]\nbind-address=127.0.0.1\ninnodb_buffer_pool_size=64M\ninnodb_redo_log_capacity=64M\nperformance_schema_max_table_instances=200\n" + w.options
	if err := os.WriteFile(file, []byte(options), 0o600); err != nil {
		w.t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(w.dir, name) }
	config := Config{
		Pod: name, Claim: "uid-" + name, Program: w.program, Files: mysqld.Files{Volume: volume}, Fetch: w.fetch, Size: w.desired, VariablesFile: w.variablesFile(),
		Options: mysqld.Options{
			File: file, ID: n + 1, Host: "127.0.0.1", Port: w.port + n, RunDir: run,
			Certificate: in("tls.crt"), Key: in("tls.key"), Authority: in("control.crt"),
			PeerCertificate: in("peer.crt"), PeerKey: in("peer.key"), PeerAuthority: in("ca.crt"), TLSRequired: true,
		},
		Warn: func(_ context.Context, reason, message string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.warnings = append(w.warnings, reason+": "+message)
		},
	}
	return config
}

// start starts a server, on the volume that it had before.
func (w *world) start(n int) {
	w.t.Helper()
	name, config := pod(n), w.config(n)
	output, err := os.OpenFile(filepath.Join(w.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		w.t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(&lines{w.t, name}, nil))
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Supervisor: New(config, &around{w, name}, log, output), stop: cancel, done: make(chan error, 1), log: output}
	w.mu.Lock()
	w.servers[name] = r
	w.mu.Unlock()
	go func() { r.done <- r.Run(ctx) }()
}

// lines writes a supervisor's log into the test's.
type lines struct {
	t   *testing.T
	pod string
}

func (l *lines) Write(p []byte) (int, error) {
	l.t.Logf("%s %s %s", time.Now().Format("05.000"), l.pod, strings.TrimSpace(string(p)))
	return len(p), nil
}

// leave stops a server in order.
func (w *world) leave(n int) {
	w.t.Helper()
	w.mu.Lock()
	r := w.servers[pod(n)]
	delete(w.servers, pod(n))
	w.mu.Unlock()
	r.stop()
	if err := <-r.done; err != nil {
		w.t.Errorf("stop %s: %v", pod(n), err)
	}
	_ = r.log.Close()
}

// end stops all servers at once.
func (w *world) end() {
	w.mu.Lock()
	w.size = 0
	servers := w.servers
	w.mu.Unlock()
	for name, r := range servers {
		if w.t.Failed() {
			if b, err := os.ReadFile(filepath.Join(w.dir, name+".log")); err == nil {
				w.t.Logf("log of %s:\n%s", name, tail(string(b), 40))
			}
		}
		r.stop()
	}
	for _, r := range servers {
		_ = r.signal(syscall.SIGKILL)
		if err := <-r.done; err != nil {
			w.t.Logf("stop %s: %v", r.Pod, err)
		}
		_ = r.log.Close()
	}
}

// pid returns the process ID of a server's program, by its file.
func (r *running) pid() (int, error) {
	b, err := os.ReadFile(filepath.Join(r.Options.RunDir, "mysqld.pid"))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(b)))
}

// signal sends a signal to a server's program.
func (r *running) signal(s syscall.Signal) error {
	pid, err := r.pid()
	if err != nil {
		return err
	}
	return syscall.Kill(pid, s)
}

func tail(text string, lines int) string {
	all := strings.Split(text, "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// around is the cluster around one server.
type around struct {
	*world

	own string
}

func (w *world) address(pod string) string { return fmt.Sprintf("127.0.0.1:%d", w.port+ordinal(pod)) }

func (a *around) Address(pod string) string {
	if a.nameless[pod] {
		return pod + ".invalid:3306"
	}
	return a.address(pod)
}

func (a *around) PodOf(address string) string {
	var port int
	if _, err := fmt.Sscanf(address, "127.0.0.1:%d", &port); err != nil {
		return ""
	}
	return pod(port - a.port)
}

func (a *around) Record(context.Context) (group.Record, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.record, nil
}

func (a *around) Cluster(context.Context) (group.Cluster, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := group.Cluster{Size: a.size, Ordinal: ordinal, Record: a.record, Named: a.named, Annotation: "lead-with=<volume claim>@x", Restoring: a.fetch != nil && !a.record.Ran()}
	entries, err := os.ReadDir(a.dir)
	for _, e := range entries {
		if e.IsDir() && ordinal(e.Name()) >= 0 {
			c.Volumes = append(c.Volumes, group.Volume{Pod: e.Name(), Claim: "data-" + e.Name(), UID: "uid-" + e.Name()})
		}
	}
	return c, err
}

func (a *around) Peers(ctx context.Context, pods ...string) map[string]group.Report {
	a.mu.Lock()
	peers := map[string]*running{}
	for name, r := range a.servers {
		if name != a.own && !a.away[name] && !a.away[a.own] && (len(pods) == 0 || slices.Contains(pods, name)) {
			peers[name] = r
		}
	}
	a.mu.Unlock()
	out := map[string]group.Report{}
	for name, r := range peers {
		if report, err := r.Report(ctx); err == nil {
			out[name] = report
		}
	}
	return out
}

func (a *around) Change(_ context.Context, from, to group.Record) error {
	if to.Confirmed && !from.Confirmed && a.confirms != nil {
		a.confirms(a.own)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.away[a.own] {
		return errors.New("the API server is away")
	}
	if fmt.Sprint(a.record) != fmt.Sprint(from) {
		return errChanged
	}
	a.record = to
	return nil
}

func (a *around) Mark(_ context.Context, primary bool) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case primary:
		a.primary, a.marked = a.own, time.Now()
	case a.primary == a.own:
		a.primary = ""
	}
	if !primary {
		a.roles[a.own] = instance.RoleReplica
		return nil
	}
	for pod, role := range a.roles {
		if role == instance.RolePrimary {
			a.roles[pod] = instance.RoleReplica
		}
	}
	a.roles[a.own] = instance.RolePrimary
	return nil
}

func (a *around) Remark(_ context.Context, pod, from, to string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.roles[pod] == from {
		a.roles[pod] = to
	}
	return nil
}

func (a *around) Handed(_ context.Context, to string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unmarked = a.roles[to] == ""
	a.primary, a.marked, a.handedOver = to, time.Now(), time.Now()
	a.roles[to] = instance.RolePrimary
	if a.roles[a.own] == instance.RolePrimary {
		a.roles[a.own] = ""
	}
	return nil
}

func (a *around) Known(context.Context) bool { return true }

func (a *around) Leaving(context.Context, string) bool { return false }

func (a *around) Grace(context.Context) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.grace
}

func (a *around) Ending(context.Context) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.size == 0
}

// until waits for a condition.
func (w *world) until(what string, within time.Duration, is func() bool) {
	w.t.Helper()
	began := time.Now()
	for time.Since(began) < within {
		if is() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	w.t.Fatalf("waiting for %s: not within %s", what, within)
}

// leader returns the pod that is marked as the primary.
func (w *world) leader() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.primary
}

// ledSince reports whether a primary was marked after a time.
func (w *world) ledSince(at time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.primary != "" && w.marked.After(at)
}

// online returns the number of servers that report to be members in one view.
func (w *world) online() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	in := map[string]int{}
	for _, r := range w.servers {
		if report, _ := r.Last(); report.State == group.Online {
			in[report.View]++
		}
	}
	most := 0
	for _, n := range in {
		most = max(most, n)
	}
	return most
}

// answering returns the number of servers that answer.
func (w *world) answering() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, r := range w.servers {
		if report, _ := r.Last(); report.Running {
			n++
		}
	}
	return n
}

// alone executes a statement on a stopped server outside of its group.
func (w *world) alone(n int, statement string) {
	w.t.Helper()
	c := w.config(n)
	p, err := mysqld.Start(c.Program, c.Files, c.Options, io.Discard)
	if err != nil {
		w.t.Fatal(err)
	}
	w.until("a server alone", upWithin, func() bool {
		return executeAt(c.Options.Socket(), "SET GLOBAL super_read_only = OFF", statement) == nil
	})
	_ = p.Stop()
	<-p.Done()
}

func (w *world) server(name string) *running {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.servers[name]
}
