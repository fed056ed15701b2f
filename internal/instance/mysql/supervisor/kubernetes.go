package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/control"
	"github.com/storeplane/storeplane/internal/instance/manager/kube"
	"github.com/storeplane/storeplane/internal/instance/mysql/group"
)

const (
	// StatusPath is the path of a supervisor's report.
	StatusPath = "/status"

	// askWithin is how long another server may take to report.
	askWithin = time.Second

	// maxReport is how many bytes of a report are read: a set of transactions of thousands of
	// groups.
	maxReport = 1 << 20
)

// Kubernetes is the cluster around a server in a pod.
type Kubernetes struct {
	// Pod is the server's pod, Namespace its namespace and Scope its StatefulSet.
	Pod, Namespace, Scope string

	// UID is the UID of the pod. One of another UID has replaced it while this server ends.
	UID types.UID

	// Port is the port of the servers, and API that of their supervisors.
	Port, API int

	Kube *kube.Client
	TLS  control.TLS

	once  sync.Once
	peers *http.Client
}

var _ Outside = &Kubernetes{}

// host returns the name of a pod in the headless Service.
func (k *Kubernetes) host(pod string) string {
	return pod + "." + k.Scope + "." + k.Namespace + ".svc"
}

// Host returns the name by which other servers reach this one.
func (k *Kubernetes) Host() string { return k.host(k.Pod) }

// Address implements Outside.
func (k *Kubernetes) Address(pod string) string {
	return net.JoinHostPort(k.host(pod), strconv.Itoa(k.Port))
}

// PodOf implements Outside.
func (k *Kubernetes) PodOf(address string) string {
	pod, _, _ := strings.Cut(address, ".")
	return pod
}

// Known implements Outside.
func (k *Kubernetes) Known(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	found, err := net.DefaultResolver.LookupHost(ctx, k.Host())
	if err != nil {
		return false
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return true
	}
	return areAll(found, own)
}

// areAll reports whether all addresses are among the own ones.
func areAll(addresses []string, own []net.Addr) bool {
	for _, a := range addresses {
		ip := net.ParseIP(a)
		if !slices.ContainsFunc(own, func(o net.Addr) bool {
			n, ok := o.(*net.IPNet)
			return ok && n.IP.Equal(ip)
		}) {
			return false
		}
	}
	return len(addresses) > 0
}

// Record implements Outside.
func (k *Kubernetes) Record(ctx context.Context) (group.Record, error) {
	_, record, err := k.record(ctx)
	return record, err
}

// Cluster implements Outside.
func (k *Kubernetes) Cluster(ctx context.Context) (group.Cluster, error) {
	c := group.Cluster{Ordinal: func(pod string) int { return int(instance.Ordinal(pod)) }}
	config, err := k.Kube.ConfigMap(ctx, k.Scope)
	if err != nil {
		return c, err
	}
	desired := instance.Desired{}
	if err := json.Unmarshal([]byte(config.Data[instance.DesiredKey]), &desired); err != nil {
		return c, fmt.Errorf("cannot read what is desired: %w", err)
	}
	if err := desired.CheckProtocol(instance.OldestProtocol, instance.Protocol); err != nil {
		return c, err
	}
	c.Size, c.Restoring = int(desired.Size), desired.Restoring
	_, record, err := k.record(ctx)
	if err != nil {
		return c, err
	}
	c.Record = record
	set, err := k.Kube.StatefulSet(ctx, k.Scope)
	if err != nil {
		return c, err
	}
	if owner := metav1.GetControllerOf(set); owner != nil {
		began := ""
		if record.Epoch > 0 {
			began = strconv.FormatInt(record.Epoch, 10)
		}
		state := instance.LeadState(string(owner.UID), began)
		c.Named, c.Annotation = instance.LeadWith(desired.LeadWith, state), instance.LeadWithAdvice(state)
		status, err := k.Kube.ConfigMap(ctx, instance.StatusName(k.Scope))
		if err != nil && !kube.Missing(err) {
			return c, err
		}
		c.Led = err == nil && hasLed(status, string(owner.UID))
	}
	marked, err := k.Kube.Pods(ctx, k.primaries())
	if err != nil {
		return c, err
	}
	c.Serving = shownPrimary(marked, k.Scope, k.Pod)
	c.Volumes, err = k.volumes(ctx, set.CreationTimestamp)
	return c, err
}

