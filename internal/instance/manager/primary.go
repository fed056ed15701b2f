package manager

import (
	"context"
	"slices"
	"time"

	k8sappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/apply"
	"github.com/storeplane/storeplane/internal/instance/manager/kube"
	"github.com/storeplane/storeplane/internal/instance/manager/pace"
	"github.com/storeplane/storeplane/internal/instance/manager/report"
	"github.com/storeplane/storeplane/internal/instance/manager/roll"
)

const (
	// primaryPeriod is the pause between two passes of the loop beside the primary.
	primaryPeriod = 5 * time.Second

	// rollingPeriod is the pause while a step is being executed or waited for.
	rollingPeriod = time.Second

	// settleWithin is how long a new primary tries to reconcile databases and users before it
	// reports without that.
	settleWithin = 5 * time.Second

	// tiePeriod is how often the owner of the leader lock is checked.
	tiePeriod = time.Minute
)

// primary is the state of the loop beside the primary. A new primary starts from the last
// report of the one before.
type primary struct {
	*Manager

	pods *kube.Watch[corev1.Pod]
	set  *kube.Watch[k8sappsv1.StatefulSet]

	lags       report.Lags
	applied    apply.Applier
	parameters parameters
	began      time.Time
	since      time.Time
	tied       time.Time
	promoted   bool
	archiving  *archiving
	repository repositoryVolume
	detached   detached
}

// runPrimary runs the loop until the context ends.
func (m *Manager) runPrimary(ctx context.Context) error {
	p := &primary{Manager: m, began: time.Now(), since: time.Now(), archiving: m.newArchiving()}
	p.applied = apply.Applier{Exchange: m.Exchange, Changed: m.wakePrimary.Send, Bring: p.bring}
	w := m.Watcher(m.wakePrimary.Send)
	var err error
	if p.pods, err = w.Pods(m.selector()); err != nil {
		return err
	}
	if p.set, err = w.StatefulSet(m.Scope); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go p.pods.Run(ctx)
	go p.set.Run(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		p.archiving.run(ctx)
	}()
	pace.Loop(ctx, m.wakePrimary, p.pass)
	cancel()
	<-watched
	m.metrics.Cluster(nil, true)
	m.metrics.Archive(nil, 0)
	return nil
}

// pass takes one step towards what is desired, and reports.
func (p *primary) pass(ctx context.Context) time.Duration {
	raw, desired, ok := p.Target()
	if !ok || !p.pods.Synced() || !p.set.Synced() {
		return rollingPeriod
	}
	p.Controlled(p.pods.List())
	before, ok := p.LastCluster()
	if !ok {
		return rollingPeriod
	}
	p.tie(ctx)
	if !p.applied.Apply(ctx, raw, desired) && time.Since(p.began) < settleWithin {
		// The first report is complete, instead of a second one a moment later.
		return rollingPeriod
	}
	p.parameters.check(ctx, p.Manager, desired.Parameters)
	p.growRepository(ctx, desired, time.Now())

	view, err := p.observe(ctx, raw, desired)
	if !p.Note("observe the servers", err) {
		return rollingPeriod
	}
	step := roll.Next(view.cluster)
	p.decide(desired)
	next := p.report(view, step, before, p.named(desired, before.Began))
	p.metrics.Cluster(&next, next.Applied == instance.Digest(raw))
	reports := map[string]any{instance.ClusterKey: next}
	if own := p.version.Swap(nil); own != nil {
		reports[instance.MemberKey(p.Pod)] = own
	}
	p.PublishAll(ctx, instance.ClusterKey, reports, p.Obsolete(view.cluster.Servers)...)
	p.createEvents(ctx, before, next)
	p.reloadStandbys(ctx, view)
	p.reinitialize(ctx, view)
	p.execute(ctx, step, raw, desired)
	if next.Rolling != "" {
		return rollingPeriod
	}
	return primaryPeriod
}

