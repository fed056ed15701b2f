package manager

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/exchange"
	"github.com/storeplane/storeplane/internal/instance/manager/kube"
	"github.com/storeplane/storeplane/internal/instance/manager/metrics"
	"github.com/storeplane/storeplane/internal/instance/manager/pace"
	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
	"github.com/storeplane/storeplane/internal/instance/manager/postgres"
	"github.com/storeplane/storeplane/internal/instance/manager/report"
)

// database is the interface to a manager's own PostgreSQL server.
type database interface { //nolint:interfacebloat // it is all that a manager asks of PostgreSQL
	Checkpoint(ctx context.Context) error
	Reload(ctx context.Context) error
	Programs(ctx context.Context) (postgres.Programs, error)
	Followers(ctx context.Context) (map[string]report.Follower, error)
	Monitoring(ctx context.Context) error
	Roles(ctx context.Context, desired []postgres.Login) ([]instance.Problem, error)
	Archiver(ctx context.Context) (postgres.Archiver, error)
	Beat(ctx context.Context) (segment string, at time.Time, err error)
	Release(ctx context.Context, slot, position string) error
	Fence(ctx context.Context) (postgres.Fenced, error)
	Follows(ctx context.Context) (conninfo string, err error)
	Configured(ctx context.Context) (conninfo string, err error)
	Unfence(ctx context.Context) error
	Replayed(ctx context.Context) (number uint64, err error)
	Databases(ctx context.Context, desired []instance.Database, users []string) ([]instance.Problem, error)
}

// Manager is the instance manager of one server.
type Manager struct {
	Config
	*exchange.Exchange

	patroni *patroni.Client
	server  database
	metrics *metrics.Metrics

	// remote returns a client of another server's Patroni, and sibling one of its manager, by
	// their base URLs.
	remote, sibling func(base string) *patroni.Client

	// version is the report on this server that is left to the primary's next report, or nil.
	version atomic.Pointer[instance.Member]

	// wakeMember and wakePrimary start a pass of a loop.
	wakeMember, wakePrimary pace.Signal

	// seen is the last status of this server that Patroni reported, or nil.
	seen atomic.Pointer[patroni.Status]

	// led is when this server led last, or nil.
	led atomic.Pointer[led]

	// sized is true once the server need not wait for its volume to expand.
	sized atomic.Bool

	// owned is true once this cluster may start with what the volume holds.
	owned atomic.Bool

	// restarts counts restarts of servers. It outlasts the loop beside the primary, which the
	// primary's own restart ends.
	restarts restarts
}

// New returns a manager. config is how to reach the API server.
func New(c Config, config *rest.Config, log *slog.Logger) (*Manager, error) {
	// client-go's own log is discarded: the exchange logs its failures, once each.
	klog.LogToStderr(false)
	klog.SetOutput(discard{})

	client, err := kube.New(config, c.Namespace)
	if err != nil {
		return nil, err
	}
	access := c.access()
	m := &Manager{
		Config: c, patroni: patroni.At(c.Patroni, access), server: c.server(), metrics: metrics.New("patroni_up", "1 while Patroni answers."),
		remote: clients(access), sibling: clients(access),
		wakeMember: pace.NewSignal(), wakePrimary: pace.NewSignal(),
	}
	m.Exchange, err = exchange.New(client, c.Pod, c.Scope, exchange.NewNotes(log), func() { m.wakeMember.Send(); m.wakePrimary.Send() })
	if err != nil {
		return nil, err
	}
	return m, nil
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// Run runs the manager until the context ends.
func (m *Manager) Run(ctx context.Context) error {
	serving, err := m.serve(ctx)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	all.Go(func() { m.Exchange.Run(ctx) })
	all.Go(func() { m.followRole(ctx) })
	all.Go(func() { m.followFiles(ctx) })
	all.Go(func() { m.runMember(ctx) })
	all.Go(func() { m.runFill(ctx) })
	<-ctx.Done()
	m.end()
	all.Wait()
	return <-serving
}

// followRole reads this server's status each second, and runs the loop beside the primary
// while the server is the primary.
func (m *Manager) followRole(ctx context.Context) {
	var stop func()
	defer func() {
		if stop != nil {
			stop()
		}
	}()
	lost := time.Time{}
	for ctx.Err() == nil {
		status, err := m.patroni.Status(ctx)
		if m.Note("ask Patroni", err) {
			lost = time.Time{}
		} else {
			status = nil
			if lost.IsZero() {
				lost = time.Now()
			}
		}
		if changed(m.seen.Swap(status), status) {
			m.wakeMember.Send()
		}
		m.metrics.Role(status != nil, status != nil && status.Primary())
		if status != nil {
			m.metrics.Restart(status.PendingRestart)
		}
		switch {
		case stop == nil && status != nil && status.Primary():
			stop = m.startPrimary(ctx)
		case stop != nil && (status != nil && !status.Leads() || !lost.IsZero() && time.Since(lost) > 10*time.Second):
			stop()
			stop = nil
			go m.demoted(ctx)
		}
		pace.Wait(ctx, time.Second)
	}
}

// changed reports whether a server's status has changed.
func changed(before, after *patroni.Status) bool {
	if before == nil || after == nil {
		return before != after
	}
	return *before != *after
}

// startPrimary starts the loop beside the primary, and returns a function that ends it.
func (m *Manager) startPrimary(ctx context.Context) func() {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.Note("run beside the primary", m.runPrimary(ctx))
	}()
	return func() {
		cancel()
		<-done
	}
}

func describe(status *patroni.Status) string {
	if status == nil {
		return "unknown"
	}
	return fmt.Sprintf("%s %s", status.Role, status.State)
}
