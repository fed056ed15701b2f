// Package manager does for a MySQL server what goes beyond its place in the group: it reports, has
// the volume expand, and beside the primary reconciles databases and users and replaces the pods of
// an old revision, one at a time. It is part of the supervisor's process, which knows the server.
package manager

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/exchange"
	"github.com/storeplane/storeplane/internal/instance/manager/kube"
	"github.com/storeplane/storeplane/internal/instance/manager/metrics"
	"github.com/storeplane/storeplane/internal/instance/manager/mounted"
	"github.com/storeplane/storeplane/internal/instance/manager/pace"
	"github.com/storeplane/storeplane/internal/instance/mysql/group"
	"github.com/storeplane/storeplane/internal/instance/mysql/server"
)

// database is what a manager asks of its own server.
type database interface {
	Monitoring(ctx context.Context, password string) error
	Dumper(ctx context.Context, password string) error
	Users(ctx context.Context, desired []server.Login) ([]instance.Problem, error)
	Databases(ctx context.Context, desired []instance.Database, users []string) ([]instance.Problem, error)
	Queues(ctx context.Context) (map[string]int64, error)
	RenewSystem(ctx context.Context, from string) (sent bool, err error)
}

// State is what a supervisor knows of its server.
type State struct {
	// Report is the server's last report.
	Report group.Report

	// Leads is true if the server is the primary of the recorded group, and Epoch is the number of that
	// group: how many the servers have founded, starts of a single server among them.
	Leads bool
	Epoch int64

	// Held is what the server waits for, and Servers is how many servers are needed for that, if
	// that is more than are desired, or 0.
	Held    instance.Held
	Servers int

	// Restore is the progress of a restore of the server from a backup, or nil.
	Restore *instance.RestoreState
}

// Config is which server a manager is for.
type Config struct {
	// Pod is the server's pod and Scope its StatefulSet. PodOf returns the pod of an address that
	// servers of the group have.
	Pod, Scope string
	PodOf      func(address string) string

	// Volume is where the volume is mounted, TLSDir is the folder of the server's certificate, and
	// ControlDir that of the certificate that servers know each other by.
	Volume, TLSDir, ControlDir string

	// ConfigDir is the folder of the authorities by which servers verify each other. Reload has the
	// server use the certificates and authorities that are in the files now.
	ConfigDir string
	Reload    func(ctx context.Context) error

	// SetVariables sets the global variables of the server to those of a file, and returns those that it
	// refuses.
	SetVariables func(ctx context.Context, file string) ([]instance.Problem, error)

	// Move makes another member the primary, by its pod. spare is true if a third server can serve clients that read
	// meanwhile.
	Move func(ctx context.Context, pod string, spare bool) error
}

// Manager is the manager of one server.
type Manager struct {
	Config
	*exchange.Exchange

	server  database
	state   func() State
	metrics *metrics.Metrics

	wakeMember, wakePrimary pace.Signal
}

// New returns a manager. state returns what the supervisor knows.
func New(c Config, client *kube.Client, notes *exchange.Notes, s server.Server, state func() State) (*Manager, error) {
	m := &Manager{
		Config: c, server: s, state: state, metrics: metrics.New("mysql_up", "1 while MySQL answers."),
		wakeMember: pace.NewSignal(), wakePrimary: pace.NewSignal(),
	}
	var err error
	m.Exchange, err = exchange.New(client, c.Pod, c.Scope, notes, func() { m.wakeMember.Send(); m.wakePrimary.Send() })
	return m, err
}

// Metrics serves the metrics of this server.
func (m *Manager) Metrics() http.Handler {
	return promhttp.HandlerFor(m.metrics.Registry, promhttp.HandlerOpts{})
}

// Run runs the manager until the context ends.
func (m *Manager) Run(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() { m.Exchange.Run(ctx) })
	all.Go(func() { m.runMember(ctx) })
	all.Go(func() { m.followRole(ctx) })
	all.Go(func() { m.followCertificate(ctx) })
	all.Wait()
}

// followRole runs the loop beside the primary while this server is the primary.
func (m *Manager) followRole(ctx context.Context) {
	var stop func()
	defer func() {
		if stop != nil {
			stop()
		}
	}()
	state := group.State("")
	for ctx.Err() == nil {
		if now := m.state().Report.State; now != state {
			state = now
			m.wakeMember.Send()
		}
		m.metrics.Role(m.state().Report.Running, m.state().Leads)
		switch leads := m.state().Leads; {
		case leads && stop == nil:
			stop = m.startPrimary(ctx)
		case !leads && stop != nil:
			stop()
			stop = nil
		}
		pace.Wait(ctx, pace.Pause)
	}
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

// followCertificate has new connections use a certificate that was replaced.
func (m *Manager) followCertificate(ctx context.Context) {
	last := ""
	for ctx.Err() == nil {
		now := mounted.Version(m.TLSDir) + mounted.Version(m.ControlDir) + mounted.Version(m.ConfigDir)
		if now != last && m.state().Report.Running && m.Note("reload the certificate", m.Reload(ctx)) {
			last = now
		}
		pace.Wait(ctx, 2*time.Second)
	}
}
