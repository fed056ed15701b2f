package plan_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/internal/plan"
	"github.com/storeplane/storeplane/internal/plan/state"
)

// TestDryRun: a claim is refused if the API server refuses one of its objects, what was not tried
// is unknown, and no Secret is sent.
func TestDryRun(t *testing.T) {
	claim, beside := example(t, "webapp/minimal.yaml")
	p := planner(t, state.NewSaved(beside))
	tried := map[string]string{}
	p.DryRun = func(_ context.Context, manager string, live, u *unstructured.Unstructured) error {
		tried[u.GetKind()] = manager
		if live != nil {
			t.Errorf("%s %s does not exist, and was to be patched", u.GetKind(), u.GetName())
		}
		if len(u.GetOwnerReferences()) > 0 || u.GetUID() != "" || u.GetResourceVersion() != "" || u.Object["status"] != nil {
			t.Errorf("%s %s has what only the API server sets: %v", u.GetKind(), u.GetName(), u.Object["metadata"])
		}
		switch u.GetKind() {
		case "Deployment":
			return &plan.RejectedError{Message: "exceeded quota: pods"}
		case "Service":
			return &plan.UntriedError{Why: "they may not be applied"}
		}
		return nil
	}
	got, err := p.Plan(t.Context(), claim)
	if err != nil {
		t.Fatal(err)
	}
	if got.Verdict != plan.Refused || len(got.Rejected) != 1 || got.Rejected[0].Object.Kind != "Deployment" || got.Rejected[0].Message != "exceeded quota: pods" {
		t.Errorf("want it refused for its Deployment, got %s: %+v", got.Verdict, got.Rejected)
	}
	if !slices.Contains(got.Unknown, "whether the API server accepts Service objects: they may not be applied") {
		t.Errorf("want it unknown whether the Service is accepted, got %v", got.Unknown)
	}
	if tried["WebApp"] != "storeplane-plan" || !strings.HasPrefix(tried["Deployment"], "apiextensions.crossplane.io/composed/") || tried["Secret"] != "" {
		t.Errorf("want the claim tried, what it composes as Crossplane applies it, and no Secret: %v", tried)
	}
	b := &bytes.Buffer{}
	report := plan.NewReport([]plan.Claim{*got})
	if err := errors.Join(report.Text(b, false), report.Markdown(b)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"  refused by the API server\n  ! Deployment ", ": exceeded quota: pods\n", "> The API server refuses Deployment "} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("want %q in\n%s", want, b)
		}
	}

	p.DryRun = func(context.Context, string, *unstructured.Unstructured, *unstructured.Unstructured) error {
		return errors.New("connection refused")
	}
	if _, err := p.Plan(t.Context(), claim); err == nil || !strings.Contains(err.Error(), "in a dry run: connection refused") {
		t.Errorf("want an error while the API server is away, got %v", err)
	}
}

// TestDryRunUnchanged: a claim without changes causes no dry runs.
func TestDryRunUnchanged(t *testing.T) {
	claim, beside := example(t, "webapp/minimal.yaml")
	p := planner(t, state.NewSaved(cluster(t, claim, beside)))
	p.DryRun = func(_ context.Context, _ string, _, u *unstructured.Unstructured) error {
		t.Errorf("%s %s was tried", u.GetKind(), u.GetName())
		return nil
	}
	if _, err := p.Plan(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
}

// TestDryRunEdited: a claim that exists is patched, from what is live to all that it becomes, and
// what it composes is applied.
func TestDryRunEdited(t *testing.T) {
	claim, beside := example(t, "webapp/production.yaml")
	p := planner(t, state.NewSaved(cluster(t, claim, beside)))
	patched := map[string]bool{}
	p.DryRun = func(_ context.Context, _ string, live, u *unstructured.Unstructured) error {
		patched[u.GetKind()] = live != nil
		if live == nil {
			return nil
		}
		class := func(u *unstructured.Unstructured) string {
			text, _, _ := unstructured.NestedString(u.Object, "spec", "ingress", "className")
			return text
		}
		if class(live) != "nginx" || class(u) != "" {
			t.Errorf("want the class removed, got %q and %q", class(live), class(u))
		}
		return nil
	}
	edited := claim.DeepCopy()
	set(nil, "ingress", "className").apply(t, edited)
	if _, err := p.Plan(t.Context(), edited); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]bool{"WebApp": true, "Ingress": false}, patched); diff != "" {
		t.Errorf("what was patched: -want, +got:\n%s", diff)
	}
}

