package manager

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	k8sappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/archive"
	"github.com/storeplane/storeplane/internal/instance/control"
	"github.com/storeplane/storeplane/internal/instance/manager/kube"
	"github.com/storeplane/storeplane/internal/instance/manager/lead"
	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
	"github.com/storeplane/storeplane/internal/instance/manager/pgdata"
)

// unreadableAfter is how long data must have been unreadable before a decision follows from that:
// a user has to decide which volume leads, or the data is set aside and the primary is copied.
// Network storage may fail for some seconds while a pod starts, and both are far worse than
// to wait.
const unreadableAfter = 30 * time.Second

// errUnread is the error for data that has been unreadable for less than unreadableAfter.
var errUnread = errors.New("the data on the volume cannot be read yet")

// ground is the cluster that a server is to start in. It is read from the API server and not
// from the watches, whose objects may be too old for this decision.
type ground struct {
	set     *k8sappsv1.StatefulSet
	desired *instance.Desired
	reports *corev1.ConfigMap

	// uid is the UID of the DatabaseCluster, or "" while the StatefulSet has no controller.
	uid string

	// cluster is the input of package lead. system is the system identifier that Patroni has
	// recorded, and led the last timeline that a server is known to have led on.
	cluster lead.Cluster
	system  string
	led     int64

	// address is the URL of the primary's Patroni, and timeline is the primary's timeline.
	address  string
	timeline int64

	// servers is the number of servers that is needed to reach all volumes, where that is more
	// than the desired size.
	servers int32
}

// ground reads what every server needs to know.
func (b *member) ground(ctx context.Context) (*ground, error) {
	g := &ground{desired: &instance.Desired{}}
	var err error
	if g.set, err = b.Kube.StatefulSet(ctx, b.Scope); err != nil {
		return nil, err
	}
	b.SetController(g.set.UID)
	if owner := metav1.GetControllerOf(g.set); owner != nil {
		b.SetOwner(owner)
		g.uid = string(owner.UID)
	}
	desired, err := b.Kube.ConfigMap(ctx, b.Scope)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(desired.Data[instance.DesiredKey]), g.desired); err != nil {
		return nil, fmt.Errorf("cannot read what is desired: %w", err)
	}
	if g.reports, err = b.Kube.ConfigMap(ctx, instance.StatusName(b.Scope)); err != nil && !kube.Missing(err) {
		return nil, err
	}
	last := instance.Cluster{}
	if raw, ok := g.reports.Data[instance.ClusterKey]; ok {
		// A report that cannot be parsed counts as missing.
		_ = json.Unmarshal([]byte(raw), &last)
	}
	if !last.Of(string(g.set.UID), g.uid) {
		last = instance.Cluster{}
	}
	g.led = last.Timeline
	undecided := instance.LeadState(g.uid, last.Began)
	g.cluster = lead.Cluster{Pod: b.Pod, Claim: instance.VolumeClaim(b.Pod), Annotation: instance.LeadWithAdvice(undecided), Named: instance.LeadWith(g.desired.LeadWith, undecided)}
	if last.Primary != "" {
		g.cluster.Members = append(g.cluster.Members, last.Primary)
		for _, s := range last.Standbys {
			if !s.New {
				g.cluster.Members = append(g.cluster.Members, s.Name)
			}
		}
	}
	return g, nil
}

// joined reports whether a pod is a member of a cluster that has run: the status ConfigMap is
// removed with the DatabaseCluster, unless another one adopts all of its objects. Earlier
// managers also listed a standby that they refused to start, and reported the refusal.
func (g *ground) joined(pod string) bool {
	if g.desired.Restoring || !slices.Contains(g.cluster.Members, pod) {
		return false
	}
	said := instance.Member{}
	if raw, ok := g.reports.Data[instance.MemberKey(pod)]; ok {
		// A report that cannot be parsed counts as missing.
		_ = json.Unmarshal([]byte(raw), &said)
	}
	refused := said.Restore != nil && said.Restore.Failed && said.Restore.Message == said.Message
	return !refused || pod == g.cluster.Members[0]
}

// compare adds to the ground what only some servers need to know: a server that was no member
// of the cluster, one with a timeline that was begun for it, and all of them if the annotation
// names a volume claim.
func (b *member) compare(ctx context.Context, g *ground) error {
	begun := archive.Config{Volume: b.Volume}.Begun()
	if slices.Contains(g.cluster.Members, b.Pod) && g.cluster.Named == "" && begun == 0 {
		return nil
	}
	primary, err := b.leads(ctx, g)
	if err != nil {
		return err
	}
	g.cluster.Primary = primary
	claims, err := b.claims(ctx)
	if err != nil {
		return err
	}
	if len(g.cluster.Members) > 0 && !b.canLead(g, claims) {
		// A wrong name must not hold the members back.
		g.cluster.Named = ""
	}
	own, ok := claims[b.Pod]
	if !ok {
		return fmt.Errorf("cannot find volume claim %s", instance.VolumeClaim(b.Pod))
	}
	b.readData(ctx, string(own.UID), time.Now())
	if b.data != nil {
		// A server that stands as the newest volume has begun its timeline rightly.
		named, stands := b.stands()
		b.data.Begun = begun != 0 && b.data.Timeline == begun && (!stands || named != "")
		g.cluster.Begun = b.data.Begun
	}
	if primary || len(g.cluster.Members) > 0 {
		if b.data == nil {
			return errUnread
		}
		config, err := b.Kube.ConfigMap(ctx, instance.ConfigName(b.Scope))
		if err != nil {
			return err
		}
		g.system = config.Annotations[initializeAnnotation]
		g.led = max(g.led, patroni.Published(config.Annotations[patroni.HistoryAnnotation]))
		return nil
	}
	// Without its data a volume that was kept is waited for. Other volumes decide nothing here.
	if !g.desired.Restored {
		b.keep(g, claims)
	}
	return nil
}

