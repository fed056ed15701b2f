package cli

import (
	"strings"
	"testing"

	"github.com/storeplane/storeplane/test/plane"
	"github.com/storeplane/storeplane/test/plane/planetest"
)

// TestPlanNamespace: a dry run of files that also create the namespace of their claim refuses
// nothing, since the pipeline applies both.
func TestPlanNamespace(t *testing.T) {
	p := planetest.Start(t, false)
	planetest.Define(t, planetest.Client(t, p.Config(plane.Admin)))
	kubeconfig, err := p.Kubeconfig(plane.Admin)
	if err != nil {
		t.Fatal(err)
	}
	namespace := "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n---\n"
	cases := map[string]struct {
		reason string
		stdin  string
		code   int
		want   string
	}{
		"Created": {
			reason: "The files create the namespace.",
			stdin:  namespace + webApp,
			code:   ExitChanges, want: "? whether the API server accepts the claim and its objects: Namespace shop does not exist yet, so nothing could be tried\n",
		},
		"Other": {
			reason: "The files create another namespace.",
			stdin:  strings.Replace(namespace, "shop", "other", 1) + webApp,
			code:   ExitRefused, want: "! WebApp web: namespaces \"shop\" not found\n",
		},
		"OtherKind": {
			reason: "What has the name of the namespace is of another kind.",
			stdin:  strings.Replace(namespace, "Namespace", "ServiceAccount", 1) + webApp,
			code:   ExitRefused, want: "! WebApp web: namespaces \"shop\" not found\n",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := runs(t, tc.stdin, "plan", "--kubeconfig", kubeconfig, "--server-dry-run", "-")
			if got.Code != tc.code || strings.Count(got.Out, tc.want) != 1 {
				t.Errorf("%s\nwant exit code %d and %q, got %+v", tc.reason, tc.code, tc.want, got)
			}
		})
	}
}