// record returns the record and the ConfigMap that it is in.
func (k *Kubernetes) record(ctx context.Context) (*corev1.ConfigMap, group.Record, error) {
	cm, err := k.Kube.ConfigMap(ctx, instance.GroupName(k.Scope))
	record := group.Record{}
	if err != nil {
		return cm, record, err
	}
	if raw := cm.Annotations[instance.GroupAnnotation]; raw != "" {
		if err := json.Unmarshal([]byte(raw), &record); err != nil {
			return cm, record, fmt.Errorf("cannot read the record of the group in ConfigMap %s: %w", cm.Name, err)
		}
	}
	return cm, record, nil
}

// volumes returns the volume claims that exist, given when the StatefulSet was created: those that
// are older are of an earlier cluster.
func (k *Kubernetes) volumes(ctx context.Context, created metav1.Time) ([]group.Volume, error) {
	found := make([]*corev1.PersistentVolumeClaim, instance.MaxSize)
	errs := make([]error, instance.MaxSize)
	var all sync.WaitGroup
	for n := range int32(instance.MaxSize) {
		all.Go(func() {
			claim, err := k.Kube.VolumeClaim(ctx, instance.VolumeClaim(instance.Pod(k.Scope, n)))
			switch {
			case err == nil && claim.DeletionTimestamp == nil:
				found[n] = claim
			case err != nil && !kube.Missing(err):
				errs[n] = err
			}
		})
	}
	all.Wait()
	var out []group.Volume
	for _, claim := range found {
		if claim != nil {
			out = append(out, group.Volume{
				Pod: instance.PodOfClaim(claim.Name), Claim: claim.Name, UID: string(claim.UID),
				Kept: claim.CreationTimestamp.Before(&created),
			})
		}
	}
	return out, errors.Join(errs...)
}

// Peers implements Outside. Without the API server, too, the servers of a group know each other.
func (k *Kubernetes) Peers(ctx context.Context, pods ...string) map[string]group.Report {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	k.once.Do(func() { k.peers = &http.Client{Transport: k.TLS.Transport()} })
	if len(pods) == 0 {
		for n := range int32(instance.MaxSize) {
			pods = append(pods, instance.Pod(k.Scope, n))
		}
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	out := map[string]group.Report{}
	for _, pod := range pods {
		if pod == k.Pod {
			continue
		}
		all.Go(func() {
			report, err := k.ask(ctx, pod)
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			out[pod] = report
		})
	}
	all.Wait()
	return out
}

// ask returns the report of another server.
func (k *Kubernetes) ask(ctx context.Context, pod string) (group.Report, error) {
	report := group.Report{}
	url := "https://" + net.JoinHostPort(k.host(pod), strconv.Itoa(k.API)) + StatusPath
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return report, fmt.Errorf("cannot ask %s: %w", pod, err)
	}
	res, err := k.peers.Do(req)
	if err != nil {
		return report, fmt.Errorf("cannot ask %s: %w", pod, err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return report, fmt.Errorf("cannot ask %s: it answers %s", pod, res.Status)
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxReport)).Decode(&report); err != nil {
		return report, fmt.Errorf("cannot read the report of %s: %w", pod, err)
	}
	if report.Pod != pod {
		return report, fmt.Errorf("cannot read the report of %s: it is of %s", pod, report.Pod)
	}
	return report, nil
}

// errChanged is the error for a record that another server has changed.
var errChanged = errors.New("cannot change the record of the group: another server has changed it")

// Change implements Outside.
func (k *Kubernetes) Change(ctx context.Context, from, to group.Record) error {
	cm, have, err := k.record(ctx)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(have, from) {
		return errChanged
	}
	raw, err := json.Marshal(to)
	if err != nil {
		return fmt.Errorf("cannot write the record of the group: %w", err)
	}
	err = k.Kube.Replace(ctx, cm, instance.GroupAnnotation, string(raw))
	if kube.Raced(err) {
		return errChanged
	}
	return err
}

