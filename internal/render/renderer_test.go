package render_test

import (
	"context"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/storeplane/storeplane/apis"
	"github.com/storeplane/storeplane/compositions"
	"github.com/storeplane/storeplane/internal/render"
	"github.com/storeplane/storeplane/internal/xrd"
)

var schemas = func() xrd.Schemas {
	s, err := xrd.Load(apis.Definitions)
	if err != nil {
		panic(err)
	}
	return s
}()

type runner func(req *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse

func (r runner) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	return r(req), nil
}

func object(s string) *structpb.Struct {
	out := &structpb.Struct{}
	if err := out.UnmarshalJSON([]byte(s)); err != nil {
		panic(err)
	}
	return out
}

const claim = `
apiVersion: apps.example.com/v1
kind: WebApp
metadata:
  name: web
  namespace: team
  uid: "1"
spec:
  image: nginx
`

// composing composes a ConfigMap first and a Secret after it.
func composing(ready fnv1.Ready) runner {
	return func(req *fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
		rsp := &fnv1.RunFunctionResponse{Desired: &fnv1.State{
			Composite: &fnv1.Resource{Resource: object(`{"status":{"phase":"Running","message":"Waiting for rain"}}`)},
			Resources: map[string]*fnv1.Resource{"a": {Ready: ready, Resource: object(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web-a"}}`)}},
		}}
		if len(req.GetObserved().GetResources()) > 0 {
			rsp.Desired.Resources["b"] = &fnv1.Resource{Ready: ready, Resource: object(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"web-b"}}`)}
			rsp.Desired.Resources["a"].Resource = object(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web-a"},"data":{"x":"y"}}`)
		}
		return rsp
	}
}

const metadata = `
    crossplane.io/composite: web
  name: web-a
  namespace: team
  ownerReferences:
  - apiVersion: apps.example.com/v1
    blockOwnerDeletion: true
    controller: true
    kind: WebApp
    name: web
    uid: "1"
`

func configMap(data string) string {
	return `apiVersion: v1
` + data + `kind: ConfigMap
metadata:
  annotations:
    crossplane.io/composition-resource-name: a
  labels:` + metadata
}

const secret = `apiVersion: v1
kind: Secret
metadata:
  annotations:
    crossplane.io/composition-resource-name: b
  labels:
    crossplane.io/composite: web
  name: web-b
  namespace: team
  ownerReferences:
  - apiVersion: apps.example.com/v1
    blockOwnerDeletion: true
    controller: true
    kind: WebApp
    name: web
    uid: "1"
`

func TestConverged(t *testing.T) {
	type want struct {
		Out string
		Err string
	}
	stream := "# step 1: WebApp/web\n---\n" + configMap("") +
		"# step 2: WebApp/web\n---\n" + secret +
		"---\n# changed\n" + configMap("data:\n  x: \"y\"\n")
	cases := map[string]struct {
		reason   string
		function runner
		claim    string
		want     want
	}{
		"Ready": {
			reason:   "Each step's objects follow the step's comment, and those that change are marked.",
			function: composing(fnv1.Ready_READY_TRUE),
			claim:    claim,
			want:     want{Out: stream},
		},
		"NotReady": {
			reason:   "A claim that does not get ready is printed as far as it got, and is an error.",
			function: composing(fnv1.Ready_READY_FALSE),
			claim:    claim,
			want:     want{Out: stream, Err: `WebApp "web" does not get ready: Waiting for rain`},
		},
		"Invalid": {
			reason:   "An invalid claim prints nothing.",
			function: composing(fnv1.Ready_READY_TRUE),
			claim:    "apiVersion: apps.example.com/v1\nkind: WebApp\nmetadata: {name: web}\nspec: {image: nginx, port: 0}\n",
			want:     want{Err: `WebApp "web" is invalid: spec.port: Invalid value: 0: should be greater than or equal to 1`},
		},
		"UnknownKind": {
			reason:   "What is no claim of ours is told what would be.",
			function: composing(fnv1.Ready_READY_TRUE),
			claim:    "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n",
			want:     want{Err: `cannot find a definition of kind "Pod" in "v1": there are DatabaseCluster (apps.example.com/v1), EcommercePlatform (platform.example.com/v1), WebApp (apps.example.com/v1)`},
		},
		"Refused": {
			reason: "A claim that the function refuses prints nothing.",
			function: func(*fnv1.RunFunctionRequest) *fnv1.RunFunctionResponse {
				return &fnv1.RunFunctionResponse{Results: []*fnv1.Result{{Severity: fnv1.Severity_SEVERITY_FATAL, Message: "spec.image must be of an approved registry"}}}
			},
			claim: claim,
			want:  want{Err: "WebApp/web is refused: spec.image must be of an approved registry"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, err := render.LoadClaim(file(t, tc.claim))
			if err != nil {
				t.Fatal(err)
			}
			r := &render.Renderer{Schemas: schemas, Compositions: compositions.Files, Function: tc.function}
			out, err := r.Converged(t.Context(), render.Input{Claim: c})
			got := want{Out: string(out)}
			if err != nil {
				got.Err = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nConverged(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestToolsCheck(t *testing.T) {
	cases := map[string]struct {
		reason string
		tools  render.Tools
		want   string
	}{
		"NoCLI": {
			reason: "Who has no tools is told how to get them.",
			want:   "cannot render without the crossplane command line tool: set CROSSPLANE_CLI to its path, or run make render, which builds it",
		},
		"NoSuchCore": {
			reason: "A path that leads nowhere is named.",
			tools:  render.Tools{CLI: "/bin/sh", Core: "/no/such/crossplane"},
			want:   `cannot render without Crossplane's own binary: exec: "/no/such/crossplane": stat /no/such/crossplane: no such file or directory`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.tools.Check().Error()); diff != "" {
				t.Errorf("\n%s\nCheck(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
