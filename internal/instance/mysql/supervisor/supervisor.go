// Package supervisor runs a MySQL server as a member of its group. It is the server's parent: it
// initializes and starts the program, founds or joins the group as package group decides, marks the
// pod with its role, and hands over before it stops.
package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/mysql/group"
	"github.com/storeplane/storeplane/internal/instance/mysql/mysqld"
	"github.com/storeplane/storeplane/internal/instance/mysql/server"
)

const (
	// period is the pause between two passes: a primary is noticed within it.
	period = 500 * time.Millisecond

	// restartPause is the pause before a server that has failed is started again. It doubles up to
	// longestPause, until the server has run for steadyAfter.
	restartPause = 2 * time.Second
	longestPause = 30 * time.Second
	steadyAfter  = time.Minute

	// stopWithin is how long the program may take to end.
	stopWithin = 90 * time.Second

	// outsideWithin is how long a member of a group waits for the API server: it goes on without.
	outsideWithin = 2 * time.Second

	// tendPeriod is how often a member of a group compares that with the record, if nothing changes.
	tendPeriod = 5 * time.Second

	// replicaPeriod is how often a replica's pod is marked if it has no mark.
	replicaPeriod = time.Minute

	// knownFor is for how long a server waits until its name leads to it, before it joins its group all the same.
	knownFor = 30 * time.Second

	// roomPeriod is how often a server looks for room on its volume.
	roomPeriod = 10 * time.Second

	// queueFor is for how long a server lets another one, which does not copy a member yet, do so first.
	queueFor = time.Minute

	// awayFor is for how long a member has to be outside of the primary's view before it is removed
	// from the record.
	awayFor = 30 * time.Second
)

// Outside is what a supervisor needs of the cluster around its server.
type Outside interface { //nolint:interfacebloat // it is all that a server asks of the cluster around it
	// Cluster returns all that package group decides by, except for the reports, and Record the record
	// alone, which costs less.
	Cluster(ctx context.Context) (group.Cluster, error)
	Record(ctx context.Context) (group.Record, error)

	// Peers returns the reports of other servers, by pod: of those pods, or of all that there may
	// be if none are given. Those that do not answer are missing.
	Peers(ctx context.Context, pods ...string) map[string]group.Report

	// Change changes the record. It fails if the record is not the given one any more.
	Change(ctx context.Context, from, to group.Record) error

	// Mark marks this server's pod with its role. A primary's mark is removed from all other pods.
	Mark(ctx context.Context, primary bool) error

	// Remark changes the mark of a pod from one role to another, of which "" is no mark. It does nothing if the pod has
	// another mark.
	Remark(ctx context.Context, pod, from, to string) error

	// Handed marks another server's pod as the primary's, after a hand-over to it, and removes the mark of this one's:
	// clients find the new primary before it has noticed itself.
	Handed(ctx context.Context, to string) error

	// Address returns the address at which other servers reach a server, host:port, by its pod.
	// PodOf returns the pod of an address, or "".
	Address(pod string) string
	PodOf(address string) string

	// Known reports whether the name of this server leads to it, and to no pod of before.
	Known(ctx context.Context) bool

	// Leaving reports whether a pod is being deleted. Without the API server none counts as leaving.
	Leaving(ctx context.Context, pod string) bool

	// Grace returns how long this server's pod, which is being deleted, may take to end. It is 0 if the pod is not,
	// or not any more, and without the API server.
	Grace(ctx context.Context) time.Duration

	// Ending reports whether all servers are about to stop.
	Ending(ctx context.Context) bool
}

