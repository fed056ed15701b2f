package converge

import (
	"context"
	"fmt"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// fetches is how often Crossplane calls a function again that asks for more
// resources.
const fetches = 5

// call the function for a claim with what is observed of it, and again as long
// as it asks for resources.
func (p *play) call(ctx context.Context, claim *object) (*fnv1.RunFunctionResponse, error) {
	req, err := p.request(claim)
	if err != nil {
		return nil, err
	}
	var asked map[string]*fnv1.ResourceSelector
	for range fetches {
		rsp, err := p.Function.RunFunction(ctx, req)
		if err != nil {
			return nil, err
		}
		want := rsp.GetRequirements().GetResources()
		if same(asked, want) {
			return rsp, nil
		}
		asked = want
		for name, sel := range want {
			if req.RequiredResources[name], err = p.fetch(sel); err != nil {
				return nil, fmt.Errorf("cannot fetch required resource %s: %w", name, err)
			}
		}
	}
	return nil, fmt.Errorf("the function asks for other resources after %d calls", fetches)
}

func (p *play) request(claim *object) (*fnv1.RunFunctionRequest, error) {
	xr, err := toStruct(claim.live)
	if err != nil {
		return nil, err
	}
	req := &fnv1.RunFunctionRequest{
		Meta: &fnv1.RequestMeta{Capabilities: []fnv1.Capability{
			fnv1.Capability_CAPABILITY_CAPABILITIES,
			fnv1.Capability_CAPABILITY_REQUIRED_RESOURCES,
			fnv1.Capability_CAPABILITY_CREDENTIALS,
			fnv1.Capability_CAPABILITY_CONDITIONS,
			fnv1.Capability_CAPABILITY_REQUIRED_SCHEMAS,
		}},
		Observed:          &fnv1.State{Composite: &fnv1.Resource{Resource: xr}, Resources: map[string]*fnv1.Resource{}},
		Desired:           &fnv1.State{},
		RequiredResources: map[string]*fnv1.Resources{},
	}
	for _, o := range p.world.composedBy(claim) {
		s, err := toStruct(o.live)
		if err != nil {
			return nil, err
		}
		req.Observed.Resources[o.component] = &fnv1.Resource{Resource: s}
	}
	for name, sel := range p.Bootstrap {
		if req.RequiredResources[name], err = p.fetch(sel); err != nil {
			return nil, fmt.Errorf("cannot fetch required resource %s: %w", name, err)
		}
	}
	return req, nil
}

// fetch the resources of the world that a selector means.
func (p *play) fetch(sel *fnv1.ResourceSelector) (*fnv1.Resources, error) {
	out := &fnv1.Resources{}
	for _, u := range p.world.all() {
		if !selects(sel, u) {
			continue
		}
		s, err := toStruct(u)
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, &fnv1.Resource{Resource: s})
	}
	return out, nil
}

func (w *world) all() []*unstructured.Unstructured {
	out := make([]*unstructured.Unstructured, 0, len(w.others)+len(w.objects))
	out = append(out, w.others...)
	for _, o := range w.objects {
		out = append(out, o.live)
	}
	return out
}

func selects(sel *fnv1.ResourceSelector, u *unstructured.Unstructured) bool {
	if u.GetAPIVersion() != sel.GetApiVersion() || u.GetKind() != sel.GetKind() {
		return false
	}
	if sel.Namespace != nil && u.GetNamespace() != sel.GetNamespace() {
		return false
	}
	if labels := sel.GetMatchLabels(); labels != nil {
		for k, v := range labels.GetLabels() {
			if got, ok := u.GetLabels()[k]; !ok || got != v {
				return false
			}
		}
		return true
	}
	return sel.GetMatchName() == "" || u.GetName() == sel.GetMatchName()
}

func same(a, b map[string]*fnv1.ResourceSelector) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if !proto.Equal(v, b[k]) {
			return false
		}
	}
	return true
}
