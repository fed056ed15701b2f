package converge_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/apis"
	"github.com/storeplane/storeplane/internal/converge"
	"github.com/storeplane/storeplane/internal/xrd"
)

var schemas = func() xrd.Schemas {
	s, err := xrd.Load(apis.Definitions)
	if err != nil {
		panic(err)
	}
	return s
}()

// runner makes a function of a closure over its input.
type runner func(in input) *fnv1.RunFunctionResponse

func (r runner) RunFunction(_ context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	return r(input{req: req}), nil
}

type input struct{ req *fnv1.RunFunctionRequest }

func (i input) kind() string {
	return i.req.GetObserved().GetComposite().GetResource().GetFields()["kind"].GetStringValue()
}

// observed reports whether a component exists.
func (i input) observed(component string) bool {
	return i.req.GetObserved().GetResources()[component] != nil
}

// field returns the field at a path of a component, or nil.
func (i input) field(component string, path ...string) any {
	r := i.req.GetObserved().GetResources()[component]
	if r == nil {
		return nil
	}
	v, _, _ := unstructured.NestedFieldNoCopy(r.GetResource().AsMap(), path...)
	return v
}

// desired returns a response with the objects, which are JSON by component.
func desired(status string, ready bool, objects map[string]string) *fnv1.RunFunctionResponse {
	rsp := &fnv1.RunFunctionResponse{Desired: &fnv1.State{
		Composite: &fnv1.Resource{Resource: object(`{"status":` + status + `}`)},
		Resources: map[string]*fnv1.Resource{},
	}}
	for name, o := range objects {
		r := &fnv1.Resource{Resource: object(o), Ready: fnv1.Ready_READY_FALSE}
		if ready {
			r.Ready = fnv1.Ready_READY_TRUE
		}
		rsp.Desired.Resources[name] = r
	}
	return rsp
}

func object(s string) *structpb.Struct {
	out := &structpb.Struct{}
	if err := out.UnmarshalJSON([]byte(s)); err != nil {
		panic(err)
	}
	return out
}

func claim(s string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON([]byte(s)); err != nil {
		panic(err)
	}
	return u
}

const (
	webApp    = `{"apiVersion":"apps.example.com/v1","kind":"WebApp","metadata":{"name":"web","namespace":"team"},"spec":{"image":"nginx"}}`
	shop      = `{"apiVersion":"platform.example.com/v1","kind":"EcommercePlatform","metadata":{"name":"shop","namespace":"team"},"spec":{"frontend":{"image":"a"},"backend":{"image":"b"}}}`
	configMap = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web-config"},"data":{"a":"b"}}`
	job       = `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"web-migration"}}`
	deploy    = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web-web"},"spec":{"replicas":2}}`
	nested    = `{"apiVersion":"apps.example.com/v1","kind":"WebApp","metadata":{"name":"shop-frontend"},"spec":{"image":"a"}}`
	secret    = `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"web-secret"},"stringData":{"password":"x"}}`
)

// gated composes a Deployment once its Job has completed.
func gated(i input) *fnv1.RunFunctionResponse {
	objects := map[string]string{"config": configMap, "migration": job}
	if i.field("migration", "status", "succeeded") == nil {
		return desired(`{"phase":"Deploying"}`, false, objects)
	}
	objects["web"] = deploy
	available, _ := i.field("web", "status", "availableReplicas").(float64)
	if available < 2 {
		return desired(`{"phase":"Deploying"}`, false, objects)
	}
	return desired(fmt.Sprintf(`{"phase":"Running","availableReplicas":%v}`, available), true, objects)
}

// step is the part of a Step that the tests compare.
type step struct {
	Claim    string
	Appeared []string
	Changed  []string
	Removed  []string
}

func stepsOf(r *converge.Result) []step {
	if r == nil {
		return nil
	}
	out := make([]step, 0, len(r.Steps))
	for _, s := range r.Steps {
		o := step{Claim: s.Claim.String()}
		for _, u := range s.Appeared {
			o.Appeared = append(o.Appeared, u.GetKind()+"/"+u.GetName())
		}
		for _, u := range s.Changed {
			o.Changed = append(o.Changed, u.GetKind()+"/"+u.GetName())
		}
		for _, ref := range s.Removed {
			o.Removed = append(o.Removed, ref.String())
		}
		out = append(out, o)
	}
	return out
}

