package manager

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/kube"
	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
	"github.com/storeplane/storeplane/internal/instance/manager/postgres"
)

// database is the interface to a manager's own PostgreSQL server.
type database interface { //nolint:interfacebloat // it is all that a manager asks of PostgreSQL
	Checkpoint(ctx context.Context) error
	Reload(ctx context.Context) error
	Programs(ctx context.Context) (postgres.Programs, error)
	Followers(ctx context.Context) (map[string]postgres.Follower, error)
	Monitoring(ctx context.Context) error
	Roles(ctx context.Context, desired []postgres.Login) ([]instance.Problem, error)
	Archiver(ctx context.Context) (postgres.Archiver, error)
	Beat(ctx context.Context) (segment string, at time.Time, err error)
	Release(ctx context.Context, slot, position string) error
	Fence(ctx context.Context) (postgres.Fenced, error)
	Follows(ctx context.Context) (conninfo string, err error)
	Configured(ctx context.Context) (conninfo string, err error)
	Unfence(ctx context.Context) error
	Replayed(ctx context.Context) (number uint64, err error)
	Databases(ctx context.Context, desired []instance.Database, users []string) ([]instance.Problem, error)
}

// Manager is the instance manager of one server.
type Manager struct {
	Config
	*notes

	kube    *kube.Client
	patroni *patroni.Client
	server  database
	metrics *metrics

	// remote returns a client of another server's Patroni, and sibling one of its manager, by
	// their base URLs.
	remote, sibling func(base string) *patroni.Client

	// version is the report on this server that is left to the primary's next report, or nil.
	version atomic.Pointer[instance.Member]

	desired *kube.Watch[corev1.ConfigMap]
	status  *kube.Watch[corev1.ConfigMap]
	claim   *kube.Watch[corev1.PersistentVolumeClaim]

	// wakeMember and wakePrimary start a pass of a loop.
	wakeMember, wakePrimary signal

	// seen is the last status of this server that Patroni reported, or nil.
	seen atomic.Pointer[patroni.Status]

	// led is when this server led last, or nil.
	led atomic.Pointer[led]

	// sized is true once the server need not wait for its volume to expand.
	sized atomic.Bool

	// owned is true once this cluster may start with what the volume holds.
	owned atomic.Bool

	// owner is the DatabaseCluster, or nil before it is known.
	owner atomic.Pointer[metav1.OwnerReference]

	// controller is the UID of the StatefulSet that the pod belongs to, or nil before it is
	// known.
	controller atomic.Pointer[types.UID]

	// restarts counts restarts of servers. It outlasts the loop beside the primary, which the
	// primary's own restart ends.
	restarts restarts
}

