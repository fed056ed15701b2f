package converge_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/internal/converge"
	"github.com/storeplane/storeplane/internal/instance"
)

const (
	servers = `{"apiVersion":"apps/v1","kind":"StatefulSet","metadata":{"name":"db-postgresql","labels":{"app.kubernetes.io/version":"17.2"}},"spec":{"replicas":2,
  "template":{"metadata":{"labels":{"storeplane.example.com/patroni":"db-postgresql"}}}}}`
	desire      = `{"claim":"db","size":2,"synchronous":true,"storage":"10Gi","databases":[],"users":[]}`
	credentials = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"db-credentials","resourceVersion":"42"}}`
	reported    = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"db-postgresql-status"}}`
)

func desiredOf(t *testing.T, text string) string {
	t.Helper()
	b, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "db-postgresql"}, "data": map[string]any{instance.DesiredKey: text}})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestRunInstances(t *testing.T) {
	all := map[string]string{
		"cluster.json":         `{"primary":"db-postgresql-0","timeline":1,"applied":"` + instance.Digest(desire) + `","credentials":"42","standbys":[{"name":"db-postgresql-1","streaming":true,"synchronous":true}],"system":"7000000000000000001","stanza":"7000000000000000001"}`,
		"db-postgresql-0.json": `{"version":"17.2","capacity":"10Gi"}`,
		"db-postgresql-1.json": `{"version":"17.2","capacity":"10Gi"}`,
	}
	asleep := claim(servers)
	_ = unstructured.SetNestedField(asleep.Object, int64(0), "spec", "replicas")
	stranger := claim(servers)
	_ = unstructured.SetNestedMap(stranger.Object, map[string]any{}, "spec", "template", "metadata", "labels")

	cases := map[string]struct {
		reason   string
		composed []*unstructured.Unstructured
		want     map[string]string
	}{
		"All":            {reason: "All that is desired is brought about and reported.", composed: []*unstructured.Unstructured{claim(servers), claim(desiredOf(t, desire)), claim(credentials), claim(reported)}, want: all},
		"AnyOrder":       {reason: "In whichever order objects come.", composed: []*unstructured.Unstructured{claim(reported), claim(credentials), claim(desiredOf(t, desire)), claim(servers)}, want: all},
		"NoServers":      {reason: "Without servers there is no report.", composed: []*unstructured.Unstructured{claim(desiredOf(t, desire)), claim(credentials), claim(reported)}},
		"Asleep":         {reason: "Nor while they sleep.", composed: []*unstructured.Unstructured{asleep, claim(desiredOf(t, desire)), claim(credentials), claim(reported)}},
		"Stranger":       {reason: "Another StatefulSet has no managers.", composed: []*unstructured.Unstructured{stranger, claim(desiredOf(t, desire)), claim(reported)}},
		"NoDesired":      {reason: "A manager without a desired state does nothing.", composed: []*unstructured.Unstructured{claim(servers), claim(reported)}},
		"InvalidDesired": {reason: "Who cannot read it neither.", composed: []*unstructured.Unstructured{claim(servers), claim(desiredOf(t, "{")), claim(reported)}},
		"NoReport":       {reason: "Where there is no place to report no manager does.", composed: []*unstructured.Unstructured{claim(servers), claim(desiredOf(t, desire))}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			converge.RunInstances(tc.composed)
			var got map[string]string
			for _, u := range tc.composed {
				if u.GetName() == "db-postgresql-status" {
					got, _, _ = unstructured.NestedStringMap(u.Object, "data")
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nRunInstances(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