// TestDryRunWritten: a claim is sent as it was written, without the defaults of this release. The
// cluster may have the definitions of another one, and sets its own.
func TestDryRunWritten(t *testing.T) {
	web, beside := example(t, "webapp/minimal.yaml")
	set(int64(9000), "port").apply(t, web)
	without := web.DeepCopy()
	set(nil, "port").apply(t, without)
	spec := func(u *unstructured.Unstructured) map[string]any {
		out, _, _ := unstructured.NestedMap(u.Object, "spec")
		delete(out, "crossplane")
		return out
	}
	last, err := web.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	live := cluster(t, web.DeepCopy(), beside)
	removed := map[string]any{}
	for _, u := range live {
		if u.GetKind() == "WebApp" {
			u.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: string(last)})
			removed = spec(u)
			delete(removed, "port")
		}
	}
	cases := map[string]struct {
		reason string
		state  []*unstructured.Unstructured
		claim  *unstructured.Unstructured
		want   map[string]any
	}{
		"Created": {reason: "What a new claim leaves out is left out.", state: beside, claim: web, want: spec(web)},
		"Removed": {reason: "A field that an edit removes is removed, and not set to its default.", state: live, claim: without, want: removed},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := planner(t, state.NewSaved(tc.state))
			p.Replace = false
			var got map[string]any
			p.DryRun = func(_ context.Context, _ string, _, u *unstructured.Unstructured) error {
				if u.GetKind() == "WebApp" {
					got = spec(u)
				}
				return nil
			}
			if _, err := p.Plan(t.Context(), tc.claim); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nthe spec that is sent: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDryRunMissing: an object that the API server refuses for the lack of another one is refused,
// unless the plan creates the other one, which no dry run stores.
func TestDryRunMissing(t *testing.T) {
	role := func(name string) plan.Object {
		return plan.Object{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role", Namespace: "default", Name: name}
	}
	type want struct{ Rejected, Unknown []string }
	cases := map[string]struct {
		reason  string
		missing plan.Object
		want    want
	}{
		"Created": {
			reason:  "The plan creates the Role.",
			missing: role("orders-postgresql"),
			want:    want{Unknown: []string{"whether the API server accepts RoleBinding objects: Role orders-postgresql does not exist yet, for a dry run stores nothing"}},
		},
		"Other": {
			reason:  "No object of the plan is the Role.",
			missing: role("other"),
			want:    want{Rejected: []string{"RoleBinding orders-postgresql"}},
		},
		"None": {
			reason: "It is refused for another reason.",
			want:   want{Rejected: []string{"RoleBinding orders-postgresql"}},
		},
	}
	claim, beside := example(t, "databasecluster/production.yaml")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := planner(t, state.NewSaved(beside))
			p.DryRun = func(_ context.Context, _ string, _, u *unstructured.Unstructured) error {
				if u.GetKind() != "RoleBinding" {
					return nil
				}
				return &plan.RejectedError{Message: "not found", Missing: tc.missing}
			}
			planned, err := p.Plan(t.Context(), claim)
			if err != nil {
				t.Fatal(err)
			}
			got := want{Unknown: planned.Unknown}
			for _, r := range planned.Rejected {
				got.Rejected = append(got.Rejected, r.Object.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nPlan(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDryRunNamespace: of a claim whose namespace its files create and does not exist yet, nothing
// is tried. A namespace that no file creates is a refusal.
func TestDryRunNamespace(t *testing.T) {
	type want struct {
		Verdict plan.Verdict
		Tried   []string
		Unknown []string
	}
	cases := map[string]struct {
		reason     string
		namespaces []string
		want       want
	}{
		"Created": {
			reason: "The files create the namespace.", namespaces: []string{"other", "default"},
			want: want{
				Verdict: plan.Changes, Tried: []string{"WebApp"},
				Unknown: []string{"whether the API server accepts the claim and its objects: Namespace default does not exist yet, so nothing could be tried"},
			},
		},
		"Missing": {
			reason: "The files create another namespace.", namespaces: []string{"other"},
			want: want{Verdict: plan.Refused, Tried: []string{"WebApp", "Deployment", "NetworkPolicy", "Service", "ServiceAccount"}},
		},
	}
	claim, beside := example(t, "webapp/minimal.yaml")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := planner(t, state.NewSaved(beside))
			p.Namespaces = tc.namespaces
			got := want{}
			p.DryRun = func(_ context.Context, _ string, _, u *unstructured.Unstructured) error {
				got.Tried = append(got.Tried, u.GetKind())
				return &plan.RejectedError{Message: `namespaces "default" not found`, Missing: plan.Object{APIVersion: "v1", Kind: "Namespace", Name: "default"}}
			}
			planned, err := p.Plan(t.Context(), claim)
			if err != nil {
				t.Fatal(err)
			}
			got.Verdict, got.Unknown = planned.Verdict, planned.Unknown
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nPlan(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