func TestRun(t *testing.T) {
	type want struct {
		Steps  []step
		Status map[string]any
		Err    string
	}
	cases := map[string]struct {
		reason   string
		function runner
		claim    string
		want     want
	}{
		"Gated": {
			reason:   "What waits for a Job appears in the step after the Job.",
			function: gated,
			claim:    webApp,
			want: want{
				Steps: []step{
					{Claim: "WebApp/web", Appeared: []string{"ConfigMap/web-config", "Job/web-migration"}},
					{Claim: "WebApp/web", Appeared: []string{"Deployment/web-web"}},
				},
				Status: map[string]any{"phase": "Running", "availableReplicas": int64(2)},
			},
		},
		"Nested": {
			reason: "A nested claim converges before the claim that composes it goes on, and is seen ready then.",
			function: func(i input) *fnv1.RunFunctionResponse {
				if i.kind() == "WebApp" {
					return gated(i)
				}
				objects := map[string]string{"frontend": nested}
				if i.field("frontend", "status", "phase") != "Running" {
					return desired(`{"phase":"Deploying"}`, false, objects)
				}
				objects["budget"] = `{"apiVersion":"policy/v1","kind":"PodDisruptionBudget","metadata":{"name":"shop-budget"}}`
				return desired(`{"phase":"Running"}`, true, objects)
			},
			claim: shop,
			want: want{
				Steps: []step{
					{Claim: "EcommercePlatform/shop", Appeared: []string{"WebApp/shop-frontend"}},
					{Claim: "WebApp/shop-frontend", Appeared: []string{"ConfigMap/web-config", "Job/web-migration"}},
					{Claim: "WebApp/shop-frontend", Appeared: []string{"Deployment/web-web"}},
					{Claim: "EcommercePlatform/shop", Appeared: []string{"PodDisruptionBudget/shop-budget"}},
				},
				Status: map[string]any{"phase": "Running"},
			},
		},
		"NestedWithoutAnything": {
			reason: "A nested claim that composes nothing is ready, as Crossplane has it.",
			function: func(i input) *fnv1.RunFunctionResponse {
				if i.kind() == "WebApp" {
					return desired(`{}`, true, nil)
				}
				return desired(`{}`, true, map[string]string{"frontend": nested})
			},
			claim: shop,
			want: want{
				Steps:  []step{{Claim: "EcommercePlatform/shop", Appeared: []string{"WebApp/shop-frontend"}}},
				Status: map[string]any{},
			},
		},
		"ReadsBackASecret": {
			reason: "What was written as stringData is read back as data.",
			function: func(i input) *fnv1.RunFunctionResponse {
				read, _ := i.field("secret", "data", "password").(string)
				return desired(fmt.Sprintf(`{"message":%q}`, read), true, map[string]string{"secret": secret})
			},
			claim: webApp,
			want: want{
				Steps:  []step{{Claim: "WebApp/web", Appeared: []string{"Secret/web-secret"}}},
				Status: map[string]any{"message": "eA=="},
			},
		},
		"ChangesAndRemoves": {
			reason: "A change of what exists and its removal are steps of their own.",
			function: func(i input) *fnv1.RunFunctionResponse {
				switch {
				case !i.observed("web"):
					return desired(`{}`, true, map[string]string{"web": deploy, "config": configMap})
				case i.observed("config"):
					return desired(`{}`, true, map[string]string{"web": `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web-web"},"spec":{"replicas":3}}`})
				default:
					return desired(`{}`, true, map[string]string{"web": deploy})
				}
			},
			claim: webApp,
			want: want{
				Steps: []step{
					{Claim: "WebApp/web", Appeared: []string{"ConfigMap/web-config", "Deployment/web-web"}},
					{Claim: "WebApp/web", Changed: []string{"Deployment/web-web"}, Removed: []string{"ConfigMap/web-config"}},
					{Claim: "WebApp/web", Changed: []string{"Deployment/web-web"}},
				},
				Status: map[string]any{},
			},
		},
		"InvalidClaim": {
			reason:   "A claim that its definition refuses is not played at all.",
			function: gated,
			claim:    `{"apiVersion":"apps.example.com/v1","kind":"WebApp","metadata":{"name":"web"},"spec":{"image":"nginx","replicas":0}}`,
			want:     want{Err: `WebApp "web" is invalid: spec.replicas: Invalid value: 0: should be greater than or equal to 1`},
		},
		"Fatal": {
			reason: "A fatal result ends it, in the function's words.",
			function: func(input) *fnv1.RunFunctionResponse {
				return &fnv1.RunFunctionResponse{Results: []*fnv1.Result{{Severity: fnv1.Severity_SEVERITY_FATAL, Message: "no such version"}}}
			},
			claim: webApp,
			want:  want{Err: `WebApp/web is refused: no such version`},
		},
		"NotAccepted": {
			reason: "A claim that the function does not accept is refused, though the result is no fatal one.",
			function: func(input) *fnv1.RunFunctionResponse {
				rsp := desired(`{"phase":"Failed"}`, false, nil)
				msg := "no such version"
				rsp.Conditions = []*fnv1.Condition{{Type: "Accepted", Status: fnv1.Status_STATUS_CONDITION_FALSE, Reason: "Invalid", Message: &msg}}
				return rsp
			},
			claim: webApp,
			want:  want{Err: `WebApp/web is refused: no such version`},
		},
		"InvalidNested": {
			reason: "A nested claim is validated as an API server would.",
			function: func(input) *fnv1.RunFunctionResponse {
				return desired(`{}`, false, map[string]string{"frontend": `{"apiVersion":"apps.example.com/v1","kind":"WebApp","metadata":{"name":"shop-frontend"},"spec":{"image":"a","replica":1}}`})
			},
			claim: shop,
			want:  want{Err: `cannot apply component frontend of EcommercePlatform/shop: WebApp "shop-frontend" is invalid: unknown field "spec.replica"`},
		},
		"InvalidStatus": {
			reason: "A status that the definition lacks would be refused by an API server.",
			function: func(input) *fnv1.RunFunctionResponse {
				return desired(`{"weather":"fine"}`, true, nil)
			},
			claim: webApp,
			want:  want{Err: `cannot write status of WebApp/web: WebApp "web" is invalid: unknown field "status.weather"`},
		},
		"NoName": {
			reason: "An object without a name would get one that cannot be predicted.",
			function: func(input) *fnv1.RunFunctionResponse {
				return desired(`{}`, true, map[string]string{"web": `{"apiVersion":"apps/v1","kind":"Deployment"}`})
			},
			claim: webApp,
			want:  want{Err: `cannot compose WebApp/web: component web has no name: Crossplane would make one up, which cannot be predicted`},
		},
		"Collision": {
			reason: "Two components that are one object would take it from each other for ever.",
			function: func(input) *fnv1.RunFunctionResponse {
				return desired(`{}`, true, map[string]string{"a": configMap, "b": configMap})
			},
			claim: webApp,
			want:  want{Err: `cannot apply component b of WebApp/web: ConfigMap/web-config is component a already`},
		},
		"DoesNotSettle": {
			reason: "A function that never comes to rest is an error that says what moves.",
			function: func(i input) *fnv1.RunFunctionResponse {
				n, _ := i.field("web", "spec", "replicas").(float64)
				return desired(`{}`, true, map[string]string{"web": fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web-web"},"spec":{"replicas":%v}}`, n+1)})
			},
			claim: webApp,
			want: want{Err: `cannot settle WebApp/web: after 50 rounds these still change:
  Deployment/web-web metadata.generation
  Deployment/web-web spec.replicas
  Deployment/web-web status.availableReplicas
  Deployment/web-web status.observedGeneration
  Deployment/web-web status.readyReplicas
  Deployment/web-web status.replicas
  Deployment/web-web status.updatedReplicas`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &converge.Simulator{Function: tc.function, Schemas: schemas}
			r, err := s.Run(t.Context(), claim(tc.claim))

			got := want{Steps: stepsOf(r)}
			if err != nil {
				got.Err = err.Error()
			}
			if r != nil {
				got.Status, _, _ = unstructured.NestedMap(r.Claim.Object, "status")
				delete(got.Status, "conditions")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nRun(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRunRequiredResources(t *testing.T) {
	settings := claim(`{"apiVersion":"apiextensions.crossplane.io/v1beta1","kind":"EnvironmentConfig","metadata":{"name":"storeplane"},"data":{"a":"b"}}`)
	byName := &fnv1.ResourceSelector{
		ApiVersion: "apiextensions.crossplane.io/v1beta1", Kind: "EnvironmentConfig",
		Match: &fnv1.ResourceSelector_MatchName{MatchName: "storeplane"},
	}
	calls := 0
	s := &converge.Simulator{
		Schemas:   schemas,
		Cluster:   []*unstructured.Unstructured{settings},
		Bootstrap: map[string]*fnv1.ResourceSelector{"settings": byName},
		Function: runner(func(i input) *fnv1.RunFunctionResponse {
			calls++
			items := i.req.GetRequiredResources()["settings"].GetItems()
			asked := i.req.GetRequiredResources()["asked"].GetItems()
			rsp := desired(fmt.Sprintf(`{"message":"%d bootstrapped, %d asked for"}`, len(items), len(asked)), true, nil)
			rsp.Requirements = &fnv1.Requirements{Resources: map[string]*fnv1.ResourceSelector{"asked": {
				ApiVersion: "apps.example.com/v1", Kind: "WebApp",
				Match: &fnv1.ResourceSelector_MatchLabels{MatchLabels: &fnv1.MatchLabels{}},
			}}}
			return rsp
		}),
	}
	r, err := s.Run(t.Context(), claim(webApp))
	if err != nil {
		t.Fatal(err)
	}
	got, _, _ := unstructured.NestedString(r.Claim.Object, "status", "message")
	if diff := cmp.Diff("1 bootstrapped, 1 asked for", got); diff != "" {
		t.Errorf("\nA function gets what its step requires and what it asks for.\nRun(...): -want, +got:\n%s", diff)
	}
	// Two rounds, each with two calls, since the function requires a resource.
	if diff := cmp.Diff(4, calls); diff != "" {
		t.Errorf("\nCrossplane calls again once its answer is there.\nRun(...): -want, +got calls:\n%s", diff)
	}
}

func TestCall(t *testing.T) {
	cases := map[string]struct {
		reason   string
		requires int // the number of resources that are required, one after the other
		fatal    bool
		calls    int
		err      bool
	}{
		"Nothing": {reason: "A function that requires nothing is called once.", calls: 1},
		"Once":    {reason: "One that requires the same again has it.", requires: 1, calls: 2},
		"Most":    {reason: "Crossplane calls again five times.", requires: 5, calls: 6},
		"TooMany": {reason: "After that it gives up.", requires: 9, calls: 6, err: true},
		"Fatal":   {reason: "A fatal result is the last one.", requires: 1, fatal: true, calls: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			calls := 0
			function := runner(func(input) *fnv1.RunFunctionResponse {
				calls++
				rsp := &fnv1.RunFunctionResponse{}
				if tc.requires > 0 {
					n := min(calls, tc.requires)
					rsp.Requirements = &fnv1.Requirements{Resources: map[string]*fnv1.ResourceSelector{strconv.Itoa(n): {}}}
				}
				if tc.fatal {
					rsp.Results = []*fnv1.Result{{Severity: fnv1.Severity_SEVERITY_FATAL}}
				}
				return rsp
			})
			fetch := func(_ string, _ *fnv1.ResourceSelector) (*fnv1.Resources, error) { return &fnv1.Resources{}, nil }
			_, err := converge.Call(t.Context(), function, &fnv1.RunFunctionRequest{}, fetch)
			if calls != tc.calls || (err != nil) != tc.err {
				t.Errorf("%s\nCall(...): want %d calls and an error %t, got %d calls and %v", tc.reason, tc.calls, tc.err, calls, err)
			}
		})
	}
}

func TestRunMetadata(t *testing.T) {
	s := &converge.Simulator{Schemas: schemas, Function: runner(func(i input) *fnv1.RunFunctionResponse {
		if i.kind() == "WebApp" {
			return desired(`{}`, false, map[string]string{"config": configMap})
		}
		return desired(`{}`, true, map[string]string{"frontend": nested})
	})}
	r, err := s.Run(t.Context(), claim(shop))
	if err != nil {
		t.Fatal(err)
	}
	want := claim(`{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"b"},"metadata":{
		"name":"web-config","namespace":"team",
		"annotations":{"crossplane.io/composition-resource-name":"config"},
		"labels":{"crossplane.io/composite":"shop"},
		"ownerReferences":[{"apiVersion":"apps.example.com/v1","kind":"WebApp","name":"shop-frontend","uid":"` + string(r.Claims[1].GetUID()) + `","controller":true,"blockOwnerDeletion":true}]}}`)
	if diff := cmp.Diff(want, r.Steps[1].Appeared[0]); diff != "" {
		t.Errorf("\nWhat a nested claim composes is owned by it and labelled with the first claim's name.\nRun(...): -want, +got:\n%s", diff)
	}

	wantConditions := []any{
		map[string]any{"type": "Ready", "status": "False", "reason": "Creating", "message": "Unready resources: config"},
		map[string]any{"type": "Responsive", "status": "True", "reason": "WatchCircuitClosed"},
		map[string]any{"type": "Synced", "status": "True", "reason": "ReconcileSuccess"},
	}
	for _, c := range wantConditions {
		c.(map[string]any)["lastTransitionTime"] = "2024-01-01T00:00:00Z"
		c.(map[string]any)["observedGeneration"] = int64(1)
	}
	got, _, _ := unstructured.NestedSlice(r.Claims[1].Object, "status", "conditions")
	if diff := cmp.Diff(wantConditions, got); diff != "" {
		t.Errorf("\nA claim has Crossplane's own conditions.\nRun(...): -want, +got:\n%s", diff)
	}
}
