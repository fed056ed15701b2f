package workload

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// A Witness remembers pods that have ended. A pod that is deleted while it ends disappears, with
// its report, as soon as its Job has counted it, which may be before its report is read. The
// finished action would then count as failed.
type Witness struct {
	now func() time.Time

	mu   sync.Mutex
	seen map[types.UID]sighting
}

type sighting struct {
	pod corev1.Pod
	at  time.Time
}

// remembered is how long a pod is remembered: the report of a Job that ends is read within seconds.
const remembered = time.Hour

// NewWitness returns a Witness with a clock.
func NewWitness(now func() time.Time) *Witness {
	return &Witness{now: now, seen: map[types.UID]sighting{}}
}

// See remembers an object if it is a Job's pod that has ended.
func (w *Witness) See(o client.Object) {
	p, ok := o.(*corev1.Pod)
	if !ok || metav1.GetControllerOf(p) == nil || terminated(p) == nil {
		return
	}
	slim := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID, CreationTimestamp: p.CreationTimestamp, OwnerReferences: p.OwnerReferences},
		Status:     *p.Status.DeepCopy(),
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	maps.DeleteFunc(w.seen, func(_ types.UID, s sighting) bool { return now.Sub(s.at) > remembered })
	w.seen[p.UID] = sighting{pod: slim, at: now}
}

// Watch returns an event handler that calls See for each object, and enqueues the requests that
// find returns.
func (w *Witness) Watch(find handler.MapFunc) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		w.See(o)
		return find(ctx, o)
	})
}

// With returns pods, and the remembered pods of the Jobs that do not exist any more.
func (w *Witness) With(jobs []batchv1.Job, pods []corev1.Pod) []corev1.Pod {
	if w == nil {
		return pods
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	out := slices.Clone(pods)
	for uid, s := range w.seen {
		owner := metav1.GetControllerOf(&s.pod).UID
		isOf := slices.ContainsFunc(jobs, func(j batchv1.Job) bool { return j.UID == owner })
		isThere := slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.UID == uid })
		if isOf && !isThere {
			out = append(out, s.pod)
		}
	}
	return out
}
