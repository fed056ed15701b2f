package guardrails_test

import (
	"cmp"
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/storeplane/storeplane/test/plane/planetest"
)

// server is the user of a database's servers.
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
  metadata: {name: group-0, namespace: default, labels: {app.kubernetes.io/instance: own, storeplane.example.com/group: own-postgresql}}
  spec: {containers: [{name: mysql, image: mysql:9.7}]}
- apiVersion: v1
  kind: Pod
  metadata: {name: web, namespace: default, labels: {app: web}}
  spec: {containers: [{name: app, image: app:v1}]}
- apiVersion: rbac.authorization.k8s.io/v1
  kind: Role
  metadata: {name: own-postgresql, namespace: default}
  rules:
    - {apiGroups: [""], resources: [configmaps], resourceNames: [own-postgresql-leader], verbs: [get, patch, update]}
    - {apiGroups: [""], resources: [configmaps], verbs: [create]}
- apiVersion: rbac.authorization.k8s.io/v1
  kind: RoleBinding
  metadata: {name: own-postgresql, namespace: default}
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: own-postgresql}
  subjects: [{kind: ServiceAccount, name: own-postgresql, namespace: default}]
- apiVersion: rbac.authorization.k8s.io/v1
  kind: Role
  metadata: {name: other-postgresql, namespace: default}
  rules: [{apiGroups: [""], resources: [configmaps], verbs: [create, get, patch, update]}]
- apiVersion: rbac.authorization.k8s.io/v1
  kind: RoleBinding
  metadata: {name: other-postgresql, namespace: default}
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: other-postgresql}
  subjects: [{kind: ServiceAccount, name: other-postgresql, namespace: default}]
`

// serve creates a database's objects, and the permissions of its servers on ConfigMaps.
func (g *gate) serve(t *testing.T) {
	t.Helper()
	var objects []map[string]any
	if err := yaml.Unmarshal([]byte(served), &objects); err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		u := &unstructured.Unstructured{Object: o}
		g.create(t, u)
		t.Cleanup(func() { _ = g.Delete(context.WithoutCancel(t.Context()), u) })
	}
}

// testServers: with the token of a database's server, whatever its RBAC permissions, a client can
// change only what Patroni changes in the pods of that database.
func testServers(t *testing.T, g *gate) {
	g.serve(t)
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
		"Group":      {reason: "Servers of another engine are bound as well.", pod: "group-0", patch: `{"metadata":{"labels":{"app.kubernetes.io/instance":"neighbour"}}}`, want: refused},
		"GroupRole":  {reason: "They too label pods by what they do.", pod: "group-0", patch: `{"metadata":{"labels":{"storeplane.example.com/role":"primary"}}}`},
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

// testServersConfigMaps: with the token of a database's server a client can create the leader lock of
// that cluster alone, and none that a later database would adopt.
func testServersConfigMaps(t *testing.T, g *gate) {
	g.serve(t)
	const refused = "a database's server creates the leader lock of its own cluster, without labels and annotations of Crossplane, and no other ConfigMap"
	const adopted = "annotations: {storeplane.example.com/allow-adoption-by: DatabaseCluster/next}"
	cases := map[string]struct {
		reason, account, metadata, want string
	}{
		"Leader":      {reason: "Patroni creates it.", metadata: "name: own-postgresql-leader, labels: {storeplane.example.com/patroni: own-postgresql}, annotations: {leader: own-postgresql-0}"},
		"Config":      {reason: "What is composed is Crossplane's to create: a server that ends would create it again after its database was deleted, and the next of that name would be refused.", metadata: "name: own-postgresql-config", want: refused},
		"Failover":    {reason: "So is the request of a switchover.", metadata: "name: own-postgresql-failover", want: refused},
		"Sync":        {reason: "So are the synchronous standbys.", metadata: "name: own-postgresql-sync", want: refused},
		"Status":      {reason: "So are the reports.", metadata: "name: own-postgresql-status", want: refused},
		"Next":        {reason: "A later database would take what it reports for data.", metadata: "name: next-postgresql-status, " + adopted, want: refused},
		"Composed":    {reason: "The labels of Crossplane do the same.", metadata: "name: next-postgresql-status, labels: {crossplane.io/composite: next}, annotations: {crossplane.io/composition-resource-name: instances}", want: refused},
		"Free":        {reason: "Any other name is another program's.", metadata: "name: settings", want: refused},
		"Longer":      {reason: "So is one that only begins as its own.", metadata: "name: own-postgresql-leader-2", want: refused},
		"Generated":   {reason: "So is one that is not chosen.", metadata: "generateName: own-postgresql-", want: refused},
		"Adopted":     {reason: "Its own are its claim's alone.", metadata: "name: own-postgresql-leader, " + adopted, want: refused},
		"Labelled":    {reason: "They are not composed either.", metadata: "name: own-postgresql-leader, labels: {crossplane.io/composite: next}", want: refused},
		"Annotated":   {reason: "Nor named as a component.", metadata: "name: own-postgresql-leader, annotations: {crossplane.io/composition-resource-name: instances}", want: refused},
		"OtherServer": {reason: "An account of another program may change all anyway.", account: "other-postgresql", metadata: "name: settings"},
	}
	try := func(account, metadata string) string {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte("{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, "+metadata+"}}"), &u.Object); err != nil {
			t.Fatal(err)
		}
		return refusal(g.as(account).Create(t.Context(), u, client.DryRunAll))
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			account := cmp.Or(tc.account, "own-postgresql")
			// The API server applies policies and Roles a moment after they were created.
			planetest.Eventually(t, soon, "the API server judges it", func() error {
				if got := try("system:serviceaccount:default:"+account, tc.metadata); got != tc.want {
					return fmt.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
				}
				return nil
			})
		})
	}
}
