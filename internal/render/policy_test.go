package render_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/render"
)

const report = `apiVersion: wgpolicyk8s.io/v1alpha2
kind: PolicyReport
metadata:
  name: web-guardrails
  namespace: team
results:
- message: 'image is docker.io/library/nginx, which is from no approved registry:
    use an image from registry.example.com'
  policy: storeplane-guardrails
  properties:
    field: spec.image
  result: fail
  rule: approved-registries
  scored: true
  source: storeplane
- message: only claims for production are bound
  policy: storeplane-guardrails
  result: skip
  rule: no-latest-in-production
  scored: true
  source: storeplane
- message: only claims for production are bound
  policy: storeplane-guardrails
  result: skip
  rule: limits-in-production
  scored: true
  source: storeplane
- message: replicas is 1, of at most 10
  policy: storeplane-guardrails
  properties:
    field: spec.replicas
  result: pass
  rule: replica-cap
  scored: true
  source: storeplane
scope:
  apiVersion: apps.example.com/v1
  kind: WebApp
  name: web
  namespace: team
summary:
  error: 0
  fail: 1
  pass: 1
  skip: 2
  warn: 0
`

func TestPolicy(t *testing.T) {
	const approved = "apiVersion: apiextensions.crossplane.io/v1beta1\nkind: EnvironmentConfig\nmetadata: {name: storeplane}\ndata: {policy: {approvedRegistries: [registry.example.com]}}\n"
	webApp := func(spec string) string {
		return "apiVersion: apps.example.com/v1\nkind: WebApp\nmetadata: {name: web, namespace: team}\nspec: " + spec + "\n"
	}
	cases := map[string]struct {
		reason   string
		claim    string
		settings string
		out      string
		silent   bool
		err      string
	}{
		"Fails":    {reason: "The whole report is told, and that it is bad.", claim: claim, settings: approved, out: report, err: `WebApp "web" breaks a guardrail`},
		"Passes":   {reason: "Without settings every registry is approved.", claim: claim},
		"Twice":    {reason: "Each place counts.", claim: webApp("{image: nginx, environment: production}"), settings: approved, err: `WebApp "web" breaks guardrails in 2 places`},
		"Invalid":  {reason: "What the definition refuses is reported as before.", claim: webApp("{image: nginx, replicas: 11}"), err: `WebApp "web" is invalid: spec: replicas may be at most 10 (more only where environment is development or staging)`},
		"Mistyped": {reason: "What cannot be read has no report.", claim: webApp("{image: nginx, replicas: many}"), silent: true, err: "WebApp \"web\" is invalid:\n  spec.replicas: Invalid value: \"many\": must be of type integer: \"string\"\n  some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"},
		"Unknown":  {reason: "There are rules for our kinds only.", claim: "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n", silent: true, err: `cannot find a definition of kind "Pod" in "v1": there are DatabaseCluster (apps.example.com/v1), EcommercePlatform (platform.example.com/v1), WebApp (apps.example.com/v1)`},
		"Nonsense": {
			reason: "Settings that cannot be used are reported as such.", claim: claim, silent: true,
			settings: "apiVersion: apiextensions.crossplane.io/v1beta1\nkind: EnvironmentConfig\nmetadata: {name: storeplane}\ndata: {policy: {approvedRegistries: [everything]}}\n",
			err:      `cannot use EnvironmentConfig storeplane: data.policy.approvedRegistries[0] must be the host of a registry with or without a path, like registry.example.com/team, is "everything"`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := render.Input{}
			var err error
			if in.Claim, err = render.LoadClaim(file(t, tc.claim)); err != nil {
				t.Fatal(err)
			}
			if in.Cluster, err = render.Parse([]byte(tc.settings)); err != nil {
				t.Fatal(err)
			}
			out, err := (&render.Renderer{Schemas: schemas}).Policy(in)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.err, got); diff != "" {
				t.Errorf("%s\nPolicy(...): -want, +got:\n%s", tc.reason, diff)
			}
			if tc.silent != (len(out) == 0) {
				t.Errorf("%s\nPolicy(...): want a report: %t, got %q", tc.reason, !tc.silent, out)
			}
			if diff := cmp.Diff(tc.out, string(out)); tc.out != "" && diff != "" {
				t.Errorf("%s\nPolicy(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