// Config is which server this is, and where its files are.
type Config struct {
	Pod, Claim string
	Program    string
	Files      mysqld.Files
	Options    mysqld.Options

	// VariablesFile is the file of instance.MySQLVariablesFile.
	VariablesFile string

	// Size returns how many servers the cluster is to have, and 0 while that is not known.
	Size func() int

	// Warn creates an event about the DatabaseCluster, with a reason of package apis/apps/v1.
	Warn func(ctx context.Context, reason, message string)

	// Fetch fills a folder, which does not exist, with the data of the backup that the claim names, and
	// passes on what it does. The folder exists afterwards only if it is complete. It returns what was
	// written after the backup.
	Fetch func(ctx context.Context, folder string, progress func(message string)) (mysqld.Replay, error)
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
	pause   time.Duration

	// suspected is how often in a row the server was found to have transactions of its own.
	// recovering is true while it is on its way into the group, and failures is how often in a row it
	// could not get there. opened is true once this primary lets clients in.
	// queued is since when the server waits for its turn to copy a member, or zero.
	// cramped is when the volume had no room last to set the data aside. inPlace is true if a copy of a member is to replace
	// the data where it is, for lack of room.
	suspected  int
	cramped    time.Time
	inPlace    bool
	queued     time.Time
	recovering bool
	failures   int
	opened     bool

	// free returns how many bytes a volume has left.
	free func(dir string) (uint64, error)

	// fullSince is since when the volume of this member is full, or zero, and yielded when it left the group for that.
	// roomless is true while the server waits for room, and is not needed to decide who leads.
	fullSince, yielded time.Time
	roomless           bool

	// marked is the role that the pod is marked with, or nil if that is not known, and markedAt is
	// when that was done.
	marked   *bool
	markedAt time.Time

	demotion demotion

	// tended is when the group was compared with the record, and as is what the server reported then.
	// agreed is true if the other members agreed in this pass that this server is the primary.
	tended time.Time
	as     string
	agreed bool

	// ends is why this supervisor has killed the program, or "".
	ends string

	// idle is since when this server, which is in no group, has changed nothing, or zero, and fails is true while the last step
	// has failed.
	idle  time.Time
	fails bool

	// away is since when members of the record are outside of this primary's view.
	away map[string]time.Time

	// record is the last record that was read of a group that took writes.
	record  group.Record
	failing string

	mu     sync.Mutex
	report group.Report
	at     time.Time

	// held is what the server waits for, and needed how many servers are needed for that, or 0.
	held   instance.Held
	needed int

	// restored is the progress of the restore of this server from a backup, or nil, and restoreFailed is
	// when the last one failed, and restorePause the pause after that.
	restored      *instance.RestoreState
	restoreFailed time.Time
	restorePause  time.Duration

	// stuck is the view in which group communication of the server has stopped, or "".
	stuck string

	// isFull is true while the volume counts as full.
	isFull bool

	// cause is why the program ended last, or "".
	cause string

	// leads is true if this server is the primary of the recorded group, and epoch is the number of that
	// group.
	leads bool
	epoch int64

	// answered is when the server answered last, or zero if it has not since it was started, and started is
	// when that was.
	answered, started time.Time

	// unknown is since when the server waits until its name leads to it, or zero.
	unknown time.Time

	// alone is true while this supervisor has the server take writes without a group, and heldUp is when a statement held up
	// the group that it is to form last. renamed is true if the server had no UUID before it was started.
	// forming is true while it founds a group after that.
	alone   bool
	heldUp  time.Time
	renamed bool
	forming bool

	// stopping is when the server was asked to stop.
	stopping time.Time

	// seen is true once it is recorded that the server is in the group that it has joined.
	seen bool

	variables variables
}

// New returns a supervisor. The server's own log goes to output.
func New(c Config, outside Outside, log *slog.Logger, output io.Writer) *Supervisor {
	return &Supervisor{
		Config: c, outside: outside, log: log, output: output,
		server: server.Server{Socket: c.Options.Socket()},
		// Whether this server is needed is decided before it is started on a full volume.
		roomless: true, failed: time.Now(), free: freeOf,
	}
}

// Run runs the server until the context ends, then hands over and stops it.
func (s *Supervisor) Run(ctx context.Context) error {
	watched, stopWatch := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWatch()
	go s.watch(watched)
	go s.compare(watched)
	for ctx.Err() == nil {
		s.problem(s.pass(ctx))
		pause(ctx, s.rest())
	}
	ctx, s.stopping = context.WithoutCancel(ctx), time.Now()
	handed, err := s.handOver(ctx)
	// A primary is ready until it has handed over.
	stopWatch()
	if err != nil {
		s.log.Info("Cannot hand over", "error", err.Error())
		s.give(ctx)
	}
	return s.stop(ctx, handed)
}

