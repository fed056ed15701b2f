package manager

import (
	"context"
	"reflect"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/archive"
	"github.com/storeplane/storeplane/internal/instance/manager/pace"
	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
	"github.com/storeplane/storeplane/internal/instance/manager/report"
	"github.com/storeplane/storeplane/internal/instance/manager/volume"
)

const (
	memberPeriod = 10 * time.Second

	// startWithin is how long a server waits for its volume to expand.
	startWithin = 60 * time.Second

	// problemDelay is how long a problem lasts before it is reported.
	problemDelay = 15 * time.Second
)

// member is the state of the loop of every server.
type member struct {
	*Manager

	started time.Time

	// beside is the primary beside which the server starts.
	beside beside

	growth volume.Grower

	problem string
	since   time.Time

	// left is since when the version is left to the primary's first report. It is zero while it is
	// not.
	left time.Time

	// data is what the volume held before the server started, if that was read. unreadable is
	// since when it cannot be read, and zero while it can. kept is true if the volume is of an
	// earlier cluster. held is why the server was not started at the last pass.
	data       *instance.Data
	unreadable time.Time
	kept       bool
	held       instance.Held

	// withdrawn is true if the server was to lead and is not any more: its pod is deleted.
	withdrawn bool

	// idle is since when the server is a standby that does not follow, or when it was nudged
	// last. It is zero while the server follows.
	idle time.Time

	// unfinished is since when there is a copy that was never finished and is not being
	// resumed. It is zero while there is none.
	unfinished time.Time

	// empty is since when no server has data and none is at work on it, and zero otherwise.
	// marked is the resource version that Patroni's configuration had then. lost is the message
	// for the case that the cluster had data.
	empty  time.Time
	marked string
	lost   instance.Held

	// leaderless is since when there is no leader, and zero otherwise.
	leaderless time.Time
}

func (m *Manager) runMember(ctx context.Context) {
	b := &member{Manager: m, started: time.Now()}
	pace.Loop(ctx, m.wakeMember, b.pass)
}

// pass expands the volume and reports on this server.
func (b *member) pass(ctx context.Context) time.Duration {
	last := instance.Member{}
	known := b.Reported(instance.MemberKey(b.Pod), &last)

	next := instance.Member{Protocol: instance.Protocol, Version: last.Version, Capacity: last.Capacity, Volume: last.Volume, Restart: last.Restart}
	status := b.seen.Load()
	if status != nil {
		next.Restart = status.PendingRestart
		if v := status.Version(); v != "" {
			next.Version = v
		}
	}
	b.recheckUpstream(status, time.Now())
	b.retryBootstrap(ctx, status, time.Now())
	b.resume(ctx, status, time.Now())
	b.rewound(ctx)
	next.Message = b.settled(problemOf(status), last.Message, time.Now())
	if s := (archive.Config{Volume: b.Volume}).TimelineState(); s != nil && s.Message != "" {
		next.Message = s.Message
	}
	next.Filling = b.filling(last.Filling)
	b.forgetRestore()
	next.Restore = archive.Config{Volume: b.Volume}.RestoreState()
	b.takeOwnership(ctx, &next)
	if b.lost.Message != "" {
		next.Held = &b.lost
	}
	b.reportNoLeader(ctx, status, time.Now(), &next)
	if b.kept && !b.ran() {
		next.Data = b.data
	}
	b.grow(ctx, &next)
	b.metrics.Certificate("tls", b.TLSDir)
	b.metrics.Certificate("control", b.ControlDir)
	switch {
	case !known:
	case b.leavesVersion(status, last, next, time.Now()):
		b.version.Store(&next)
		return pace.Pause
	default:
		b.version.Store(nil)
		b.Publish(ctx, instance.MemberKey(b.Pod), next)
	}
	if !b.owned.Load() {
		return b.heldPeriod()
	}
	return memberPeriod
}

// leavesVersion reports whether the report on this server is left to the primary's first report, which
// follows within settleWithin: each report runs the function. It is if the server is the cluster's
// first primary, and nothing but its version is new.
func (b *member) leavesVersion(status *patroni.Status, last, next instance.Member, now time.Time) bool {
	rest := next
	rest.Version = last.Version
	if status == nil || !status.Primary() || b.ran() || last.Version != "" || next.Version == "" || !reflect.DeepEqual(rest, last) {
		b.left = time.Time{}
		return false
	}
	if b.left.IsZero() {
		b.left = now
	}
	return now.Sub(b.left) < 2*settleWithin
}

// heldPeriod returns how often a server that is held checks whether it may start. What it
// waits for takes seconds in most cases, but a decision of a user may take long.
func (b *member) heldPeriod() time.Duration {
	if time.Since(b.started) < startWithin {
		return pace.Pause
	}
	return memberPeriod / 2
}

// forgetRestore removes an interrupted restore once the cluster has had a primary: no restore
// runs any more, and a copy of the primary may need the space.
func (b *member) forgetRestore() {
	if b.ran() {
		b.Note("forget an interrupted restore", archive.Config{Volume: b.Volume}.ForgetRestore())
	}
}

// ran reports whether the cluster has had a primary.
func (b *member) ran() bool {
	last, known := b.LastCluster()
	return known && last.Primary != ""
}

func problemOf(status *patroni.Status) string {
	if status == nil {
		return "Patroni does not answer"
	}
	return report.ServerProblem(status.State)
}

// settled returns a problem once it has lasted for problemDelay, and the last message until then.
// The end of a problem is reported at once.
func (b *member) settled(problem, last string, now time.Time) string {
	if problem != b.problem {
		b.problem, b.since = problem, now
	}
	if problem == "" || now.Sub(b.since) >= problemDelay {
		return problem
	}
	return last
}

func (b *member) filling(last int) int {
	used, size, err := volume.Usage(b.Volume)
	if !b.Note("measure the volume", err) {
		return last
	}
	b.metrics.Volume(used, size)
	return volume.Filling(used, size, last)
}

// grow expands the volume of this server.
func (b *member) grow(ctx context.Context, next *instance.Member) {
	if time.Since(b.started) >= startWithin {
		b.sized.Store(true)
	}
	growth, known := b.Expand(ctx, &b.growth, next)
	if known && (growth.Done || growth.Refused) {
		b.sized.Store(true)
	}
}