// readData reads what the volume holds, unless that has been read. Data that is unreadable is
// read again at each pass, and b.data is nil until it has been so for unreadableAfter.
func (b *member) readData(ctx context.Context, claim string, now time.Time) {
	if b.data != nil && b.data.State != instance.DataUnreadable {
		return
	}
	data := pgdata.Read(ctx, archive.Config{Volume: b.Volume}.DataDir())
	data.Claim = claim
	if data.State != instance.DataUnreadable {
		b.Note("read the data on the volume", nil)
		b.data, b.unreadable = &data, time.Time{}
		return
	}
	b.Note("read the data on the volume", errors.New(data.Problem))
	if b.unreadable.IsZero() {
		b.unreadable = now
	}
	if now.Sub(b.unreadable) >= unreadableAfter {
		b.data = &data
	}
}

// canLead reports whether the named volume claim exists and belongs to a server within the
// desired size.
func (b *member) canLead(g *ground, claims map[string]*corev1.PersistentVolumeClaim) bool {
	pod := instance.PodOfClaim(g.cluster.Named)
	claim, n := claims[pod], b.ordinal(pod)
	return claim != nil && claim.Name == g.cluster.Named && claim.DeletionTimestamp == nil && n >= 0 && n < int(g.desired.Size)
}

// keep lists the volumes that are older than the StatefulSet, and so belong to an earlier one:
// the StatefulSet's controller creates those of its own servers. A restored cluster uses none
// of them.
func (b *member) keep(g *ground, claims map[string]*corev1.PersistentVolumeClaim) {
	for n := range instance.MaxSize {
		pod := b.podName(n)
		claim, ok := claims[pod]
		if !ok || claim.DeletionTimestamp != nil || !claim.CreationTimestamp.Before(&g.set.CreationTimestamp) {
			continue
		}
		v := lead.Volume{Claim: claim.Name, Pod: pod}
		reported := instance.Member{}
		if pod == b.Pod {
			v.Data, b.kept = b.data, true
		} else if json.Unmarshal([]byte(g.reports.Data[instance.MemberKey(pod)]), &reported) == nil && reported.Data != nil && reported.Data.Claim == string(claim.UID) {
			v.Data = reported.Data
		}
		g.cluster.Kept = append(g.cluster.Kept, v)
		if n >= int(g.desired.Size) {
			g.servers = int32(n) + 1
		}
	}
}

// speaks reports whether a pod is the first of those that have read their volumes. Only that
// one creates the event about the result, which is the same for all.
func (g *ground) speaks(pod string) bool {
	for _, v := range g.cluster.Kept {
		if v.Data != nil {
			return v.Pod == pod
		}
	}
	return false
}

// leads reports whether another server takes writes.
func (b *member) leads(ctx context.Context, g *ground) (bool, error) {
	lock, err := b.Kube.ConfigMap(ctx, instance.LeaderName(b.Scope))
	if kube.Missing(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	leader := lock.Annotations[leaderAnnotation]
	if leader == "" || leader == b.Pod {
		return false, nil
	}
	pod, err := b.Kube.Pod(ctx, leader)
	if kube.Missing(err) {
		return false, nil
	}
	if err != nil || pod.Status.PodIP == "" {
		return false, err
	}
	// A lock may outlive its holder, so only a server that answers leads. About a server that
	// is not trusted nothing is known.
	status, err := b.remote(patroniOf(pod)).Status(ctx)
	if control.IsUntrusted(err) {
		return false, err
	}
	if err != nil || !status.Primary() {
		return false, nil //nolint:nilerr // see above
	}
	g.address, g.timeline = patroniOf(pod), status.Timeline
	return true, nil
}

// claims returns the volume claims that exist, by pod, of all servers that a cluster can have.
func (b *member) claims(ctx context.Context) (map[string]*corev1.PersistentVolumeClaim, error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	out := map[string]*corev1.PersistentVolumeClaim{}
	var errs []error
	for n := range instance.MaxSize {
		pod := b.podName(n)
		all.Go(func() {
			claim, err := b.Kube.VolumeClaim(ctx, instance.VolumeClaim(pod))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				out[pod] = claim
			case !kube.Missing(err):
				errs = append(errs, err)
			}
		})
	}
	all.Wait()
	return out, errors.Join(errs...)
}
