package harness

import (
	"cmp"
	"context"
	"crypto/rand"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/e2e-framework/klient/wait"

	"github.com/storeplane/storeplane/test/e2e/manifests"
)

//go:embed ledger/*.py
var ledgerScripts embed.FS

// ledgerPod is the name of the pod in manifests/ledger and of the ConfigMap with its scripts.
const ledgerPod = "e2e-ledger"

// program is one program in the ledger's pod. Its name is the name of its container.
type program struct {
	name string
	port int
	acks []Ack

	// failures are the writes that failed, and attempts to connect.
	failures []Failure

	// duels are rows that a server took without another one that was acknowledged before, for an
	// engine that numbers them.
	duels []string
}

// Ledger is a pod with a number of writers, which record each row that a database has acknowledged,
// and a watch, which asks every server whether it takes writes. Both continue while the API server
// is down.
type Ledger struct {
	cluster   *Cluster
	namespace string
	engine    string

	// Run is an ID that distinguishes the rows of this ledger from those of another one.
	Run string

	writers, watch program
}

// Database describes the database of which a ledger is kept: the name of its connection Secret, the
// host name of one server with %d for the server's number, and the largest number of servers. Engine
// is postgresql if it is "".
type Database struct {
	Engine, Secret, Host string
	Servers              int
}

// The number of writers of a ledger, and how many rows each of them writes per second.
const (
	ledgerWriters = 5
	ledgerRate    = 10
)

// StartLedger starts the ledger's pod and waits until every writer has had a row acknowledged.
func StartLedger(ctx context.Context, c *Cluster, w *World, d Database) (*Ledger, error) {
	// What is beyond PostgreSQL's client is in an image of its own.
	image := "postgresql:17"
	if d.Engine == "mysql" {
		image = "e2e-ledger:latest"
	}
	values := map[string]string{
		"ENGINE": cmp.Or(d.Engine, "postgresql"), "IMAGE": image,
		"NAMESPACE": w.Namespace, "REGISTRY": c.Registry, "RUN": rand.Text(),
		"SECRET": d.Secret, "HOST": d.Host, "SERVERS": strconv.Itoa(d.Servers),
		"WRITERS": strconv.Itoa(ledgerWriters), "RATE": strconv.Itoa(ledgerRate),
	}
	pod, err := manifests.Read("ledger/pod.yaml", values)
	if err != nil {
		return nil, err
	}
	scripts, err := scriptsOf(w.Namespace)
	if err != nil {
		return nil, err
	}
	for _, u := range []*unstructured.Unstructured{scripts, pod} {
		if _, err := c.Create(ctx, u); err != nil {
			return nil, err
		}
	}
	err = w.Await(ctx, time.Minute, "the ledger's pod to run", func() (bool, string) {
		phase := Field(w.Get("Pod", ledgerPod), "status", "phase")
		return phase == "Running", "it is " + phase
	})
	if err != nil {
		return nil, err
	}
	l := &Ledger{
		cluster: c, namespace: w.Namespace, engine: values["ENGINE"], Run: values["RUN"],
		writers: program{name: "ledger", port: 8081}, watch: program{name: "duel", port: 8082},
	}
	return l, l.flows(ctx, time.Minute, "to begin", func() bool { return writersOf(l.writers.acks) == ledgerWriters })
}

func writersOf(acks []Ack) int {
	seen := map[string]bool{}
	for _, a := range acks {
		seen[a.Writer] = true
	}
	return len(seen)
}

