package guardrails_test

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/storeplane/storeplane/test/plane/planetest"
)

// server is the account of a database's servers.
const server = "system:serviceaccount:default:own-postgresql"

const served = `
- apiVersion: v1
  kind: Pod
  metadata:
    name: own-postgresql-0
    namespace: default
    labels: {app.kubernetes.io/instance: own, app.kubernetes.io/component: postgresql, storeplane.example.com/patroni: own-postgresql, storeplane.example.com/role: replica}
    ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: own-postgresql, uid: a, controller: true}]
  spec: {containers: [{name: instance, image: postgresql:17}]}
- apiVersion: v1
  kind: Pod
  metadata: {name: web, namespace: default, labels: {app: web}}
  spec: {containers: [{name: app, image: app:v1}]}
`

// testServers: with the token of a database's server, and whatever rights, one changes of
// its pods what Patroni does.
func testServers(t *testing.T, g *gate) {
	var objects []map[string]any
	if err := yaml.Unmarshal([]byte(served), &objects); err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		u := &unstructured.Unstructured{Object: o}
		g.create(t, u)
		t.Cleanup(func() { _ = g.Delete(context.WithoutCancel(t.Context()), u) })
	}
	const refused = "a database's server changes the label storeplane.example.com/role and annotations of its pods, and nothing else"
	cases := map[string]struct {
		reason, pod, patch, want string
	}{
		"Role":       {reason: "Patroni labels pods by what they do.", patch: `{"metadata":{"labels":{"storeplane.example.com/role":"primary"},"annotations":{"status":"{}"}}}`},
		"NoRole":     {reason: "One that leaves has none.", patch: `{"metadata":{"labels":{"storeplane.example.com/role":null}}}`},
		"Neighbour":  {reason: "It would be a neighbour's primary.", patch: `{"metadata":{"labels":{"app.kubernetes.io/instance":"neighbour"}}}`, want: refused},
		"Scope":      {reason: "Or one of its members.", patch: `{"metadata":{"labels":{"storeplane.example.com/patroni":"neighbour-postgresql"}}}`, want: refused},
		"More":       {reason: "Any label may be what another Service selects.", patch: `{"metadata":{"labels":{"app":"web"}}}`, want: refused},
		"Less":       {reason: "Without one it would leave its own policies.", patch: `{"metadata":{"labels":{"app.kubernetes.io/component":null}}}`, want: refused},
		"Image":      {reason: "It is no way past approved registries.", patch: `{"spec":{"containers":[{"name":"instance","image":"evil:v1"}]}}`, want: refused},
		"Owner":      {reason: "Nor past the StatefulSet.", patch: `{"metadata":{"ownerReferences":null}}`, want: refused},
		"Finalizers": {reason: "Nor does it stay for ever.", patch: `{"metadata":{"finalizers":["example.com/stay"]}}`, want: refused},
		"Other":      {reason: "Of other pods its Role has none: what that lets through is not this policy's.", pod: "web", patch: `{"metadata":{"labels":{"app":"other"}}}`},
	}
	try := func(pod, patch string) string {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}}
		u.SetNamespace("default")
		u.SetName(pod)
		return refusal(g.serving.Patch(t.Context(), u, client.RawPatch(types.StrategicMergePatchType, []byte(patch)), client.DryRunAll))
	}
	planetest.Eventually(t, soon, "the policy is known", func() error {
		if got := try("own-postgresql-0", cases["Neighbour"].patch); got != refused {
			return fmt.Errorf("got %q", got)
		}
		return nil
	})
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := tc.pod
			if pod == "" {
				pod = "own-postgresql-0"
			}
			if got := try(pod, tc.patch); got != tc.want {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}