// Mark implements Outside.
func (k *Kubernetes) Mark(ctx context.Context, primary bool) error {
	role := instance.RoleReplica
	if primary {
		role = instance.RolePrimary
	}
	if err := k.Kube.Label(ctx, k.Pod, k.UID, roleLabel(role)); err != nil || !primary {
		return err
	}
	pods, err := k.Kube.Pods(ctx, k.primaries())
	for _, pod := range pods {
		if pod.Name != k.Pod {
			// It is frozen or cut off, and can take no writes.
			err = errors.Join(err, k.Kube.Label(ctx, pod.Name, pod.UID, roleLabel(instance.RoleReplica)))
		}
	}
	return err
}

// primaries selects the pods that are marked as the primary.
func (k *Kubernetes) primaries() string {
	return instance.MySQLScopeLabel + "=" + k.Scope + "," + instance.RoleLabel + "=" + instance.RolePrimary
}

// Remark implements Outside.
func (k *Kubernetes) Remark(ctx context.Context, name, from, to string) error {
	for {
		pod, err := k.Kube.Pod(ctx, name)
		if err != nil {
			return err
		}
		if k.replaced(pod) || pod.Labels[instance.RoleLabel] != from {
			return nil
		}
		if err := k.Kube.Relabel(ctx, pod, roleLabel(to)); !kube.Raced(err) {
			return err
		}
	}
}

// Handed implements Outside. Both marks change at once, as far as that is possible: a proxy that has written the first change
// writes the second one up to a second later, and leads every other client to this server until then.
func (k *Kubernetes) Handed(ctx context.Context, to string) error {
	next, nextErr := k.Kube.Pod(ctx, to)
	own, err := k.Kube.Pod(ctx, k.Pod)
	err = errors.Join(nextErr, err)
	if nextErr == nil && !k.replaced(next) {
		err = errors.Join(err, k.Kube.Label(ctx, to, next.UID, roleLabel(instance.RolePrimary)))
	}
	if err == nil && !k.replaced(own) && own.Labels[instance.RoleLabel] == instance.RolePrimary && k.Kube.Relabel(ctx, own, roleLabel("")) == nil {
		return nil
	}
	return errors.Join(err, k.Remark(ctx, k.Pod, instance.RolePrimary, ""))
}

// replaced reports whether a pod has replaced the one that a server was known by: this server's has another UID then, and that of
// another server, which was lost, does not run yet.
func (k *Kubernetes) replaced(pod *corev1.Pod) bool {
	if pod.Name == k.Pod {
		return pod.UID != k.UID
	}
	return pod.Status.Phase == corev1.PodPending
}

// roleLabel is the change of a pod's labels that marks it with a role, or removes its mark if that is "".
func roleLabel(role string) map[string]any {
	if role == "" {
		return map[string]any{instance.RoleLabel: nil}
	}
	return map[string]any{instance.RoleLabel: role}
}

// Leaving implements Outside.
func (k *Kubernetes) Leaving(ctx context.Context, name string) bool {
	pod, err := k.Kube.Pod(ctx, name)
	return kube.Missing(err) || err == nil && pod.DeletionTimestamp != nil
}

// Grace implements Outside.
func (k *Kubernetes) Grace(ctx context.Context) time.Duration {
	return k.Kube.Grace(ctx, k.Pod)
}

// Ending implements Outside.
func (k *Kubernetes) Ending(ctx context.Context) bool {
	set, setErr := k.Kube.StatefulSet(ctx, k.Scope)
	config, configErr := k.Kube.ConfigMap(ctx, k.Scope)
	if kube.Ends(set, setErr, config, configErr) {
		return true
	}
	desired := instance.Desired{}
	return configErr == nil && json.Unmarshal([]byte(config.Data[instance.DesiredKey]), &desired) == nil && desired.Hibernated
}
