package converge

import (
	"cmp"
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/label"
)

// RunInstances simulates what the servers and the instance managers do in the pods of a StatefulSet:
// the first server is elected, the others follow it, the desired state is reached, and all of it is
// reported.
func RunInstances(composed []*unstructured.Unstructured) {
	objects := map[string]*unstructured.Unstructured{}
	for _, u := range composed {
		objects[u.GetKind()+"/"+u.GetName()] = u
	}
	for _, set := range composed {
		scope := scopeOf(set)
		config, status := objects["ConfigMap/"+scope], objects["ConfigMap/"+instance.StatusName(scope)]
		if set.GetKind() != "StatefulSet" || config == nil || status == nil || replicas(set) == 0 {
			continue
		}
		text, _, _ := unstructured.NestedString(config.Object, "data", instance.DesiredKey)
		var desired instance.Desired
		if json.Unmarshal([]byte(text), &desired) != nil {
			continue
		}
		version := set.GetLabels()[label.Version]
		for key, report := range reports(set, version, desired, replicas(set)) {
			if c, ok := report.(*instance.Cluster); ok {
				keepIdentity(c, status, min(replicas(set), int64(desired.Size)))
				c.Applied = instance.Digest(text)
				if s := objects["Secret/"+instance.CredentialsName(desired.Claim)]; s != nil {
					c.Credentials = s.GetResourceVersion()
				}
			}
			b, err := json.Marshal(report)
			if err == nil {
				_ = unstructured.SetNestedField(status.Object, string(b), "data", key)
			}
		}
	}
}

// scopeOf returns the StatefulSet of servers, of whichever engine, or "" for another object.
func scopeOf(set *unstructured.Unstructured) string {
	for _, label := range []string{instance.ScopeLabel, instance.MySQLScopeLabel} {
		if scope, ok, _ := unstructured.NestedString(set.Object, "spec", "template", "metadata", "labels", label); ok {
			return scope
		}
	}
	return ""
}

// keepIdentity keeps the identity of an existing cluster, which its managers have reported before.
// A primary that is not among the servers that stay hands over to the first.
func keepIdentity(c *instance.Cluster, status *unstructured.Unstructured, size int64) {
	text, ok, _ := unstructured.NestedString(status.Object, "data", instance.ClusterKey)
	var was instance.Cluster
	if !ok || json.Unmarshal([]byte(text), &was) != nil {
		return
	}
	c.System, c.Stanza, c.Set, c.Owner = cmp.Or(was.System, c.System), cmp.Or(was.Stanza, c.Stanza), was.Set, was.Owner
	c.Began, c.Timeline = was.Began, max(was.Timeline, c.Timeline)
	if o := instance.Ordinal(was.Primary); was.Primary != c.Primary && o >= 0 && int64(o) < size {
		// The first server is a standby in place of the old primary.
		for i := range c.Standbys {
			if c.Standbys[i].Name == was.Primary {
				c.Standbys[i].Name = c.Primary
			}
		}
		c.Primary = was.Primary
	}
}

// reports returns what the instance managers of a healthy cluster report, by key.
func reports(of *unstructured.Unstructured, version string, desired instance.Desired, size int64) map[string]any {
	set := of.GetName()
	out := map[string]any{}
	cluster := &instance.Cluster{Primary: instance.Pod(set, 0), Dumps: true}
	if _, postgres, _ := unstructured.NestedString(of.Object, "spec", "template", "metadata", "labels", instance.ScopeLabel); postgres {
		cluster.Timeline, cluster.System, cluster.Stanza, cluster.Dumps = 1, "7000000000000000001", "7000000000000000001", false
	}
	if desired.Backup != nil {
		cluster.Archive = &instance.Archive{Recoverable: new(time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC))}
	}
	for i := range int32(size) { //nolint:gosec // a size is 10 at most
		pod := instance.Pod(set, i)
		out[instance.MemberKey(pod)] = &instance.Member{Version: version, Capacity: desired.Storage}
		if i > 0 {
			cluster.Standbys = append(cluster.Standbys, instance.Standby{Name: pod, Streaming: true, Synchronous: desired.Synchronous})
		}
	}
	out[instance.ClusterKey] = cluster
	return out
}