// watch observes the server, however long a step takes that is being executed: by this it is known
// whether the server is alive and ready.
func (s *Supervisor) watch(ctx context.Context) {
	for ctx.Err() == nil {
		if own, err := s.Report(ctx); err == nil {
			s.observed(own, time.Now())
		}
		select {
		case <-ctx.Done():
		case <-time.After(period):
		}
	}
}

// Report returns this server's report. It is read anew, so that it is not older than the request.
func (s *Supervisor) Report(ctx context.Context) (group.Report, error) {
	r := group.Report{Pod: s.Pod, Claim: s.Claim}
	data, err := s.Files.Data()
	if err != nil {
		return r, err
	}
	r.Data = data
	if r.Full, err = s.full(); err != nil || data == group.Empty {
		return r, err
	}
	observed := r
	if err := s.server.Observe(ctx, &observed); err != nil {
		// What was read before the error may not belong together.
		r.Problem, r.Answers = s.why(err), server.Answers(err)
		return r, nil
	}
	observed.Answers = true
	s.standalone(&observed)
	return observed, nil
}

// why returns why the server cannot be observed: what it answers, or what it said before it ended. It is
// "" for one that does not answer, as while it starts.
func (s *Supervisor) why(err error) string {
	if server.Answers(err) {
		return err.Error()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause
}

// Leads reports whether this server is the primary of the recorded group.
func (s *Supervisor) Leads() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leads
}

// Epoch returns the number of the group that this server was the primary of last.
func (s *Supervisor) Epoch() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.epoch
}

func (s *Supervisor) setLeads(leads bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leads = leads
}

// Server returns the client of the server.
func (s *Supervisor) Server() server.Server { return s.server }

