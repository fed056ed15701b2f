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
	"github.com/storeplane/storeplane/internal/instance/manager/kube"
	"github.com/storeplane/storeplane/internal/instance/manager/report"
	"github.com/storeplane/storeplane/internal/instance/manager/roll"
)

const (
	// primaryPeriod is how often the primary looks at its standbys.
	primaryPeriod = 5 * time.Second

	// rollingPeriod is the same while something is under way.
	rollingPeriod = time.Second

	// settleWithin is how long a new primary may take to bring databases and
	// users in line before it reports without that.
	settleWithin = 5 * time.Second

	// tiePeriod is how often the leader lock is looked at.
	tiePeriod = time.Minute
)

// primary is what the loop beside the primary remembers. A new primary starts
// from what the one before reported.
type primary struct {
	*Manager

	pods   *kube.Watch[corev1.Pod]
	set    *kube.Watch[k8sappsv1.StatefulSet]
	secret *kube.Watch[corev1.Secret]

	lags       report.Lags
	applied    applied
	parameters parameters
	began      time.Time
	since      time.Time
	tied       time.Time
	promoted   bool
	archiving  *archiving
	repository repositoryVolume
	strays     strays
}

// runPrimary until this server is primary no more.
func (m *Manager) runPrimary(ctx context.Context) error {
	p := &primary{Manager: m, began: time.Now(), since: time.Now(), archiving: m.newArchiving()}
	w := m.watcher(m.wakePrimary.send)
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
	loop(ctx, m.wakePrimary, p.pass)
	cancel()
	<-watched
	m.metrics.cluster(nil, true)
	m.metrics.archive(nil, 0)
	return nil
}

// pass brings everything one step nearer to what is desired, and reports.
func (p *primary) pass(ctx context.Context) time.Duration {
	raw, desired, ok := p.target()
	if !ok || !p.pods.Synced() || !p.set.Synced() {
		return rollingPeriod
	}
	p.controlled()
	before, ok := p.lastCluster()
	if !ok {
		return rollingPeriod
	}
	p.tie(ctx)
	if !p.apply(ctx, raw, desired) && time.Since(p.began) < settleWithin {
		// The first report is whole, rather than one more a moment later.
		return rollingPeriod
	}
	p.parameters.check(ctx, p.Manager, desired.Parameters)
	p.growRepository(ctx, desired, time.Now())

	view, err := p.look(ctx, raw, desired)
	if !p.note("look at the servers", err) {
		return rollingPeriod
	}
	step := roll.Next(view.cluster)
	p.decide(desired)
	next := p.report(view, step, before, p.named(desired, before.Began))
	p.metrics.cluster(&next, next.Applied == instance.Digest(raw))
	p.publish(ctx, instance.ClusterKey, next, p.obsolete(view)...)
	p.tell(ctx, before, next)
	p.remind(ctx, view)
	p.gather(ctx, view)
	p.take(ctx, step, raw, desired)
	if next.Rolling != "" {
		return rollingPeriod
	}
	return primaryPeriod
}

// controlled by whom: another StatefulSet may have adopted the pod. A pod whose own was
// deleted tells of that one as long as it goes on, not of the next one of its name.
func (p *primary) controlled() {
	for _, pod := range p.pods.List() {
		if owner := metav1.GetControllerOf(pod); owner != nil && pod.Name == p.Pod {
			p.controller.Store(&owner.UID)
		}
	}
}

// tie the leader lock, which Patroni makes, to the StatefulSet, so that it is
// not left behind.
func (p *primary) tie(ctx context.Context) {
	set := p.set.One()
	if set == nil || time.Since(p.tied) < tiePeriod {
		return
	}
	lock, err := p.kube.ConfigMap(ctx, p.leaderName())
	if !p.note("read the leader lock", err) {
		return
	}
	owned := slices.ContainsFunc(lock.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == set.UID })
	owner := metav1.OwnerReference{APIVersion: k8sappsv1.SchemeGroupVersion.String(), Kind: "StatefulSet", Name: set.Name, UID: set.UID}
	if owned || p.note("tie the leader lock to the StatefulSet", p.kube.Own(ctx, p.leaderName(), owner)) {
		p.tied = time.Now()
	}
}

