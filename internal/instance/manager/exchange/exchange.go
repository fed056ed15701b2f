package exchange

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/kube"
)

// Exchange is what a server exchanges with the function.
type Exchange struct {
	*Notes

	// Kube is the client by which objects are read and written.
	Kube *kube.Client

	// Status contains the reports of all servers, and Claim is this server's volume claim.
	Status *kube.Watch[corev1.ConfigMap]
	Claim  *kube.Watch[corev1.PersistentVolumeClaim]

	pod, scope string
	desired    *kube.Watch[corev1.ConfigMap]

	// owner is the DatabaseCluster, or nil before it is known.
	owner atomic.Pointer[metav1.OwnerReference]

	// controller is the UID of the StatefulSet that the pod belongs to, or nil before it is
	// known.
	controller atomic.Pointer[types.UID]
}

// New returns the exchange of a pod of the StatefulSet scope. changed is called on every change of
// what is watched.
func New(client *kube.Client, pod, scope string, notes *Notes, changed func()) (*Exchange, error) {
	x := &Exchange{Notes: notes, Kube: client, pod: pod, scope: scope}
	w := x.Watcher(changed)
	var err error
	if x.desired, err = w.ConfigMap(scope); err != nil {
		return nil, err
	}
	if x.Status, err = w.ConfigMap(instance.StatusName(scope)); err != nil {
		return nil, err
	}
	if x.Claim, err = w.VolumeClaim(instance.VolumeClaim(pod)); err != nil {
		return nil, err
	}
	return x, nil
}

// Watcher returns a watcher that notes its failures.
func (x *Exchange) Watcher(changed func()) kube.Watcher {
	return kube.Watcher{
		Client: x.Kube, Changed: changed,
		Failed: func(what string, err error) { x.Note("watch "+what, err) },
	}
}

// Run watches until the context ends.
func (x *Exchange) Run(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() { x.desired.Run(ctx) })
	all.Go(func() { x.Status.Run(ctx) })
	all.Go(func() { x.Claim.Run(ctx) })
	all.Wait()
}

// Target returns what is desired, as text and parsed. It returns false while that is not
// known.
func (x *Exchange) Target() (string, *instance.Desired, bool) {
	cm := x.desired.One()
	if cm == nil {
		return "", nil, false
	}
	raw, ok := cm.Data[instance.DesiredKey]
	if !ok {
		return "", nil, false
	}
	d := &instance.Desired{}
	err := json.Unmarshal([]byte(raw), d)
	if err == nil {
		err = d.CheckProtocol(instance.OldestProtocol, instance.Protocol)
	}
	if !x.Note("read what is desired", err) {
		return "", nil, false
	}
	return raw, d, true
}

// File returns a file of the configuration, by its key in the ConfigMap of what is desired. It returns
// false while that is not known.
func (x *Exchange) File(key string) (string, bool) {
	cm := x.desired.One()
	if cm == nil {
		return "", false
	}
	data, ok := cm.Data[key]
	return data, ok
}

// Reported reads the last report under a key. It returns false while no reports are known.
func (x *Exchange) Reported(key string, into any) bool {
	cm := x.Status.One()
	if cm == nil {
		return false
	}
	if raw, ok := cm.Data[key]; ok {
		// A report that cannot be parsed is written again.
		_ = json.Unmarshal([]byte(raw), into)
	}
	return true
}

// LastCluster returns the primary's last report if that is on this StatefulSet's servers, or
// else an empty one. It returns false while no reports are known.
func (x *Exchange) LastCluster() (instance.Cluster, bool) {
	last := instance.Cluster{}
	known := x.Reported(instance.ClusterKey, &last)
	if !last.Of(x.ControllerUID(), x.OwnerUID()) {
		return instance.Cluster{}, known
	}
	return last, known
}

// OwnerUID returns the UID of the DatabaseCluster, or "" before it is known.
func (x *Exchange) OwnerUID() string {
	if owner := x.owner.Load(); owner != nil {
		return string(owner.UID)
	}
	return ""
}

// SetOwner sets the DatabaseCluster.
func (x *Exchange) SetOwner(owner *metav1.OwnerReference) { x.owner.Store(owner) }

// ControllerUID returns the UID of the pod's StatefulSet, or "" before it is known.
func (x *Exchange) ControllerUID() string {
	if uid := x.controller.Load(); uid != nil {
		return string(*uid)
	}
	return ""
}

// SetController sets the UID of the pod's StatefulSet.
func (x *Exchange) SetController(uid types.UID) { x.controller.Store(&uid) }

// Controlled stores the UID of the pod's StatefulSet as found in a list of pods, since another
// StatefulSet may have adopted the pod. A pod whose StatefulSet was deleted reports that one as
// long as it runs, not the next one of its name.
func (x *Exchange) Controlled(pods []*corev1.Pod) {
	for _, pod := range pods {
		own := pod.Name == x.pod && (x.Kube.UID() == "" || x.Kube.UID() == string(pod.UID))
		if owner := metav1.GetControllerOf(pod); owner != nil && own {
			x.controller.Store(&owner.UID)
		}
	}
}

// Publish writes a report and removes the obsolete ones, if that changes anything.
func (x *Exchange) Publish(ctx context.Context, key string, report any, obsolete ...string) {
	x.PublishAll(ctx, key, map[string]any{key: report}, obsolete...)
}

// PublishAll writes several reports at once, of which one is the reason.
func (x *Exchange) PublishAll(ctx context.Context, reason string, reports map[string]any, obsolete ...string) {
	cm := x.Status.One()
	changes := map[string]*string{}
	for key, report := range reports {
		data, err := json.Marshal(report)
		if !x.Note("write "+key, err) || cm == nil {
			return
		}
		if text := string(data); cm.Data[key] != text {
			changes[key] = &text
		}
	}
	for _, k := range obsolete {
		changes[k] = nil
	}
	if len(changes) > 0 {
		x.Note("report "+reason, x.Kube.PatchData(ctx, instance.StatusName(x.scope), changes))
	}
}

// Event creates an event about the DatabaseCluster. A failure is only logged.
func (x *Exchange) Event(ctx context.Context, kind, reason, message string) {
	owner := x.Cluster(ctx)
	if owner == nil {
		return
	}
	x.Note("write events", x.Kube.Event(ctx, *owner, x.pod, kind, reason, message))
}

// Cluster returns the DatabaseCluster that this server belongs to, or nil while it is not
// known.
func (x *Exchange) Cluster(ctx context.Context) *metav1.OwnerReference {
	if owner := x.owner.Load(); owner != nil {
		return owner
	}
	set, err := x.Kube.StatefulSet(ctx, x.scope)
	if !x.Note("read the StatefulSet", err) {
		return nil
	}
	owner := metav1.GetControllerOf(set)
	x.owner.Store(owner)
	return owner
}