// Reload has new connections use the certificates and the authorities that are in the files now.
func (s *Supervisor) Reload(ctx context.Context) error {
	if err := s.Options.Trust(); err != nil {
		return err
	}
	return s.server.ReloadCertificates(ctx)
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
	if own.Answers {
		s.answered, s.cause = at, ""
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
	s.count(&own)
	gate := s.demote(ctx, &own)
	if !own.Running && s.process != nil && s.marked != nil && *s.marked {
		// A server that does not answer at the moment may take writes all the same, and keeps its
		// mark. Another one takes it if it becomes the primary, so the others are asked next.
		s.setLeads(false)
		s.as = ""
		return gate
	}
	s.setLeads(s.Leads() && own.State == group.Online && own.Primary)
	s.agreed = false
	var failed error
	if own.Joined() {
		s.suspected, s.idle, s.fails = 0, time.Time{}, false
		if ends, err := s.restart(&own); err != nil || ends {
			return err
		}
		yields, err := s.yield(ctx, &own)
		if err := errors.Join(err, s.inGroup()); err != nil || yields {
			return err
		}
		failed = s.tend(ctx, &own)
	}
	if errors.Is(failed, errAlone) {
		// A member goes on without the API server, with the role that it has.
		return gate
	}
	failed = errors.Join(gate, failed)
	if !s.demotion.refuses(&own) {
		if err := s.mark(ctx, s.Leads()); err != nil {
			failed = errors.Join(failed, fmt.Errorf("cannot mark the pod with its role: %w", err))
		}
	}
	if own.Joined() {
		return failed
	}
	s.opened, s.fullSince = false, time.Time{}
	return errors.Join(gate, s.decide(ctx, &own))
}

// count counts how often the server could not recover in its group.
func (s *Supervisor) count(own *group.Report) {
	switch {
	case own.State == group.Online, own.Data == group.Copy:
		// What could not be brought up to date is replaced by the copy.
		s.recovering, s.failures, s.inPlace = false, 0, false
	case own.State == group.Recovering:
		s.recovering = true
	case own.State == group.Failed && s.recovering:
		s.recovering = false
		s.failures++
	}
}

// endCopy records that a copy is complete: the server has copied another one and was started again, or
// is a member of the group.
func (s *Supervisor) endCopy(ctx context.Context, own *group.Report) error {
	if own.Data != group.Copy || !own.Running {
		return nil
	}
	if own.State != group.Online {
		copied, err := s.copied(ctx, own)
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

// copied reports whether a copy that was begun is complete: it has given the server another UUID. A server
// that was initialized for it had none before, and has made no other copy.
func (s *Supervisor) copied(ctx context.Context, own *group.Report) (bool, error) {
	same, known, err := s.Files.Before(own.Server)
	if err != nil || known {
		return !same, err
	}
	return s.server.Copied(ctx)
}

// keepRunning starts the server if there is data and it does not run.
func (s *Supervisor) keepRunning() error {
	if s.process != nil {
		ended, again := s.process.Ended()
		if !ended {
			if time.Since(s.process.Began()) > steadyAfter {
				s.pause = 0
			}
			return nil
		}
		if !again {
			s.pause = min(max(2*s.pause, restartPause), longestPause)
			s.failed = time.Now()
			s.ended(cmp.Or(s.ends, s.process.Problem()))
		}
		s.process, s.ends = nil, ""
		s.mu.Lock()
		s.answered = time.Time{}
		s.mu.Unlock()
	}
	data, err := s.Files.Data()
	if err != nil || data == group.Empty || time.Since(s.failed) < s.pause {
		return err
	}
	if waits, err := s.waitsForRoom(); err != nil || waits {
		return err
	}
	s.setAlone(false)
	if s.renamed = data == group.Whole; s.renamed {
		err = s.Files.ForgetIdentity()
	} else {
		// The server would remove the sign that it was killed while it copied another one.
		err = s.Files.BeginCopy()
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.answered, s.started = time.Time{}, time.Now()
	s.mu.Unlock()
	s.demotion = demotion{}
	s.process, err = mysqld.Start(s.Program, s.Files, s.Options, s.output)
	return err
}

// began returns when the program was started last.
func (s *Supervisor) began() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.started
}

// ended notes why the program has ended.
func (s *Supervisor) ended(why string) {
	s.log.Info("MySQL has ended", "why", why)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cause = why
}

// mark marks the pod with its role if that has changed, and a primary's from time to time: another
// server may have removed the mark, or a user. A replica without a mark is found later.
func (s *Supervisor) mark(ctx context.Context, primary bool) error {
	if s.marked != nil && *s.marked == primary {
		switch age := time.Since(s.markedAt); {
		case !primary && age >= replicaPeriod:
			return s.remarkOwn(ctx)
		case !primary, !s.agreed, age < tendPeriod:
			return nil
		}
	}
	if err := s.outside.Mark(ctx, primary); err != nil {
		return err
	}
	s.marked, s.markedAt = &primary, time.Now()
	return nil
}

// remarkOwn marks the pod of a replica that has no mark: a primary that was to hand over to it may have removed that.
func (s *Supervisor) remarkOwn(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, outsideWithin)
	defer cancel()
	if err := s.outside.Remark(ctx, s.Pod, "", instance.RoleReplica); err != nil {
		return err
	}
	s.markedAt = time.Now()
	return nil
}

// Held returns what the server waits for, and how many servers are needed for that if that is more than
// are desired, or 0. The message is empty while it waits for nothing.
func (s *Supervisor) Held() (held instance.Held, servers int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held, s.needed
}

// say logs what the server waits for, once.
func (s *Supervisor) say(message string) { s.hold(instance.Held{Message: message}, 0) }

func (s *Supervisor) hold(held instance.Held, servers int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if held.Message != s.held.Message && held.Message != "" {
		s.log.Info("Waiting", "reason", held.Message)
	}
	s.held, s.needed = held, servers
}

// problem logs why a pass has failed, once. A step that failed is tried again.
func (s *Supervisor) problem(err error) {
	message := ""
	if err != nil {
		message = err.Error()
	}
	if message != "" && message != s.failing {
		s.log.Info("Operation failed, retrying", "error", message)
	}
	s.failing = message
}

// membership returns how the server takes part in a group, given the servers that it joins by.
func (s *Supervisor) membership(name string, by []string) (server.Membership, error) {
	address, err := s.address()
	if err != nil {
		return server.Membership{}, err
	}
	m := server.Membership{Name: name, Address: address}
	for _, pod := range by {
		m.Seeds = append(m.Seeds, s.outside.Address(pod))
	}
	return m, nil
}
