package manager

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	k8sappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/apply"
	"github.com/storeplane/storeplane/internal/instance/manager/kube"
	"github.com/storeplane/storeplane/internal/instance/manager/pace"
	"github.com/storeplane/storeplane/internal/instance/manager/report"
	"github.com/storeplane/storeplane/internal/instance/manager/roll"
	"github.com/storeplane/storeplane/internal/instance/mysql/group"
	"github.com/storeplane/storeplane/internal/instance/mysql/server"
)

const (
	// primaryPeriod is the pause between two passes beside the primary, and rollingPeriod that
	// while a step is being executed or waited for.
	primaryPeriod = 5 * time.Second
	rollingPeriod = time.Second

	// settleWithin is how long a new primary tries to reconcile databases and users before it
	// reports without that.
	settleWithin = 5 * time.Second

	// queueLimit is how many transactions a member may have to apply before it lags: as many as
	// have the primary throttle its writes
	// (https://dev.mysql.com/doc/refman/9.7/en/group-replication-system-variables.html).
	queueLimit = 25000
)

// primary is the state of the loop beside the primary. A new primary starts from the last report of
// the one before.
type primary struct {
	*Manager

	pods    *kube.Watch[corev1.Pod]
	set     *kube.Watch[k8sappsv1.StatefulSet]
	archive *kube.Watch[corev1.ConfigMap]
	applied apply.Applier

	// dumps is true once the user of backups exists.
	dumps bool

	lags     report.Lags
	began    time.Time
	promoted bool
	parting  parting

	// announced is the hand-over of which there is an event. It is tried each second while MySQL refuses it.
	announced string
}

// runPrimary runs the loop until the context ends.
func (m *Manager) runPrimary(ctx context.Context) error {
	p := &primary{Manager: m, began: time.Now()}
	p.applied = apply.Applier{Exchange: m.Exchange, Changed: m.wakePrimary.Send, Bring: p.bring}
	w := m.Watcher(m.wakePrimary.Send)
	var err error
	if p.pods, err = w.Pods(instance.MySQLScopeLabel + "=" + m.Scope); err != nil {
		return err
	}
	if p.set, err = w.StatefulSet(m.Scope); err != nil {
		return err
	}
	if p.archive, err = w.ConfigMap(instance.ArchiveName(m.Scope)); err != nil {
		return err
	}
	go p.archive.Run(ctx)
	go p.pods.Run(ctx)
	go p.set.Run(ctx)
	pace.Loop(ctx, m.wakePrimary, p.pass)
	m.metrics.Archive(nil, 0)
	m.metrics.Cluster(nil, true)
	return nil
}

// bring reconciles users, then the databases that they own and that backups read.
func (p *primary) bring(ctx context.Context, desired *instance.Desired, passwords map[string][]byte) ([]instance.Problem, error) {
	if err := p.server.Monitoring(ctx, string(passwords[instance.KeyMonitoring])); err != nil {
		return nil, err
	}
	// A function of an older release knows no password for this user.
	if password := string(passwords[instance.KeyBackup]); password != "" {
		if err := p.server.Dumper(ctx, password); err != nil {
			return nil, err
		}
		p.dumps = true
	}
	var logins []server.Login
	for _, u := range desired.Users {
		logins = append(logins, server.Login{Name: u, Password: string(passwords[instance.PasswordKey(u)])})
	}
	users, err := p.server.Users(ctx, logins)
	if err != nil {
		return nil, err
	}
	databases, err := p.server.Databases(ctx, desired.Databases, desired.Users)
	return slices.Concat(users, databases), err
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
	if p.Cluster(ctx) == nil {
		return rollingPeriod
	}
	if !p.applied.Apply(ctx, raw, desired) && time.Since(p.began) < settleWithin {
		// The first report is complete, instead of a second one a moment later.
		return rollingPeriod
	}
	refused := p.setVariables(ctx)
	view, err := p.observe(ctx, desired, p.pods.List(), p.set.One())
	if !p.Note("observe the servers", err) {
		return rollingPeriod
	}
	step := roll.Next(view.cluster)
	next := p.report(view, step, before, refused)
	next.Archive = p.archived(desired, before.Archive, time.Now())
	p.part(ctx, next.Archive)
	p.metrics.Archive(next.Archive, 0)
	p.metrics.Cluster(&next, next.Applied == instance.Digest(raw))
	p.Publish(ctx, instance.ClusterKey, next, p.Obsolete(view.cluster.Servers)...)
	p.createEvents(ctx, before, next)
	p.execute(ctx, step, desired)
	if next.Rolling != "" {
		return rollingPeriod
	}
	return primaryPeriod
}

// view is the state of all servers.
type view struct {
	cluster  roll.Cluster
	pods     []*corev1.Pod
	standbys []instance.Standby
}

