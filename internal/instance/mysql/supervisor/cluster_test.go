package supervisor

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/kube"
	"github.com/storeplane/storeplane/internal/instance/mysql/group"
)

// TestCluster: what is read from the API server, from which it is decided who leads.
func TestCluster(t *testing.T) {
	const set = "orders-mysql"
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: "team"} }
	config := func(name, key, content string) *corev1.ConfigMap {
		return &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: named(name), Data: map[string]string{key: content}}
	}
	desired, err := json.Marshal(instance.Desired{Protocol: instance.Protocol, Size: 3, LeadWith: "data-orders-mysql-2@uid-4"})
	if err != nil {
		t.Fatal(err)
	}
	record := config(instance.GroupName(set), "", "")
	record.Annotations = map[string]string{instance.GroupAnnotation: `{"name": "g", "epoch": 4, "confirmed": true, "members": {"orders-mysql-0": "volume"}}`}
	owned := &appsv1.StatefulSet{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"}, ObjectMeta: named(set)}
	owned.OwnerReferences = []metav1.OwnerReference{{Kind: "DatabaseCluster", Name: "orders", UID: "uid-1234", Controller: new(true)}}
	volume := &corev1.PersistentVolumeClaim{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}, ObjectMeta: named("data-orders-mysql-0")}
	volume.UID = "volume"
	primary := corev1.Pod{ObjectMeta: named(pod(1)), Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
	objects := map[string]runtime.Object{
		"/api/v1/namespaces/team/configmaps/" + set:                               config(set, instance.DesiredKey, string(desired)),
		"/api/v1/namespaces/team/configmaps/" + instance.GroupName(set):           record,
		"/api/v1/namespaces/team/configmaps/" + instance.StatusName(set):          config(instance.StatusName(set), instance.ClusterKey, `{"primary": "orders-mysql-1", "timeline": 4, "databaseCluster": "uid-1234"}`),
		"/apis/apps/v1/namespaces/team/statefulsets/" + set:                       owned,
		"/api/v1/namespaces/team/persistentvolumeclaims/" + "data-orders-mysql-0": volume,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		selector := r.URL.Query().Get("labelSelector")
		switch found := objects[r.URL.Path]; {
		case found != nil:
			_ = json.NewEncoder(w).Encode(found)
		case strings.HasSuffix(r.URL.Path, "/pods") && selector == instance.MySQLScopeLabel+"="+set+","+instance.RoleLabel+"="+instance.RolePrimary:
			_ = json.NewEncoder(w).Encode(&corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []corev1.Pod{primary}})
		default:
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound})
		}
	}))
	defer server.Close()
	client, err := kube.New(&rest.Config{Host: server.URL}, "team")
	if err != nil {
		t.Fatal(err)
	}
	k := &Kubernetes{Pod: pod(0), Namespace: "team", Scope: set, Kube: client}
	got, err := k.Cluster(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got.Ordinal = nil
	want := group.Cluster{
		Size: 3, Serving: pod(1), Led: true, Named: "data-orders-mysql-2", Annotation: instance.LeadWithAdvice("uid-4"),
		Record:  group.Record{Name: "g", Epoch: 4, Confirmed: true, Members: map[string]string{pod(0): "volume"}},
		Volumes: []group.Volume{{Pod: pod(0), Claim: "data-orders-mysql-0", UID: "volume"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Cluster(): -want, +got:\n%s", diff)
	}

	// Before a server has reported, and while none is marked, neither is known.
	delete(objects, "/api/v1/namespaces/team/configmaps/"+instance.StatusName(set))
	primary.Status = corev1.PodStatus{}
	got, err = k.Cluster(t.Context())
	if err != nil || got.Led || got.Serving != "" {
		t.Errorf("Cluster(): got led %t, serving %q, %v", got.Led, got.Serving, err)
	}
}
