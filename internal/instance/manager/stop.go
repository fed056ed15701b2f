package manager

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/kube"
	"github.com/storeplane/storeplane/internal/instance/manager/pace"
	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
	"github.com/storeplane/storeplane/internal/instance/manager/postgres"
)

// Bounds of the hook's parts. What is left of the pod's grace period is for the server's own
// stop.
const (
	stopWithin       = 60 * time.Second
	checkpointWithin = 20 * time.Second
	candidateWithin  = 20 * time.Second
	countWithin      = 8 * time.Second
	handOverWithin   = 20 * time.Second
	followWithin     = 45 * time.Second

	// enoughSeconds is the shortest grace period in which handing over is worthwhile.
	enoughSeconds = 10

	// endedFor is how long a standby's connection has to be gone before it counts as gone for
	// good.
	endedFor = time.Second

	pollPeriod = 100 * time.Millisecond
)

// stopper is the hook that runs before a server stops.
type stopper struct {
	Config

	log     *slog.Logger
	kube    *kube.Client
	patroni *patroni.Client
	server  stopping

	// manager is a client of this server's manager.
	manager *patroni.Client

	// begin begins to stop Patroni, and its server with it.
	begin func() error

	// started is when the hook started, and settleFor is instance.SettleFor.
	started   time.Time
	settleFor time.Duration
}

// stopping is the interface to the hook's own PostgreSQL server.
type stopping interface {
	Checkpoint(ctx context.Context) error
	Archiver(ctx context.Context) (postgres.Archiver, error)
	Receiving(ctx context.Context) (bool, error)
}

// Stop prepares the server for being stopped: a primary hands over; if all servers stop, a
// standby waits for the primary's last write. Failures are logged and ignored, since the
// server stops either way.
func Stop(ctx context.Context, c Config, config *rest.Config, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, stopWithin)
	defer cancel()
	client, err := kube.New(config, c.Namespace)
	if err != nil {
		log.Info("Cannot reach the API server", "error", err.Error())
		return
	}
	access := c.access()
	s := &stopper{
		Config: c, log: log, kube: client, patroni: patroni.At(c.Patroni, access), server: c.server(),
		manager: patroni.At(patroni.Base("https", "127.0.0.1", c.apiPort()), access), begin: stopContainer,
		started: time.Now(), settleFor: instance.SettleFor,
	}
	s.prepare(ctx)
}

// prepare prepares the server for being stopped.
func (s *stopper) prepare(ctx context.Context) {
	if grace, hurried := s.hurried(ctx); hurried {
		s.hurry(ctx, grace)
		return
	}
	status, err := s.patroni.Status(ctx)
	if err != nil {
		s.log.Info("Patroni does not answer, there is nothing to hand over", "error", err.Error())
		return
	}
	future := s.future(ctx)
	s.log.Info("Stopping", "server", describe(status), "all", future.ends)
	switch {
	case status.Primary() && !future.ends:
		s.handOver(ctx, future)
	case !status.Leads() && future.ends:
		s.follow(ctx)
	}
}

// hurried reports whether the server is about to be killed, and after what time, which is 0 if
// the pod no longer exists. Patroni stops a server and releases its lock in about a second. A
// switchover that is killed halfway would take far longer. The request goes to the manager,
// which runs beside this hook and has connections: once a pod's object is removed, the network
// may admit no new connection from it.
func (s *stopper) hurried(ctx context.Context) (time.Duration, bool) {
	ctx, cancel := context.WithTimeout(ctx, hurriedWithin)
	defer cancel()
	answer, err := s.manager.Gone(ctx, patroni.Asked{Pod: s.Pod})
	if err != nil {
		s.log.Info("The manager does not report how much time there is", "error", err.Error())
		return 0, false
	}
	return time.Duration(answer.Seconds) * time.Second, answer.Gone
}

func hurriedBy(pod *corev1.Pod) (time.Duration, bool) {
	seconds := pod.DeletionGracePeriodSeconds
	if seconds == nil || *seconds >= enoughSeconds {
		return 0, false
	}
	return time.Duration(*seconds) * time.Second, true
}

// future is what is desired of the cluster from now on.
type future struct {
	// ends is true if all servers are about to stop.
	ends bool

	size        int
	synchronous bool
}

// future returns the cluster's future by what is desired and by the StatefulSet. If the API
// server does not answer, the cluster does not count as ending, and Patroni cannot hand over
// then either.
func (s *stopper) future(ctx context.Context) future {
	set, setErr := s.kube.StatefulSet(ctx, s.Scope)
	cm, err := s.kube.ConfigMap(ctx, s.Scope)
	if kube.Ends(set, setErr, cm, err) {
		return future{ends: true}
	}
	d := instance.Desired{}
	if err != nil || json.Unmarshal([]byte(cm.Data[instance.DesiredKey]), &d) != nil {
		s.log.Info("Cannot read what is desired")
		return future{size: 1 << 20}
	}
	return future{ends: d.Hibernated, size: int(d.Size), synchronous: d.Synchronous}
}