var errDemoted = errors.New("this server is not the primary any more")

// observe returns the state of all servers, given the objects of the cluster.
func (p *primary) observe(ctx context.Context, desired *instance.Desired, pods []*corev1.Pod, set *k8sappsv1.StatefulSet) (*view, error) {
	if !p.state().Leads {
		return nil, errDemoted
	}
	queues, err := p.server.Queues(ctx)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	v := &view{pods: pods}
	followers, joining, unfit := map[string]report.Follower{}, map[string]bool{}, map[string]bool{}
	own := p.state().Report
	for _, m := range own.Members {
		pod := p.PodOf(m.Address)
		unfit[pod] = !own.MayLead(&m)
		online := m.State == group.Online
		joining[pod] = m.State == group.Recovering
		followers[pod] = report.Follower{Streaming: online, Synchronous: online, Lag: queues[m.Server] * instance.LagBytes / queueLimit}
	}
	v.cluster = roll.Observe(p.Scope, p.Pod, desired, pods, set, func(s *roll.Server) {
		if f, ok := followers[s.Pod]; ok && s.Pod != p.Pod {
			s.Streaming, s.Synchronous, s.LagBytes, s.Joining, s.Unfit = f.Streaming, f.Synchronous, f.Lag, joining[s.Pod], unfit[s.Pod]
		}
	})
	var names []string
	for _, s := range v.cluster.Servers {
		names = append(names, s.Pod)
	}
	v.standbys = p.lags.Standbys(names, p.Pod, followers, time.Now())
	return v, nil
}

// report returns the report on all servers. Applied, Credentials and Dumps keep their values until new ones
// are applied, as do the problems that the primary before found. refused are the parameters that this
// server refuses.
func (p *primary) report(v *view, step roll.Step, before instance.Cluster, refused []instance.Problem) instance.Cluster {
	next := instance.Cluster{
		Primary: p.Pod, Timeline: p.state().Epoch, Set: p.ControllerUID(), Owner: p.OwnerUID(), Applied: before.Applied, Credentials: before.Credentials, Dumps: before.Dumps,
		Standbys: report.Joined(p.Pod, v.standbys, &before, false), Rolling: step.Message,
	}
	problems := slices.Concat(p.applied.Problems, refused, report.Pods(v.pods, before.Problems))
	if p.applied.Done {
		next.Applied, next.Credentials, next.Dumps = p.applied.Digest, p.applied.Credentials, p.dumps
	} else {
		problems = append(problems, slices.DeleteFunc(slices.Clone(before.Problems), func(b instance.Problem) bool {
			return b.Subject != instance.SubjectDatabase && b.Subject != instance.SubjectUser
		})...)
	}
	next.Problems = report.Sort(problems)
	return next
}

// createEvents creates events about what has changed.
func (p *primary) createEvents(ctx context.Context, before, next instance.Cluster) {
	if !p.promoted && before.Primary != p.Pod {
		p.Event(ctx, corev1.EventTypeNormal, appsv1.ReasonPromoted, p.Pod+" is the primary")
	}
	p.promoted = true
	p.Problems(ctx, before.Problems, next.Problems)
}

// execute executes a step, if it is still the next one after reading from the API server again.
func (p *primary) execute(ctx context.Context, step roll.Step, desired *instance.Desired) {
	if step.Verb == roll.Wait {
		return
	}
	v, err := p.observeUncached(ctx, desired)
	if !p.Note("observe the servers again", err) {
		return
	}
	if again := roll.Next(v.cluster); again.Verb != step.Verb || again.Pod != step.Pod {
		return
	}
	switch step.Verb {
	case roll.Wait, roll.Restart:
	case roll.Replace:
		if i := slices.IndexFunc(v.pods, func(pod *corev1.Pod) bool { return pod.Name == step.Pod }); i >= 0 {
			p.Replace(ctx, v.pods[i], step.Message)
		}
	case roll.HandOver:
		if p.announced != step.Message {
			p.announced = step.Message
			p.Event(ctx, corev1.EventTypeNormal, appsv1.ReasonRollingUpdate, step.Message)
		}
		p.Note("hand over", p.Move(ctx, step.Pod, v.cluster.Spare(step.Pod)))
	}
}

// observeUncached returns the state of all servers with objects from the API server itself.
func (p *primary) observeUncached(ctx context.Context, desired *instance.Desired) (*view, error) {
	set, err := p.Kube.StatefulSet(ctx, p.Scope)
	if err != nil {
		return nil, err
	}
	pods, err := p.Kube.Pods(ctx, instance.MySQLScopeLabel+"="+p.Scope)
	if err != nil {
		return nil, err
	}
	return p.observe(ctx, desired, pods, set)
}
