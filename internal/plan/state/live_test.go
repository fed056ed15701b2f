package state_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storeplane/storeplane/internal/explain"
	"github.com/storeplane/storeplane/internal/plan"
	"github.com/storeplane/storeplane/internal/plan/state"
	"github.com/storeplane/storeplane/test/plane"
	"github.com/storeplane/storeplane/test/plane/planetest"
)

var webApp = schema.GroupVersionKind{Group: "apps.example.com", Version: "v1", Kind: "WebApp"}

// reviewer is a user who may read claims and ConfigMaps, and no Secrets.
const reviewer = "reviewer"

// TestLive: the objects of a claim, as a user who may read everything reads them, one who may not
// read its Secret, and one who may read nothing.
func TestLive(t *testing.T) {
	p := planetest.Start(t, false)
	admin := p.Config(plane.Admin)
	c := planetest.Client(t, admin)
	planetest.Define(t, c, routes())
	fill(t, c)

	as := func(user string) *rest.Config {
		config := rest.CopyConfig(admin)
		config.Impersonate = rest.ImpersonationConfig{UserName: user}
		return config
	}
	claim := plan.Object{APIVersion: "apps.example.com/v1", Kind: "WebApp", Namespace: "team", Name: "web"}
	type want struct {
		Tree      []string
		Forbidden bool
		Secrets   bool
		Unknown   []string
	}
	cases := map[string]struct {
		reason string
		config *rest.Config
		want   want
	}{
		"Admin": {
			reason: "What the references name is read; what does not exist any more is not there, nor what the claim does not control: its author writes the references, too.",
			config: admin,
			want:   want{Tree: []string{"WebApp web", "ConfigMap web-config", "Secret web-secret"}},
		},
		"Reviewer": {
			reason: "A Secret that may not be read is left out, and said to be unknown.",
			config: as(reviewer),
			want: want{
				Tree: []string{"WebApp web", "ConfigMap web-config"}, Secrets: true,
				Unknown: []string{"Secrets may not be read: what is generated counts as unchanged"},
			},
		},
		"Nobody": {
			reason: "Without the right to read the claim there is no plan.",
			config: as("nobody"),
			want:   want{Forbidden: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l, err := state.NewLive(tc.config)
			if err != nil {
				t.Fatal(err)
			}
			tree, err := l.Tree(t.Context(), claim)
			got := want{Forbidden: kerrors.IsForbidden(err), Secrets: l.HidesSecrets(), Unknown: l.Unknown()}
			for _, u := range tree {
				got.Tree = append(got.Tree, u.GetKind()+" "+u.GetName())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
			secret := plan.Object{APIVersion: "v1", Kind: "Secret", Namespace: "team", Name: "web-secret"}
			if l.Hides(secret) != tc.want.Secrets {
				t.Errorf("\n%s\nHides(%s): want %t", tc.reason, secret, tc.want.Secrets)
			}
		})
	}
	t.Run("Fetch", func(t *testing.T) { fetches(t, admin) })
	t.Run("Export", func(t *testing.T) { exports(t, admin) })
	t.Run("DryRun", func(t *testing.T) { dryRuns(t, c, admin, as(reviewer)) })
	t.Run("DryRunPlans", func(t *testing.T) { dryRunPlans(t, c, admin, as(pipeline)) })
	t.Run("Explain", func(t *testing.T) { explains(t, c, as(reviewer), as("nobody"), claim) })
}

// fill creates a WebApp that refers to a ConfigMap, a Secret, a deleted Service, and a ConfigMap
// that does not belong to the WebApp.
func fill(t *testing.T, c client.Client) {
	t.Helper()
	ref := func(kind, name string) any {
		return map[string]any{"apiVersion": "v1", "kind": kind, "name": name}
	}
	claim := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"image":      "registry.example.com/web:v1",
		"crossplane": map[string]any{"resourceRefs": []any{ref("ConfigMap", "web-config"), ref("Secret", "web-secret"), ref("Service", "web-gone"), ref("ConfigMap", "other-config")}},
	}}}
	claim.SetGroupVersionKind(webApp)
	claim.SetNamespace("team")
	claim.SetName("web")
	named := metav1.ObjectMeta{Namespace: "team", Labels: map[string]string{"a": "b"}}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}
	for _, o := range []client.Object{namespace, claim} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	named.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(claim, webApp)}
	config, secret := &corev1.ConfigMap{ObjectMeta: named}, &corev1.Secret{ObjectMeta: named}
	config.Name, secret.Name = "web-config", "web-secret"
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "other-config"}}
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: reviewer},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"apps.example.com"}, Resources: []string{"webapps"}, Verbs: []string{"get", "list"}},
			{APIGroups: []string{""}, Resources: []string{"configmaps", "services"}, Verbs: []string{"get", "list"}},
		},
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: reviewer},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: reviewer},
		Subjects:   []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: reviewer}},
	}
	for _, o := range []client.Object{config, secret, other, role, binding} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

