package bench

import (
	"context"
	"fmt"
	"os"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/storeplane/storeplane/apis"
	"github.com/storeplane/storeplane/functions"
	"github.com/storeplane/storeplane/internal/converge"
	"github.com/storeplane/storeplane/internal/xrd"
)

// claims are the files of the measured claims, by name.
var claims = map[string]string{
	"production-shop": "../../examples/shop/production.yaml",
	"20-resources":    "testdata/twenty.yaml",
}

// newRequest returns the function's request for a claim, with all of its composed resources
// observed or none. If observed, the claim has become stable.
func newRequest(name string, observed bool) (*fnv1.RunFunctionRequest, error) {
	b, err := os.ReadFile(claims[name])
	if err != nil {
		return nil, err
	}
	if b, err = yaml.YAMLToJSON(b); err != nil {
		return nil, err
	}
	claim := &unstructured.Unstructured{}
	if err := claim.UnmarshalJSON(b); err != nil {
		return nil, err
	}
	schemas, err := xrd.Load(apis.Definitions)
	if err != nil {
		return nil, err
	}
	if claim, err = schemas.Default(claim); err != nil {
		return nil, err
	}
	req := &fnv1.RunFunctionRequest{Meta: &fnv1.RequestMeta{Tag: "bench"}, Observed: &fnv1.State{Resources: map[string]*fnv1.Resource{}}}
	if observed {
		sim := &converge.Simulator{Function: functions.New(functions.WithReview()), Schemas: schemas, Pods: converge.RunInstances}
		result, err := sim.Run(context.Background(), claim)
		if err != nil {
			return nil, err
		}
		claim = result.Claim
		for component, u := range result.Resources[converge.Ref{Kind: claim.GetKind(), Name: claim.GetName()}] {
			s, err := structpb.NewStruct(normal(u.Object))
			if err != nil {
				return nil, err
			}
			req.Observed.Resources[component] = &fnv1.Resource{Resource: s}
		}
	}
	s, err := structpb.NewStruct(normal(claim.Object))
	if err != nil {
		return nil, err
	}
	req.Observed.Composite = &fnv1.Resource{Resource: s}
	return req, answer(req)
}

// maxRounds is how often Crossplane calls a function that requires more each time.
// https://github.com/crossplane/crossplane/blob/v2.4.0/internal/xfn/required_resources.go#L35-L38
const maxRounds = 5

// answer adds empty results for the required resources that the function requests, until it requests
// no more. So the measured call is the one that composes the claim, also for a new claim.
func answer(req *fnv1.RunFunctionRequest) error {
	req.RequiredResources = map[string]*fnv1.Resources{}
	for range maxRounds {
		rsp, err := functions.New().RunFunction(context.Background(), req)
		if err != nil {
			return err
		}
		before := len(req.GetRequiredResources())
		for name := range rsp.GetRequirements().GetResources() {
			req.RequiredResources[name] = &fnv1.Resources{}
		}
		if len(req.GetRequiredResources()) > before {
			continue
		}
		if len(rsp.GetDesired().GetResources()) == 0 {
			return fmt.Errorf("the function composes nothing: %v", rsp.GetResults())
		}
		return nil
	}
	return fmt.Errorf("the function requires more after %d calls", maxRounds)
}

// normal converts m to types that structpb accepts, which does not include lists of maps.
func normal(m map[string]any) map[string]any {
	b, err := yaml.Marshal(m)
	if err != nil {
		panic(err)
	}
	out := map[string]any{}
	if err := yaml.Unmarshal(b, &out); err != nil {
		panic(err)
	}
	return out
}

func mustRequest(b *testing.B, name string, observed bool) *fnv1.RunFunctionRequest {
	b.Helper()
	req, err := newRequest(name, observed)
	if err != nil {
		b.Fatal(fmt.Errorf("cannot make the request for %s: %w", name, err))
	}
	return req
}
