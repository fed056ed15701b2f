package supervisor

import (
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/kube"
)

// TestAreAll: a name leads to a server if all of its addresses are the server's.
func TestAreAll(t *testing.T) {
	_, four, _ := net.ParseCIDR("10.88.0.0/16")
	_, six, _ := net.ParseCIDR("fd00::/64")
	four.IP, six.IP = net.ParseIP("10.88.1.5"), net.ParseIP("fd00::5")
	own := []net.Addr{four, six}
	for name, tc := range map[string]struct {
		found []string
		want  bool
	}{
		"Own":    {found: []string{"10.88.1.5"}, want: true},
		"Both":   {found: []string{"fd00::5", "10.88.1.5"}, want: true},
		"Before": {found: []string{"10.88.1.4"}},
		"Either": {found: []string{"10.88.1.5", "10.88.1.4"}},
		"None":   {},
	} {
		if got := areAll(tc.found, own); got != tc.want {
			t.Errorf("%s: areAll(%v): want %t, got %t", name, tc.found, tc.want, got)
		}
	}
}

// podServer is an API server with one pod, whose status changes after it was read as often as changes has it, and which is
// then marked as the primary's if it is elected.
type podServer struct {
	labels  map[string]string
	grace   *int64
	missing bool
	elected bool
	phase   corev1.PodPhase

	version, changes int
}

// answer answers with an object, and fails with the reason of a refusal.
func answer(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(object); err != nil {
		panic(err)
	}
}

func fails(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	answer(w, code, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: reason})
}

func (p *podServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.missing {
		fails(w, http.StatusNotFound, metav1.StatusReasonNotFound)
		return
	}
	if r.Method == http.MethodPatch {
		var patch struct {
			Metadata struct {
				ResourceVersion string             `json:"resourceVersion"`
				Labels          map[string]*string `json:"labels"`
			} `json:"metadata"`
		}
		_ = json.NewDecoder(r.Body).Decode(&patch)
		if v := patch.Metadata.ResourceVersion; v != "" && v != strconv.Itoa(p.version) {
			fails(w, http.StatusConflict, metav1.StatusReasonConflict)
			return
		}
		for k, v := range patch.Metadata.Labels {
			if delete(p.labels, k); v != nil {
				p.labels[k] = *v
			}
		}
		p.version++
	}
	answer(w, http.StatusOK, &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: pod(1), ResourceVersion: strconv.Itoa(p.version), Labels: maps.Clone(p.labels), DeletionGracePeriodSeconds: p.grace,
		},
		Status: corev1.PodStatus{Phase: p.phase},
	})
	if r.Method == http.MethodGet && p.changes > 0 {
		p.changes--
		p.version++
		if p.elected {
			p.labels[instance.RoleLabel] = instance.RolePrimary
		}
	}
}

// of returns the cluster around a server of that pod.
func (p *podServer) of(t *testing.T) *Kubernetes {
	t.Helper()
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	client, err := kube.New(&rest.Config{Host: server.URL}, "shop")
	if err != nil {
		t.Fatal(err)
	}
	return &Kubernetes{Pod: pod(1), Namespace: "shop", Scope: "orders-mysql", Kube: client}
}

// TestRemark: a pod's mark is changed only if it is the expected one at that moment.
func TestRemark(t *testing.T) {
	const replica, primary = instance.RoleReplica, instance.RolePrimary
	for name, c := range map[string]struct {
		reason   string
		has      string
		changes  int
		elected  bool
		from, to string
		replaced bool
		phase    corev1.PodPhase
		want     string
	}{
		"Removed":  {reason: "The next primary has no mark.", has: replica, from: replica, want: ""},
		"Changed":  {reason: "A pod whose status changes meanwhile is read again.", has: replica, changes: 2, from: replica, want: ""},
		"Elected":  {reason: "A server that is elected at that moment keeps its mark.", has: replica, changes: 1, elected: true, from: replica, want: primary},
		"Primary":  {reason: "A server that was elected meanwhile keeps its mark.", has: primary, from: replica, want: primary},
		"Restored": {reason: "A replica without a mark has one again.", from: "", to: replica, want: replica},
		"Replaced": {reason: "The server of the pod that has its name now does not run yet.", from: "", to: replica, replaced: true, want: ""},
		"Pending":  {reason: "That of another server which was replaced does not run yet either.", from: "", to: replica, phase: corev1.PodPending, want: ""},
		"Promoted": {reason: "A server that is the primary by now is not marked as a replica.", has: primary, from: "", to: replica, want: primary},
	} {
		t.Run(name, func(t *testing.T) {
			p := &podServer{labels: map[string]string{"app": "orders"}, version: 7, changes: c.changes, elected: c.elected, phase: c.phase}
			if c.has != "" {
				p.labels[instance.RoleLabel] = c.has
			}
			k := p.of(t)
			if c.replaced {
				k.UID = "before"
			}
			if c.phase != "" {
				k.Pod = pod(2)
			}
			if err := k.Remark(t.Context(), pod(1), c.from, c.to); err != nil {
				t.Fatal(err)
			}
			want := map[string]string{"app": "orders"}
			if c.want != "" {
				want[instance.RoleLabel] = c.want
			}
			if diff := cmp.Diff(want, p.labels); diff != "" {
				t.Errorf("%s\nRemark(): -want, +got:\n%s", c.reason, diff)
			}
		})
	}
}

