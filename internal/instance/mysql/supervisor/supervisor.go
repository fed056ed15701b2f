// Package supervisor runs a MySQL server as a member of its group. It is the server's parent: it
// initializes and starts the program, founds or joins the group as package group decides, marks the
// pod with its role, and hands over before it stops.
package supervisor

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/storeplane/storeplane/internal/instance/mysql/group"
	"github.com/storeplane/storeplane/internal/instance/mysql/mysqld"
	"github.com/storeplane/storeplane/internal/instance/mysql/server"
)

const (
	// period is the pause between two passes: a primary is noticed within it.
	period = 500 * time.Millisecond

	// restartPause is the pause before a server that has failed is started again.
	restartPause = 2 * time.Second

	// stopWithin is how long the program may take to end.
	stopWithin = 90 * time.Second
)

// Outside is what a supervisor needs of the cluster around its server.
type Outside interface {
	// Cluster returns all that package group decides by, except for the reports.
	Cluster(ctx context.Context) (group.Cluster, error)

	// Peers returns the reports of the other servers, by pod. Those that do not answer are missing.
	Peers(ctx context.Context) map[string]group.Report

	// Change changes the record. It fails if the record is not the given one any more.
	Change(ctx context.Context, from, to group.Record) error

	// Mark marks this server's pod with its role. A primary's mark is removed from all other pods.
	Mark(ctx context.Context, primary bool) error

	// Address returns the address at which other servers reach a server, host:port, by its pod.
	// PodOf returns the pod of an address, or "".
	Address(pod string) string
	PodOf(address string) string

	// Leaving reports whether a pod is being deleted. Without the API server none counts as leaving.
	Leaving(ctx context.Context, pod string) bool

	// Ending reports whether all servers are about to stop.
	Ending(ctx context.Context) bool
}

// Config is which server this is, and where its files are.
type Config struct {
	Pod, Claim string
	Program    string
	Files      mysqld.Files
	Options    mysqld.Options
}

// Supervisor runs one server.
type Supervisor struct {
	Config

	outside Outside
	server  server.Server
	log     *slog.Logger
	output  io.Writer

	// process is the server's program, or nil while it does not run, and failed is when it ended
	// last without being asked to.
	process *mysqld.Process
	failed  time.Time

	// suspected is how often in a row the server was found to have transactions of its own, and
	// opened is true once this primary lets clients in.
	suspected int
	opened    bool
	marked    *bool
	said      string
	failing   string

	mu     sync.Mutex
	report group.Report
	at     time.Time

	// answered is when the server answered last, or zero if it has not since it was started.
	answered time.Time
}

// New returns a supervisor. The server's own log goes to output.
func New(c Config, outside Outside, log *slog.Logger, output io.Writer) *Supervisor {
	return &Supervisor{
		Config: c, outside: outside, log: log, output: output,
		server: server.Server{Socket: c.Options.Socket()},
	}
}

// Run runs the server until the context ends, then hands over and stops it.
func (s *Supervisor) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		s.problem(s.pass(ctx))
		select {
		case <-ctx.Done():
		case <-time.After(period):
		}
	}
	return s.stop(context.WithoutCancel(ctx))
}

// Report returns this server's report. It is read anew, so that it is not older than the request.
func (s *Supervisor) Report(ctx context.Context) (group.Report, error) {
	r := group.Report{Pod: s.Pod, Claim: s.Claim}
	data, err := s.Files.Data()
	if err != nil {
		return r, err
	}
	r.Data = data
	if data == group.Empty {
		return r, nil
	}
	if err := s.server.Observe(ctx, &r); err != nil {
		r.Running, r.Problem = false, err.Error()
	}
	return r, nil
}

// Last returns the last report of a pass, and when that was.
func (s *Supervisor) Last() (group.Report, time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.report, s.at
}

// observed stores a report.
func (s *Supervisor) observed(own group.Report, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report, s.at = own, at
	if own.Running {
		s.answered = at
	}
}

// pass observes the server and takes one step.
func (s *Supervisor) pass(ctx context.Context) error {
	if err := s.keepRunning(); err != nil {
		return err
	}
	own, err := s.Report(ctx)
	if err != nil {
		return err
	}
	if err := s.endCopy(ctx, &own); err != nil {
		return err
	}
	s.observed(own, time.Now())
	if err := s.mark(ctx, own.State == group.Online && own.Primary); err != nil {
		s.say("Cannot mark the pod with its role: " + err.Error())
	}
	if own.Joined() {
		s.suspected = 0
		return s.tend(ctx, &own)
	}
	s.opened = false
	return s.decide(ctx, &own)
}

// endCopy records that a copy is complete: the server has copied another one and was started again, or
// is a member of the group.
func (s *Supervisor) endCopy(ctx context.Context, own *group.Report) error {
	if own.Data != group.Copy || !own.Running {
		return nil
	}
	if own.State != group.Online {
		copied, err := s.server.Copied(ctx)
		if err != nil || !copied {
			return err
		}
	}
	if err := s.Files.EndCopy(); err != nil {
		return err
	}
	own.Data = group.Whole
	return nil
}

// keepRunning starts the server if there is data and it does not run.
func (s *Supervisor) keepRunning() error {
	if s.process != nil {
		ended, again := s.process.Ended()
		if !ended {
			return nil
		}
		if !again {
			s.failed = time.Now()
			s.log.Info("MySQL has ended", "code", s.process.Code())
		}
		s.process = nil
	}
	data, err := s.Files.Data()
	if err != nil || data == group.Empty || time.Since(s.failed) < restartPause {
		return err
	}
	s.mu.Lock()
	s.answered = time.Time{}
	s.mu.Unlock()
	s.process, err = mysqld.Start(s.Program, s.Files, s.Options, s.output)
	return err
}

// mark marks the pod with its role if that has changed.
func (s *Supervisor) mark(ctx context.Context, primary bool) error {
	if s.marked != nil && *s.marked == primary {
		return nil
	}
	if err := s.outside.Mark(ctx, primary); err != nil {
		return err
	}
	s.marked = &primary
	return nil
}

// say logs what the server waits for, once.
func (s *Supervisor) say(message string) {
	if message != s.said {
		s.said = message
		if message != "" {
			s.log.Info(message)
		}
	}
}

// problem logs why a pass has failed, once. A step that failed is tried again.
func (s *Supervisor) problem(err error) {
	message := ""
	if err != nil {
		message = err.Error()
	}
	if message != "" && message != s.failing {
		s.log.Info("Trying again", "error", message)
	}
	s.failing = message
}

// membership returns how the server takes part in a group.
func (s *Supervisor) membership(name string, c *group.Cluster) server.Membership {
	m := server.Membership{Name: name, Address: s.outside.Address(s.Pod)}
	for _, v := range c.Volumes {
		if v.Pod != s.Pod {
			m.Seeds = append(m.Seeds, s.outside.Address(v.Pod))
		}
	}
	return m
}