func scriptsOf(namespace string) (*unstructured.Unstructured, error) {
	data := map[string]any{}
	files, err := ledgerScripts.ReadDir("ledger")
	if err != nil {
		return nil, fmt.Errorf("cannot list the ledger's scripts: %w", err)
	}
	for _, f := range files {
		raw, err := ledgerScripts.ReadFile("ledger/" + f.Name())
		if err != nil {
			return nil, fmt.Errorf("cannot read script %s: %w", f.Name(), err)
		}
		data[f.Name()] = string(raw)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": data}}
	u.SetName(ledgerPod)
	u.SetNamespace(namespace)
	return u, nil
}

// Stop removes the ledger's pod and scripts. The rows stay in the database.
func (l *Ledger) Stop(ctx context.Context, w *World) error {
	for _, kind := range []string{"Pod", "ConfigMap"} {
		if err := l.cluster.Delete(ctx, kind, l.namespace, ledgerPod); err != nil {
			return err
		}
	}
	return w.AwaitGone(ctx, time.Minute, "Pod", ledgerPod)
}

// answer is the answer of a program.
type answer struct {
	// Now is the time on the program's clock, and Last the time of its last acknowledgement.
	Now  float64 `json:"now"`
	Last float64 `json:"last"`

	Acknowledged int       `json:"acknowledged"`
	Connections  int       `json:"connections"`
	Acks         []Ack     `json:"acks"`
	Failures     []Failure `json:"failures"`
	Duels        []string  `json:"duels"`
	Rows         []Rows    `json:"rows"`
	Error        string    `json:"error"`
}

func (l *Ledger) ask(ctx context.Context, p program, path string) (answer, error) {
	a, err := l.cluster.Do(ctx, l.namespace, ledgerPod, p.name, Request{Host: "127.0.0.1", Port: p.port, Method: "GET", Path: path})
	if err != nil {
		return answer{}, err
	}
	t := answer{}
	if err := json.Unmarshal([]byte(a.Body), &t); err != nil {
		return answer{}, fmt.Errorf("cannot decode what %s tells: %w", p.name, err)
	}
	if a.Status != 200 {
		return answer{}, fmt.Errorf("cannot read %s from %s: %s", path, p.name, t.Error)
	}
	return t, nil
}

// rows returns the rows in the database. They are read on a new connection, which may have to wait:
// after an outage of the API server a node counts as lost for some seconds, and Services have no
// endpoints until it is back.
func (l *Ledger) rows(ctx context.Context, p program) (answer, error) {
	var t answer
	var last error
	err := wait.For(func(ctx context.Context) (bool, error) {
		t, last = l.ask(ctx, p, "/rows")
		return last == nil, nil
	}, wait.WithContext(ctx), wait.WithTimeout(reached), wait.WithInterval(time.Second), wait.WithImmediate())
	if err != nil {
		return t, errors.Join(last, err)
	}
	return t, nil
}

// reached is how long it may take until a Service works again.
const reached = time.Minute

// Mark is a moment on the ledger's clock.
type Mark struct {
	At           float64
	Acknowledged int
	Connections  int
}

// Mark returns the present moment.
func (l *Ledger) Mark(ctx context.Context) (Mark, error) {
	t, err := l.ask(ctx, l.writers, "/now")
	return Mark{At: t.Now, Acknowledged: t.Acknowledged, Connections: t.Connections}, err
}

// Flows waits until all writers have had rows acknowledged after a mark.
func (l *Ledger) Flows(ctx context.Context, within time.Duration, after Mark) error {
	return l.flows(ctx, within, "to go on", func() bool {
		var late []Ack
		for _, a := range l.writers.acks {
			if a.Sent > after.At {
				late = append(late, a)
			}
		}
		return writersOf(late) == ledgerWriters
	})
}

// flows polls, because no event of the cluster reports rows.
func (l *Ledger) flows(ctx context.Context, within time.Duration, what string, done func() bool) error {
	var last error
	err := wait.For(func(ctx context.Context) (bool, error) {
		last = l.read(ctx, &l.writers)
		return last == nil && done(), nil
	}, wait.WithContext(ctx), wait.WithTimeout(within), wait.WithInterval(250*time.Millisecond), wait.WithImmediate())
	if err != nil {
		return errors.Join(fmt.Errorf("waited %s for the ledger's writers %s: the last failures:%s", within, what, list(latest(l.writers.failures))), last)
	}
	return nil
}

// read fetches what a program has had acknowledged since the last read, and what failed.
func (l *Ledger) read(ctx context.Context, p *program) error {
	t, err := l.ask(ctx, *p, fmt.Sprintf("/acks?from=%d&failed=%d", len(p.acks), len(p.failures)))
	if err != nil {
		return err
	}
	p.acks, p.failures, p.duels = append(p.acks, t.Acks...), append(p.failures, t.Failures...), t.Duels
	return nil
}

// Acknowledged returns all rows of the writers that were acknowledged until now.
func (l *Ledger) Acknowledged(ctx context.Context) ([]Ack, error) {
	err := l.read(ctx, &l.writers)
	return slices.Clone(l.writers.acks), err
}

// Account is what a ledger recorded in an interval, compared with the rows at its end.
type Account struct {
	// From and To are the interval's bounds.
	From, To Mark

	// Gap is the longest time without an acknowledgement in the interval, and Began its begin on
	// this machine's clock.
	Gap   time.Duration
	Began time.Time

	// Failures are what writers met in the gap.
	Failures []Failure

	// Acknowledged is the number of rows acknowledged in the interval, and Rows how many of them
	// exist.
	Acknowledged, Rows int

	// Reigns are the reigns in the interval.
	Reigns []Reign

	// Acks are the acknowledgements of the writers and the watch in the interval.
	Acks []Ack
}

// Within is an error if the gap was longer than a target. There is no target if that is 0.
func (a Account) Within(target time.Duration) error {
	if target == 0 || a.Gap <= target {
		return nil
	}
	return fmt.Errorf("for %.2fs from %s no write was acknowledged, %s is the target. Writers met:%s",
		a.Gap.Seconds(), a.Began.UTC().Format("15:04:05.00"), target, list(a.Failures))
}

func (a Account) String() string {
	return fmt.Sprintf("%s acknowledged, %s rows", thousands(a.Acknowledged), thousands(a.Rows))
}

// Account returns what has happened since a mark. It is an error if an acknowledged row is missing,
// at whatever time it was written, or if two servers were primary at the same time.
func (l *Ledger) Account(ctx context.Context, from Mark) (Account, error) {
	to, err := l.Mark(ctx)
	if err != nil {
		return Account{}, err
	}
	// The program's clock was read a moment before now, by at most the duration of the request.
	now := time.Now()
	a := Account{From: from, To: to}
	var errs []error
	var all []Ack
	for _, p := range []*program{&l.writers, &l.watch} {
		if err := l.read(ctx, p); err != nil {
			return a, err
		}
		t, err := l.rows(ctx, *p)
		if err != nil {
			return a, err
		}
		if len(p.duels) > 0 {
			errs = append(errs, fmt.Errorf("two primaries at a time: %s", strings.Join(p.duels, ", ")))
		}
		if lost := Missing(p.acks, t.Rows); len(lost) > 0 {
			errs = append(errs, fmt.Errorf("%d of %d acknowledged rows of %s are lost, the first one was %+v", len(lost), len(p.acks), p.name, lost[0]))
		}
		recent := since(p.acks, from)
		if p == &l.writers {
			begin, end := Silence(p.acks, from.At, to.At)
			a.Gap, a.Began = seconds(end-begin), now.Add(-seconds(to.At-begin))
			a.Failures = Between(p.failures, begin, end)
			a.Acknowledged = len(recent)
			a.Rows = len(recent) - len(Missing(recent, t.Rows))
		}
		a.Acks = append(a.Acks, recent...)
		all = append(all, p.acks...)
	}
	a.Reigns = Reigns(a.Acks)
	if l.engine == "postgresql" {
		errs = append(errs, Duel(all))
	}
	return a, errors.Join(errs...)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func since(acks []Ack, from Mark) []Ack {
	var out []Ack
	for _, a := range acks {
		if a.At > from.At {
			out = append(out, a)
		}
	}
	return out
}

// thousands formats a number with commas between groups of three digits.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