// markServer is an API server with the pods of two servers, each with its role. It notes what is changed.
type markServer struct {
	roles map[string]string
	raced bool
	// replaced is a pod that was replaced by another one of its name, which does not run yet.
	replaced string
	changed  []string
}

// uid is the UID of a pod, or of the one before it.
func (m *markServer) uid(name string) types.UID {
	if name == m.replaced {
		return types.UID(name + " again")
	}
	return types.UID(name)
}

func (m *markServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := path.Base(r.URL.Path)
	role := m.roles[name]
	if r.Method == http.MethodPatch {
		var patch corev1.Pod
		_ = json.NewDecoder(r.Body).Decode(&patch)
		if patch.UID != "" && patch.UID != m.uid(name) {
			fails(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
			return
		}
		if m.raced && patch.ResourceVersion != "" {
			m.raced = false
			fails(w, http.StatusConflict, metav1.StatusReasonConflict)
			return
		}
		role = patch.Labels[instance.RoleLabel]
		m.roles[name] = role
		m.changed = append(m.changed, name+": "+role)
	}
	if name == "pods" {
		answer(w, http.StatusOK, &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}})
		return
	}
	phase := corev1.PodRunning
	if name == m.replaced {
		phase = corev1.PodPending
	}
	answer(w, http.StatusOK, &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: m.uid(name), ResourceVersion: "7", Labels: map[string]string{instance.RoleLabel: role}},
		Status:     corev1.PodStatus{Phase: phase},
	})
}

// around returns the cluster around a server of the first pod.
func (m *markServer) around(t *testing.T) *Kubernetes {
	t.Helper()
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	client, err := kube.New(&rest.Config{Host: server.URL}, "shop")
	if err != nil {
		t.Fatal(err)
	}
	return &Kubernetes{Pod: pod(1), UID: types.UID(pod(1)), Namespace: "shop", Scope: "orders-mysql", Kube: client}
}

// TestMarkOwn: a server marks its own pod alone, and not one that has replaced it while it ends.
func TestMarkOwn(t *testing.T) {
	for name, c := range map[string]struct {
		reason   string
		replaced string
		want     []string
		fails    bool
	}{
		"Own":      {reason: "The pod has the role of its server.", want: []string{pod(1) + ": primary"}},
		"Replaced": {reason: "The server of the pod that has its name now does not run yet.", replaced: pod(1), fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := &markServer{roles: map[string]string{}, replaced: c.replaced}
			if err := m.around(t).Mark(t.Context(), true); (err != nil) != c.fails {
				t.Errorf("%s\nMark(): %v", c.reason, err)
			}
			if diff := cmp.Diff(c.want, m.changed); diff != "" {
				t.Errorf("%s\nMark(): changes: -want, +got:\n%s", c.reason, diff)
			}
		})
	}
}

// TestHanded: the next primary is marked, and then this server's mark is removed if it is still that of the primary.
func TestHanded(t *testing.T) {
	const replica, primary = instance.RoleReplica, instance.RolePrimary
	for name, c := range map[string]struct {
		reason   string
		own      string
		raced    bool
		replaced string
		want     []string
	}{
		"Primary": {reason: "Nothing comes between both.", own: primary, want: []string{pod(2) + ": primary", pod(1) + ": "}},
		"Raced":   {reason: "What has changed meanwhile is read again.", own: primary, raced: true, want: []string{pod(2) + ": primary", pod(1) + ": "}},
		"Replica": {reason: "The next primary has marked this one already.", own: replica, want: []string{pod(2) + ": primary"}},
		"Itself":  {reason: "A later pod that was elected meanwhile keeps its mark.", own: primary, replaced: pod(1), want: []string{pod(2) + ": primary"}},
		"Ended":   {reason: "A pod that has replaced that of the next primary takes no writes.", own: primary, replaced: pod(2), want: []string{pod(1) + ": "}},
	} {
		t.Run(name, func(t *testing.T) {
			m := &markServer{roles: map[string]string{pod(1): c.own}, raced: c.raced, replaced: c.replaced}
			if err := m.around(t).Handed(t.Context(), pod(2)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, m.changed); diff != "" {
				t.Errorf("%s\nHanded(): changes: -want, +got:\n%s", c.reason, diff)
			}
		})
	}
}

// TestGrace: how long a pod has to end.
func TestGrace(t *testing.T) {
	for name, c := range map[string]struct {
		pod  podServer
		want time.Duration
	}{
		"Deleted": {pod: podServer{grace: new(int64(120))}, want: 2 * time.Minute},
		"Stays":   {},
		"Gone":    {pod: podServer{missing: true}},
	} {
		if got := c.pod.of(t).Grace(t.Context()); got != c.want {
			t.Errorf("%s: Grace(): got %s, want %s", name, got, c.want)
		}
	}
}