func fetches(t *testing.T, config *rest.Config) {
	t.Helper()
	l, err := state.NewLive(config)
	if err != nil {
		t.Fatal(err)
	}
	name := func(n string) *fnv1.ResourceSelector_MatchName { return &fnv1.ResourceSelector_MatchName{MatchName: n} }
	labels := &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{Labels: map[string]string{"a": "b"}}}
	cases := map[string]struct {
		selector *fnv1.ResourceSelector
		want     int
	}{
		"ByName":     {selector: &fnv1.ResourceSelector{ApiVersion: "v1", Kind: "Secret", Namespace: new("team"), Match: name("web-secret")}, want: 1},
		"Missing":    {selector: &fnv1.ResourceSelector{ApiVersion: "v1", Kind: "Secret", Namespace: new("team"), Match: name("no-such")}},
		"ByLabels":   {selector: &fnv1.ResourceSelector{ApiVersion: "v1", Kind: "ConfigMap", Namespace: new("team"), Match: labels}, want: 1},
		"NoSuchKind": {selector: &fnv1.ResourceSelector{ApiVersion: "example.org/v1", Kind: "Nothing", Match: name("a")}},
	}
	for n, tc := range cases {
		t.Run(n, func(t *testing.T) {
			for range 2 { // The second time from the cache.
				got, err := l.Fetch(context.Background(), tc.selector)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want, len(got)); diff != "" {
					t.Errorf("-want, +got:\n%s", diff)
				}
			}
		})
	}
	for kind, want := range map[schema.GroupVersionKind]bool{webApp: true, {Group: "example.org", Version: "v1", Kind: "Nothing"}: false} {
		if got, err := l.Serves(t.Context(), kind); err != nil || got != want {
			t.Errorf("Serves(%s): want %t, got %t, %v", kind, want, got, err)
		}
	}
}

// exports checks that Export returns a claim and its composed objects without Secrets, and that a
// state of those reports that Secrets are hidden.
func exports(t *testing.T, config *rest.Config) {
	t.Helper()
	l, err := state.NewLive(config)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := l.Export(t.Context(), []schema.GroupVersionKind{webApp}, "")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, u := range objects {
		got = append(got, u.GetKind()+" "+u.GetName())
	}
	if diff := cmp.Diff("WebApp web, ConfigMap web-config", strings.Join(got, ", ")); diff != "" {
		t.Errorf("Export(...): -want, +got:\n%s", diff)
	}
	saved := state.NewSaved(objects)
	if !saved.HidesSecrets() || !slices.Equal(saved.Unknown(), []string{"Secrets were not saved: what is generated counts as unchanged"}) {
		t.Errorf("want the Secrets to be hidden: %v", saved.Unknown())
	}
}