// tie makes the StatefulSet the owner of the leader lock, which Patroni creates, so that the
// lock is deleted with the StatefulSet.
func (p *primary) tie(ctx context.Context) {
	set := p.set.One()
	if set == nil || time.Since(p.tied) < tiePeriod {
		return
	}
	lock, err := p.Kube.ConfigMap(ctx, instance.LeaderName(p.Scope))
	if !p.Note("read the leader lock", err) {
		return
	}
	owned := slices.ContainsFunc(lock.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == set.UID })
	owner := metav1.OwnerReference{APIVersion: k8sappsv1.SchemeGroupVersion.String(), Kind: "StatefulSet", Name: set.Name, UID: set.UID}
	if owned || p.Note("tie the leader lock to the StatefulSet", p.Kube.Own(ctx, instance.LeaderName(p.Scope), owner)) {
		p.tied = time.Now()
	}
}

// decide ends the effect of an annotation that names a leader, since there is one: it moves
// the time at which the primary began to lead, which is part of the annotation's value.
func (p *primary) decide(desired *instance.Desired) {
	if instance.LeadWith(desired.LeadWith, instance.LeadState(p.OwnerUID(), stamp(p.since))) != "" {
		p.since = time.Now()
	}
}

// named reports whether this server leads because an annotation named it, given when the
// primary before began to lead.
func (p *primary) named(desired *instance.Desired, before string) bool {
	return instance.LeadWith(desired.LeadWith, instance.LeadState(p.OwnerUID(), before)) == instance.VolumeClaim(p.Pod)
}

// stampLayout is the layout of a time that is valid in the value of an annotation.
const stampLayout = "20060102T150405Z"

// stamp formats a time, or returns "" for zero.
func stamp(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(stampLayout)
}

// report returns the report on all servers. Applied and Credentials keep their values until
// new ones are applied.
func (p *primary) report(v *view, step roll.Step, before instance.Cluster, named bool) instance.Cluster {
	next := instance.Cluster{
		Primary: p.Pod, Began: stamp(p.since), Set: p.ControllerUID(), Owner: p.OwnerUID(), Timeline: before.Timeline, Applied: before.Applied, Credentials: before.Credentials,
		Standbys: report.Joined(p.Pod, v.standbys, &before, named), Rolling: step.Message, System: before.System, Stanza: before.Stanza, Archive: before.Archive, Repository: before.Repository,
	}
	if p.repository.known {
		next.Repository = p.repository.words
	}
	if v.timeline != 0 {
		next.Timeline = v.timeline
	}
	if p.applied.Done {
		next.Applied, next.Credentials = p.applied.Digest, p.applied.Credentials
	}
	problems := slices.Concat(p.applied.Problems, p.parameters.problems, report.Pods(v.pods, before.Problems))
	if !p.applied.Done {
		// Problems that the primary before found are kept until this one has tried.
		problems = append(problems, slices.DeleteFunc(slices.Clone(before.Problems), func(b instance.Problem) bool {
			return b.Subject != instance.SubjectDatabase && b.Subject != instance.SubjectUser
		})...)
	}
	if !p.parameters.known {
		problems = append(problems, slices.DeleteFunc(slices.Clone(before.Problems), func(b instance.Problem) bool { return b.Subject != instance.SubjectParameter })...)
	}
	problems = append(problems, p.archived(&next, before)...)
	problems = append(problems, p.restarts.problems(v.cluster, step, time.Now())...)
	next.Problems = report.Sort(problems)
	return next
}

// archived sets the state of the archive in the report, and returns the problems of the
// repository.
func (p *primary) archived(next *instance.Cluster, before instance.Cluster) []instance.Problem {
	a := p.archiving.report()
	if a.system == "" {
		// The state is not known yet, so the problems of the primary before are kept.
		return slices.DeleteFunc(slices.Clone(before.Problems), func(b instance.Problem) bool { return b.Subject != instance.SubjectBackup })
	}
	next.System, next.Stanza, next.Archive = a.system, a.stanza, nil
	if a.on {
		next.Archive = &a.archive
		keepRecoverable(next.Archive, before.Archive)
	}
	if a.problem == "" {
		return nil
	}
	return []instance.Problem{{Subject: instance.SubjectBackup, Message: a.problem}}
}

// createEvents creates events about what has changed.
func (p *primary) createEvents(ctx context.Context, before, next instance.Cluster) {
	if !p.promoted && before.Primary != p.Pod {
		p.Event(ctx, corev1.EventTypeNormal, appsv1.ReasonPromoted, p.Pod+" is the primary")
	}
	p.promoted = true
	p.Problems(ctx, before.Problems, next.Problems)
}