// handOver hands over to the best standby, if there is one, and waits until that is done:
// clients can then write to the new primary before this server stops.
func (s *stopper) handOver(ctx context.Context, f future) {
	if !drain(ctx, s.server.Archiver) {
		s.log.Info("Handing over while WAL waits to be archived")
	}
	candidate := s.candidate(ctx, f)
	if candidate == "" {
		s.log.Info("There is no standby to hand over to")
		return
	}
	s.settle(ctx)
	bounded, cancel := context.WithTimeout(ctx, checkpointWithin)
	err := s.server.Checkpoint(bounded)
	cancel()
	if err != nil {
		s.log.Info("Cannot write a checkpoint", "error", err.Error())
	}
	ctx, cancel = context.WithTimeout(ctx, handOverWithin)
	defer cancel()
	if err := s.patroni.Switchover(ctx, s.Pod, candidate); err != nil {
		s.log.Info("Cannot hand over", "to", candidate, "error", err.Error())
		return
	}
	for {
		status, err := s.patroni.Status(ctx)
		if err == nil && !status.Leads() {
			s.log.Info("Handed over", "to", candidate)
			return
		}
		if !pace.Wait(ctx, pollPeriod) {
			s.log.Info("Handing over takes too long", "to", candidate)
			return
		}
	}
}

// settle waits until proxies have written that this server's pod ends, so that they can write at once which server is the
// next primary.
func (s *stopper) settle(ctx context.Context) {
	until := s.started.Add(s.settleFor)
	if time.Now().After(until) {
		return
	}
	bounded, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	if s.kube.Grace(bounded, s.Pod) >= instance.SettleIn {
		pace.Wait(ctx, time.Until(until))
	}
}

// candidate returns the standby to hand over to, or "". It waits for a standby that exists and
// does not stream yet, since this server may have become primary a moment ago: to stop before
// the standby has every write would lose some.
func (s *stopper) candidate(ctx context.Context, f future) string {
	ctx, cancel := context.WithTimeout(ctx, candidateWithin)
	defer cancel()
	start := time.Now()
	for {
		members, err := s.patroni.Cluster(ctx)
		if err != nil {
			s.log.Info("Cannot ask for standbys", "error", err.Error())
			return ""
		}
		// Without an answer of the API server no pod counts as leaving.
		leaving, _ := s.leaving(ctx)
		fit := func(pod string) bool { return pod != s.Pod && !leaving[pod] && s.ordinal(pod) < f.size }
		// The new primary takes over the set of synchronous standbys. If that contained only
		// this server, writes would wait until Patroni has updated it.
		counts := !slices.ContainsFunc(members.Members, func(m patroni.Member) bool { return fit(m.Name) && m.Streaming() && !m.Synchronous() })
		c := members.Candidate(f.synchronous, fit)
		if c != "" && (!f.synchronous || counts || time.Since(start) > countWithin) {
			return c
		}
		if !slices.ContainsFunc(members.Members, func(m patroni.Member) bool { return fit(m.Name) && m.MayLead() }) || !pace.Wait(ctx, pollPeriod) {
			return ""
		}
	}
}

// leaving returns the pods that are being deleted.
func (s *stopper) leaving(ctx context.Context) (map[string]bool, error) {
	pods, err := s.kube.Pods(ctx, s.selector())
	leaving := map[string]bool{}
	for _, pod := range pods {
		leaving[pod.Name] = pod.DeletionTimestamp != nil
	}
	return leaving, err
}

// follow waits until the primary has ended, so that this server's volume has every write if
// this server is the first to start again.
func (s *stopper) follow(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, followWithin)
	defer cancel()
	ended := time.Time{}
	for {
		switch receiving, err := s.server.Receiving(ctx); {
		case err == nil && receiving:
			ended = time.Time{}
		case ended.IsZero():
			ended = time.Now()
		case time.Since(ended) >= endedFor && !s.led(ctx):
			s.log.Info("The primary has ended")
			return
		}
		if !pace.Wait(ctx, pollPeriod) {
			s.log.Info("Waiting for the primary takes too long")
			return
		}
	}
}

// led reports whether another server leads.
func (s *stopper) led(ctx context.Context) bool {
	members, err := s.patroni.Cluster(ctx)
	if err != nil {
		return false
	}
	leader := members.Member(members.Leader())
	return leader != nil && leader.Name != s.Pod && leader.State == patroni.StateRunning
}