// explains checks the explanation of a claim that was never reconciled, for a user who may read
// nothing else: what cannot be read is listed as unknown, and is no error.
func explains(t *testing.T, c client.Client, config, withoutRights *rest.Config, claim plan.Object) {
	t.Helper()
	l, err := state.NewLive(config)
	if err != nil {
		t.Fatal(err)
	}
	l.WithoutSecrets = true
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(webApp)
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: claim.Namespace, Name: claim.Name}, u); err != nil {
		t.Fatal(err)
	}
	facts, err := explain.NewReader(l, u.GetCreationTimestamp().Add(time.Minute)).Read(t.Context(), claim)
	if err != nil {
		t.Fatal(err)
	}
	e := explain.Explain(facts)
	want := []string{
		"Events may not be read: what the cluster has reported is not known",
		"Jobs may not be read: whether they have failed is not known",
		"PersistentVolumeClaims may not be read: whether volumes are bound is not known",
		"Pods may not be read: why workloads are not ready is not known",
		"ReplicaSets may not be read: pods of Deployments are not known",
		"ResourceQuotas may not be read: what of them is used is not known",
		"The pods of Crossplane's packages may not be read: whether Storeplane's function and provider run is not known",
	}
	if diff := cmp.Diff(want, e.Unknown); diff != "" {
		t.Errorf("Unknown: -want, +got:\n%s", diff)
	}
	if e.Cause == nil || e.Cause.Message != "Crossplane has not observed it" {
		t.Errorf("want that Crossplane has not observed it, got %+v", e.Cause)
	}
	if l, err = state.NewLive(withoutRights); err != nil {
		t.Fatal(err)
	}
	if _, err := explain.NewReader(l, time.Now()).Read(t.Context(), claim); !kerrors.IsForbidden(err) {
		t.Errorf("want it said that the claim may not be read, got %v", err)
	}
	if l, err = state.NewLive(config); err != nil {
		t.Fatal(err)
	}
	missing := claim
	missing.Name = "no-such"
	if facts, err := explain.NewReader(l, time.Now()).Read(t.Context(), missing); err != nil || len(facts.Tree) > 0 {
		t.Errorf("want nothing of a claim that does not exist, got %v, %v", facts.Tree, err)
	}
}

// dryRuns checks that a dry run stores nothing, and that what the API server refuses is
// distinguished from what the user is not permitted to do.
func dryRuns(t *testing.T, c client.Client, admin, config *rest.Config) {
	t.Helper()
	service := func(spec map[string]any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Service", "spec": spec}}
		u.SetNamespace("team")
		u.SetName("tried")
		return u
	}
	ports := []any{map[string]any{"port": int64(80)}}
	elsewhere := service(map[string]any{"ports": ports})
	elsewhere.SetNamespace("no-such")
	missing := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.org/v1", "kind": "Nothing"}}
	missing.SetName("tried")
	web := &unstructured.Unstructured{}
	web.SetGroupVersionKind(webApp)
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "web"}, web); err != nil {
		t.Fatal(err)
	}
	unknown := web.DeepCopy()
	if err := unstructured.SetNestedField(unknown.Object, "a", "spec", "colour"); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason  string
		config  *rest.Config
		live, u *unstructured.Unstructured
		want    any
		message string
	}{
		"Accepted":  {reason: "It is valid.", config: admin, u: service(map[string]any{"ports": ports})},
		"Invalid":   {reason: "A port has a number.", config: admin, u: service(map[string]any{"ports": []any{map[string]any{"port": int64(0)}}}), want: &plan.RejectedError{}, message: "spec.ports[0].port"},
		"Namespace": {reason: "The namespace does not exist.", config: admin, u: elsewhere, want: &plan.RejectedError{}, message: `namespaces "no-such" not found`},
		"Denied":    {reason: "The user may not apply it, which says nothing about the object.", config: config, u: service(map[string]any{"ports": ports}), want: &plan.UntriedError{}, message: "they may not be applied"},
		"Kind":      {reason: "The cluster does not serve the kind.", config: admin, u: missing, want: &plan.UntriedError{}, message: "does not serve"},
		"Same":      {reason: "Nothing changes.", config: admin, live: web, u: web},
		"Field":     {reason: "The definition has no such field.", config: admin, live: web, u: unknown, want: &plan.RejectedError{}, message: `unknown field "spec.colour"`},
		"Patch":     {reason: "The user may not patch it.", config: config, live: web, u: unknown, want: &plan.UntriedError{}, message: "they may not be applied"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l, err := state.NewLive(tc.config)
			if err != nil {
				t.Fatal(err)
			}
			err = l.DryRun(t.Context(), "tester", tc.live, tc.u)
			if reflect.TypeOf(tc.want) != reflect.TypeOf(err) || err != nil && !strings.Contains(err.Error(), tc.message) {
				t.Errorf("%s\nwant %T with %q, got %T: %v", tc.reason, tc.want, tc.message, err, err)
			}
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "tried"}, &corev1.Service{}); !kerrors.IsNotFound(err) {
				t.Errorf("want nothing stored, got %v", err)
			}
		})
	}
}
