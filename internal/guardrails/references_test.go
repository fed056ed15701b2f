package guardrails_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/storeplane/storeplane/test/plane/planetest"
)

// testReferences: users can only set references to kinds of which claims of that kind are composed,
// so that Crossplane watches no others.
func testReferences(t *testing.T, g *gate) {
	g.settings(t, nil)
	const (
		node   = "{apiVersion: v1, kind: Node, name: a}"
		pod    = "{apiVersion: v1, kind: Pod, name: a}"
		secret = "{apiVersion: v1, kind: Secret, name: a}"
		app    = "{apiVersion: apps/v1, kind: Deployment, name: hello}"
		set    = "{apiVersion: apps/v1, kind: StatefulSet, name: orders-postgresql}"
		nested = "{apiVersion: apps.example.com/v1, kind: WebApp, name: store-frontend}"
		leave  = " composes: leave spec.crossplane.resourceRefs out, Crossplane writes it"
	)
	webApp, cluster, shop := "{image: 'a:1', ", "{size: 1, version: '17', ", "{frontend: {image: 'f:1'}, backend: {image: 'b:1'}, "
	refs := func(of string) string { return "crossplane: {resourceRefs: [" + of + "]}}" }
	cases := map[string]struct {
		reason, kind, spec string
		by                 client.Client
		before, want       string
	}{
		"Node":         {reason: "Crossplane would watch all nodes.", kind: "WebApp", spec: webApp + refs(app+", "+node), want: "spec.crossplane.resourceRefs names v1 Node, which no WebApp" + leave},
		"Secret":       {reason: "What another kind is composed of is not this one's.", kind: "WebApp", spec: webApp + refs(secret), want: "spec.crossplane.resourceRefs names v1 Secret, which no WebApp" + leave},
		"Version":      {reason: "Each version is a watch of its own.", kind: "WebApp", spec: webApp + refs("{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, name: a}"), want: "spec.crossplane.resourceRefs names autoscaling/v1 HorizontalPodAutoscaler, which no WebApp" + leave},
		"Database":     {reason: "Databases too.", kind: "DatabaseCluster", spec: cluster + refs(pod), want: "spec.crossplane.resourceRefs names v1 Pod, which no DatabaseCluster" + leave},
		"Shop":         {reason: "And shops.", kind: "EcommercePlatform", spec: shop + refs(pod), want: "spec.crossplane.resourceRefs names v1 Pod, which no EcommercePlatform" + leave},
		"Restored":     {reason: "A backup tool creates a claim with all that was in it.", kind: "WebApp", spec: webApp + refs(app)},
		"RestoredDB":   {reason: "A database's too.", kind: "DatabaseCluster", spec: cluster + refs(set+", "+secret)},
		"RestoredShop": {reason: "And a shop's.", kind: "EcommercePlatform", spec: shop + refs(nested+", "+secret)},
		"None":         {reason: "An empty list is none.", kind: "WebApp", spec: webApp + refs("")},
		"Crossplane":   {reason: "Whatever Crossplane composes it writes down.", kind: "WebApp", spec: webApp + refs(node), by: g.composing},
		"Added":        {reason: "Later is no other time.", kind: "WebApp", before: webApp + refs(app), spec: webApp + refs(app+", "+node), want: "spec.crossplane.resourceRefs names v1 Node, which no WebApp" + leave},
		"Left":         {reason: "An older claim can be changed.", kind: "WebApp", before: webApp + refs(node), spec: "{image: 'a:2', " + refs(node)},
		"Removed":      {reason: "And cleaned.", kind: "WebApp", before: webApp + refs(node), spec: webApp + refs(app)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			u, by := claim(t, tc.kind, tc.spec), tc.by
			if by == nil {
				by = g.Client
			}
			try := func() error { return by.Create(t.Context(), u.DeepCopy(), client.DryRunAll) }
			if tc.before != "" {
				was := claim(t, tc.kind, tc.before)
				if err := g.composing.Create(t.Context(), was); err != nil {
					t.Fatal(err)
				}
				defer func() { _ = g.Delete(t.Context(), was) }()
				var spec map[string]any
				if err := yaml.Unmarshal([]byte(tc.spec), &spec); err != nil {
					t.Fatal(err)
				}
				try = func() error {
					next := &unstructured.Unstructured{Object: was.DeepCopy().Object}
					next.Object["spec"] = spec
					return by.Update(t.Context(), next, client.DryRunAll)
				}
			}
			planetest.Eventually(t, soon, "the API server judges it", func() error {
				if got := refusal(try()); got != tc.want {
					return fmt.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
				}
				return nil
			})
		})
	}
}