// New returns a manager. config is how to reach the API server.
func New(c Config, config *rest.Config, log *slog.Logger) (*Manager, error) {
	// client-go's own log is discarded: notes logs its failures, once each.
	klog.LogToStderr(false)
	klog.SetOutput(discard{})

	client, err := kube.New(config, c.Namespace)
	if err != nil {
		return nil, err
	}
	access := c.access()
	m := &Manager{
		Config: c, notes: newNotes(log),
		kube: client, patroni: patroni.At(c.Patroni, access), server: c.server(), metrics: newMetrics(),
		remote: clients(access), sibling: clients(access),
		wakeMember: newSignal(), wakePrimary: newSignal(),
	}
	w := m.watcher(func() { m.wakeMember.send(); m.wakePrimary.send() })
	if m.desired, err = w.ConfigMap(c.Scope); err != nil {
		return nil, err
	}
	if m.status, err = w.ConfigMap(instance.StatusName(c.Scope)); err != nil {
		return nil, err
	}
	if m.claim, err = w.VolumeClaim(instance.VolumeClaim(c.Pod)); err != nil {
		return nil, err
	}
	return m, nil
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func (m *Manager) watcher(changed func()) kube.Watcher {
	return kube.Watcher{
		Client: m.kube, Changed: changed,
		Failed: func(what string, err error) { m.note("watch "+what, err) },
	}
}

// Run runs the manager until the context ends.
func (m *Manager) Run(ctx context.Context) error {
	serving, err := m.serve(ctx)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	all.Go(func() { m.desired.Run(ctx) })
	all.Go(func() { m.status.Run(ctx) })
	all.Go(func() { m.claim.Run(ctx) })
	all.Go(func() { m.followRole(ctx) })
	all.Go(func() { m.followFiles(ctx) })
	all.Go(func() { m.runMember(ctx) })
	all.Go(func() { m.runFill(ctx) })
	<-ctx.Done()
	m.end()
	all.Wait()
	return <-serving
}

// target returns what is desired, as text and parsed. It returns false while that is not
// known.
func (m *Manager) target() (string, *instance.Desired, bool) {
	cm := m.desired.One()
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
	if !m.note("read what is desired", err) {
		return "", nil, false
	}
	return raw, d, true
}

// reported reads the last report under a key. It returns false while no reports are known.
func (m *Manager) reported(key string, into any) bool {
	cm := m.status.One()
	if cm == nil {
		return false
	}
	if raw, ok := cm.Data[key]; ok {
		// A report that cannot be parsed is written again.
		_ = json.Unmarshal([]byte(raw), into)
	}
	return true
}

// lastCluster returns the primary's last report if that is on this StatefulSet's servers, or
// else an empty one. It returns false while no reports are known.
func (m *Manager) lastCluster() (instance.Cluster, bool) {
	last := instance.Cluster{}
	known := m.reported(instance.ClusterKey, &last)
	if !last.Of(m.controllerUID(), m.ownerUID()) {
		return instance.Cluster{}, known
	}
	return last, known
}

// ownerUID returns the UID of the DatabaseCluster, or "" before it is known.
func (m *Manager) ownerUID() string {
	if owner := m.owner.Load(); owner != nil {
		return string(owner.UID)
	}
	return ""
}

// controllerUID returns the UID of the pod's StatefulSet, or "" before it is known.
func (m *Manager) controllerUID() string {
	if uid := m.controller.Load(); uid != nil {
		return string(*uid)
	}
	return ""
}

// publish writes a report and removes the obsolete ones, if that changes anything.
func (m *Manager) publish(ctx context.Context, key string, report any, obsolete ...string) {
	m.publishAll(ctx, key, map[string]any{key: report}, obsolete...)
}

// publishAll writes several reports at once, of which one is the reason.
func (m *Manager) publishAll(ctx context.Context, reason string, reports map[string]any, obsolete ...string) {
	cm := m.status.One()
	changes := map[string]*string{}
	for key, report := range reports {
		data, err := json.Marshal(report)
		if !m.note("write "+key, err) || cm == nil {
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
		m.note("report "+reason, m.kube.PatchData(ctx, instance.StatusName(m.Scope), changes))
	}
}

// event creates an event about the DatabaseCluster. A failure is only logged.
func (m *Manager) event(ctx context.Context, kind, reason, message string) {
	owner := m.cluster(ctx)
	if owner == nil {
		return
	}
	m.note("write events", m.kube.Event(ctx, *owner, m.Pod, kind, reason, message))
}

// cluster returns the DatabaseCluster that this server belongs to, or nil while it is not
// known.
func (m *Manager) cluster(ctx context.Context) *metav1.OwnerReference {
	if owner := m.owner.Load(); owner != nil {
		return owner
	}
	set, err := m.kube.StatefulSet(ctx, m.Scope)
	if !m.note("read the StatefulSet", err) {
		return nil
	}
	owner := metav1.GetControllerOf(set)
	m.owner.Store(owner)
	return owner
}

// reasons are the reasons of events about problems, by their subjects.
var reasons = map[instance.Subject]string{
	instance.SubjectDatabase:  appsv1.ReasonDatabaseReconcileFailed,
	instance.SubjectUser:      appsv1.ReasonRoleReconcileFailed,
	instance.SubjectParameter: appsv1.ReasonParametersRefused,
	instance.SubjectPod:       appsv1.ReasonPodFailing,
	instance.SubjectBackup:    appsv1.ReasonRepositoryNotReady,
}

// followRole reads this server's status each second, and runs the loop beside the primary
// while the server is the primary.
func (m *Manager) followRole(ctx context.Context) {
	var stop func()
	defer func() {
		if stop != nil {
			stop()
		}
	}()
	lost := time.Time{}
	for ctx.Err() == nil {
		status, err := m.patroni.Status(ctx)
		if m.note("ask Patroni", err) {
			lost = time.Time{}
		} else {
			status = nil
			if lost.IsZero() {
				lost = time.Now()
			}
		}
		if changed(m.seen.Swap(status), status) {
			m.wakeMember.send()
		}
		m.metrics.role(status)
		switch {
		case stop == nil && status != nil && status.Primary():
			stop = m.startPrimary(ctx)
		case stop != nil && (status != nil && !status.Leads() || !lost.IsZero() && time.Since(lost) > 10*time.Second):
			stop()
			stop = nil
			go m.demoted(ctx)
		}
		wait(ctx, time.Second)
	}
}

// changed reports whether a server's status has changed.
func changed(before, after *patroni.Status) bool {
	if before == nil || after == nil {
		return before != after
	}
	return *before != *after
}

// startPrimary starts the loop beside the primary, and returns a function that ends it.
func (m *Manager) startPrimary(ctx context.Context) func() {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.note("run beside the primary", m.runPrimary(ctx))
	}()
	return func() {
		cancel()
		<-done
	}
}

func describe(status *patroni.Status) string {
	if status == nil {
		return "unknown"
	}
	return fmt.Sprintf("%s %s", status.Role, status.State)
}