// decide nothing any more by an annotation that names a leader: there is one.
func (p *primary) decide(desired *instance.Desired) {
	if owner := p.owner.Load(); owner != nil && leadWith(desired.LeadWith, state(string(owner.UID), stamp(p.since))) != "" {
		p.since = time.Now()
	}
}

// named says whether this server leads since an annotation named it, given when the
// primary before began to.
func (p *primary) named(desired *instance.Desired, before string) bool {
	owner := p.owner.Load()
	return owner != nil && leadWith(desired.LeadWith, state(string(owner.UID), before)) == p.volumeName()
}

// stampLayout of a time that an annotation can have in its value.
const stampLayout = "20060102T150405Z"

// stamp of a time.
func stamp(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format(stampLayout)
}

// report on all servers. Applied and Credentials stay what they were until new
// ones are.
func (p *primary) report(v *view, step roll.Step, before instance.Cluster, named bool) instance.Cluster {
	next := instance.Cluster{
		Primary: p.Pod, Began: stamp(p.since), Set: p.controllerUID(), Owner: p.ownerUID(), Timeline: before.Timeline, Applied: before.Applied, Credentials: before.Credentials,
		Standbys: report.Joined(p.Pod, v.standbys, &before, named), Rolling: step.Words, System: before.System, Stanza: before.Stanza, Archive: before.Archive, Repository: before.Repository,
	}
	if p.repository.known {
		next.Repository = p.repository.words
	}
	if v.timeline != 0 {
		next.Timeline = v.timeline
	}
	if p.applied.done {
		next.Applied, next.Credentials = p.applied.digest, p.applied.credentials
	}
	problems := slices.Concat(p.applied.problems, p.parameters.problems, report.Pods(v.pods, before.Problems))
	if !p.applied.done {
		// What the primary before found holds until it is tried again.
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

// archived fills in what is known of the archive, and returns what is wrong with
// the repository.
func (p *primary) archived(next *instance.Cluster, before instance.Cluster) []instance.Problem {
	a := p.archiving.report()
	if a.system == "" {
		// Not known yet: what the primary before said holds.
		return slices.DeleteFunc(slices.Clone(before.Problems), func(b instance.Problem) bool { return b.Subject != instance.SubjectBackup })
	}
	next.System, next.Stanza, next.Archive = a.system, a.stanza, nil
	if a.on {
		next.Archive = &a.archive
		// After the loss of all backups nothing is recoverable, not even what was.
		if a.archive.Recoverable == nil && before.Archive != nil && !a.archive.Lost() {
			next.Archive.Recoverable = before.Archive.Recoverable
		}
	}
	if a.problem == "" {
		return nil
	}
	return []instance.Problem{{Subject: instance.SubjectBackup, Message: a.problem}}
}

// obsolete keys of members that are gone for good.
func (p *primary) obsolete(v *view) []string {
	status := p.status.One()
	if status == nil {
		return nil
	}
	var keys, pods []string
	for k := range status.Data {
		keys = append(keys, k)
	}
	for _, s := range v.cluster.Servers {
		pods = append(pods, s.Pod)
	}
	return report.Obsolete(keys, pods)
}

// tell in events what has changed.
func (p *primary) tell(ctx context.Context, before, next instance.Cluster) {
	if !p.promoted && before.Primary != p.Pod {
		p.event(ctx, corev1.EventTypeNormal, appsv1.ReasonPromoted, p.Pod+" is the primary")
	}
	p.promoted = true
	for _, problem := range report.New(before.Problems, next.Problems) {
		p.event(ctx, corev1.EventTypeWarning, reasons[problem.Subject], problem.Message)
	}
}
