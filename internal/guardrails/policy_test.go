package guardrails_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/guardrails"
	"github.com/storeplane/storeplane/internal/settings"
)

func TestCheckFailures(t *testing.T) {
	for name, tc := range claims {
		t.Run(name, func(t *testing.T) {
			u := claim(t, tc.kind, tc.spec)
			if err := schemas.Validate(u); err != nil {
				t.Fatalf("%s\nIts definition refuses it already: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.failures, failuresOf(check(t, u, installation)), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nCheck(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestCheck compares whole verdicts: those that pass or are skipped have a message too.
func TestCheck(t *testing.T) {
	none := guardrails.Verdict{Rule: guardrails.ApprovedRegistries, Result: guardrails.Skip, Message: "the installation's settings name no approved registries"}
	skipped := func(rule string) guardrails.Verdict {
		return guardrails.Verdict{Rule: rule, Result: guardrails.Skip, Message: "only claims for production are bound"}
	}
	cases := map[string]struct {
		reason     string
		kind, spec string
		registries []string
		want       []guardrails.Verdict
	}{
		"Development": {
			reason: "Production's rules say that they do not bind.", kind: "WebApp", spec: "{environment: development, image: nginx, replicas: 50}",
			want: []guardrails.Verdict{none, skipped(guardrails.NoLatestInProduction), skipped(guardrails.LimitsInProduction), skipped(guardrails.ReplicaCap)},
		},
		"NoEnvironment": {
			reason: "Only the cap binds a claim that does not say what it is for.", kind: "WebApp", spec: "{image: nginx, replicas: 11}",
			want: []guardrails.Verdict{
				none, skipped(guardrails.NoLatestInProduction), skipped(guardrails.LimitsInProduction),
				{Rule: guardrails.ReplicaCap, Field: "spec.replicas", Result: guardrails.Fail, Message: "replicas is 11: ask for at most 10 where environment is not development or staging"},
			},
		},
		"Production": {
			reason: "Each field has a verdict, in the order of the rules.", kind: "EcommercePlatform", registries: []string{"quay.io", "docker.io"},
			spec: "{environment: production, frontend: {image: 'f:1', autoscaling: {maxReplicas: 11}}, backend: {image: b, replicas: 10, resources: {limits: {memory: 1Gi}}}}",
			want: []guardrails.Verdict{
				{Rule: guardrails.ApprovedRegistries, Field: "spec.frontend.image", Result: guardrails.Pass, Message: "frontend.image is docker.io/library/f:1, from docker.io"},
				{Rule: guardrails.ApprovedRegistries, Field: "spec.backend.image", Result: guardrails.Pass, Message: "backend.image is docker.io/library/b, from docker.io"},
				{Rule: guardrails.NoLatestInProduction, Field: "spec.frontend.image", Result: guardrails.Pass, Message: "frontend.image is f:1, which names a version"},
				{Rule: guardrails.NoLatestInProduction, Field: "spec.backend.image", Result: guardrails.Fail, Message: "backend.image is b, which means the latest: name a version or a digest in production"},
				{Rule: guardrails.LimitsInProduction, Field: "spec.frontend.resources", Result: guardrails.Pass, Message: "frontend.resources is defaulted by production"},
				{Rule: guardrails.LimitsInProduction, Field: "spec.backend.resources", Result: guardrails.Pass, Message: "backend.resources has limits.memory 1Gi"},
				{Rule: guardrails.LimitsInProduction, Field: "spec.database.resources", Result: guardrails.Pass, Message: "database.resources is defaulted by production"},
				{Rule: guardrails.ReplicaCap, Field: "spec.frontend.autoscaling.maxReplicas", Result: guardrails.Fail, Message: "frontend.autoscaling.maxReplicas is 11: ask for at most 10 in production"},
				{Rule: guardrails.ReplicaCap, Field: "spec.backend.replicas", Result: guardrails.Pass, Message: "backend.replicas is 10, of at most 10"},
			},
		},
		"Shop": {
			reason: "What is left out is said to be defaulted.", kind: "EcommercePlatform", spec: "{environment: production, frontend: {image: 'f@sha256:0'}, backend: {image: 'b:1'}}",
			want: []guardrails.Verdict{
				none,
				{Rule: guardrails.NoLatestInProduction, Field: "spec.frontend.image", Result: guardrails.Pass, Message: "frontend.image is f@sha256:0, which names a version"},
				{Rule: guardrails.NoLatestInProduction, Field: "spec.backend.image", Result: guardrails.Pass, Message: "backend.image is b:1, which names a version"},
				{Rule: guardrails.LimitsInProduction, Field: "spec.frontend.resources", Result: guardrails.Pass, Message: "frontend.resources is defaulted by production"},
				{Rule: guardrails.LimitsInProduction, Field: "spec.backend.resources", Result: guardrails.Pass, Message: "backend.resources is defaulted by production"},
				{Rule: guardrails.LimitsInProduction, Field: "spec.database.resources", Result: guardrails.Pass, Message: "database.resources is defaulted by production"},
				{Rule: guardrails.ReplicaCap, Field: "spec.frontend.replicas", Result: guardrails.Pass, Message: "frontend.replicas is left to its default, of at most 10"},
				{Rule: guardrails.ReplicaCap, Field: "spec.backend.replicas", Result: guardrails.Pass, Message: "backend.replicas is left to its default, of at most 10"},
			},
		},
		"Database": {
			reason: "A rule says nothing of a kind that has nothing for it.", kind: "DatabaseCluster", spec: "{environment: production, size: 3, version: '17'}",
			want: []guardrails.Verdict{{Rule: guardrails.LimitsInProduction, Field: "spec.resources", Result: guardrails.Pass, Message: "resources is defaulted by production"}},
		},
		"Workers": {
			reason: "Workers count as pods, too.", kind: "WebApp", spec: "{environment: production, image: 'a:1', workers: [{name: mail, args: [m], replicas: 11}]}",
			want: []guardrails.Verdict{
				none,
				{Rule: guardrails.NoLatestInProduction, Field: "spec.image", Result: guardrails.Pass, Message: "image is a:1, which names a version"},
				{Rule: guardrails.LimitsInProduction, Field: "spec.resources", Result: guardrails.Pass, Message: "resources is defaulted by production"},
				{Rule: guardrails.ReplicaCap, Field: "spec.replicas", Result: guardrails.Pass, Message: "replicas is 1, of at most 10"},
				{Rule: guardrails.ReplicaCap, Field: "spec.workers[mail].replicas", Result: guardrails.Fail, Message: "workers[mail].replicas is 11: ask for at most 10 in production"},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, check(t, claim(t, tc.kind, tc.spec), settings.Policy{ApprovedRegistries: tc.registries})); diff != "" {
				t.Errorf("%s\nCheck(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestEnforce(t *testing.T) {
	broken := subject(t, claim(t, "WebApp", "{environment: production, image: quay.io/app, resources: {limits: {cpu: 1}}}"))
	err := guardrails.Enforce(broken, settings.Policy{ApprovedRegistries: []string{"ghcr.io"}})
	want := "image is quay.io/app, which is from no approved registry: use an image from ghcr.io; image is quay.io/app" + meansLatest + "; resources" + noLimit
	if err == nil || err.Error() != want || !compose.IsInvalid(err) {
		t.Errorf("All that has to be changed is said at once, to the claim's team.\nEnforce(...): want %q, got %v", want, err)
	}
	sound := subject(t, claim(t, "WebApp", "{image: quay.io/app}"))
	if err := guardrails.Enforce(sound, settings.Policy{}); err != nil {
		t.Errorf("Enforce(...): want no error, got %v", err)
	}
}

func TestNewReport(t *testing.T) {
	verdicts := []guardrails.Verdict{
		{Rule: "a", Field: "spec.x", Result: guardrails.Pass, Message: "x is well"},
		{Rule: "a", Field: "spec.y", Result: guardrails.Fail, Message: "y is not"},
		{Rule: "b", Result: guardrails.Skip, Message: "not bound"},
	}
	got := guardrails.NewReport(corev1.ObjectReference{Kind: "WebApp", Namespace: "team", Name: "hello"}, verdicts)
	if diff := cmp.Diff(guardrails.Summary{Pass: 1, Fail: 1, Skip: 1}, got.Summary); diff != "" {
		t.Errorf("NewReport(...): -want, +got:\n%s", diff)
	}
	said := make([]string, 0, len(got.Results))
	for _, r := range got.Results {
		said = append(said, strings.Join([]string{r.Rule, string(r.Result), r.Properties["field"], r.Message}, " "))
	}
	if diff := cmp.Diff([]string{"a pass spec.x x is well", "a fail spec.y y is not", "b skip  not bound"}, said); diff != "" {
		t.Errorf("NewReport(...): -want, +got:\n%s", diff)
	}
}
