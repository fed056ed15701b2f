package converge

import (
	"context"
	"fmt"
	"maps"
	"slices"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// calls is how often Crossplane calls a function that requires something else each time.
const calls = 6

// Call calls a function as Crossplane does (FetchingFunctionRunner of crossplane/crossplane
// v2.4.0): again, with what it requires, until it requires nothing new. The function gets copies of
// the request, since Call changes it.
func Call(ctx context.Context, function Runner, req *fnv1.RunFunctionRequest, fetch func(requirement string, selector *fnv1.ResourceSelector) (*fnv1.Resources, error)) (*fnv1.RunFunctionResponse, error) {
	return call(ctx, copying{function}, req, fetch)
}

// copying gives a function a copy of each request.
type copying struct{ Runner }

// RunFunction implements Runner.
func (c copying) RunFunction(ctx context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	return c.Runner.RunFunction(ctx, proto.CloneOf(req))
}

func call(ctx context.Context, function Runner, req *fnv1.RunFunctionRequest, fetch func(requirement string, selector *fnv1.ResourceSelector) (*fnv1.Resources, error)) (*fnv1.RunFunctionResponse, error) {
	bootstrap := req.GetRequiredResources()
	var required *fnv1.Requirements
	for range calls {
		rsp, err := function.RunFunction(ctx, req)
		if err != nil {
			return nil, err
		}
		if IsFatal(rsp) || proto.Equal(required, rsp.GetRequirements()) {
			return rsp, nil
		}
		required, req.RequiredResources = rsp.GetRequirements(), map[string]*fnv1.Resources{}
		maps.Copy(req.GetRequiredResources(), bootstrap)
		for name, sel := range required.GetResources() {
			if req.RequiredResources[name], err = fetch(name, sel); err != nil {
				return nil, fmt.Errorf("cannot fetch required resource %s: %w", name, err)
			}
		}
	}
	return nil, fmt.Errorf("the function requires other resources after %d calls: %v", calls, required)
}

// IsFatal reports whether a response has a fatal result, so that Crossplane applies nothing of it.
func IsFatal(rsp *fnv1.RunFunctionResponse) bool {
	return slices.ContainsFunc(rsp.GetResults(), func(r *fnv1.Result) bool { return r.GetSeverity() == fnv1.Severity_SEVERITY_FATAL })
}

// call calls the function for a claim with its observed objects.
func (p *play) call(ctx context.Context, claim *object) (*fnv1.RunFunctionResponse, error) {
	claim.read = &inputs{own: p.world.own(claim), required: map[string]required{}}
	fetch := func(name string, sel *fnv1.ResourceSelector) (*fnv1.Resources, error) {
		claim.read.required[name] = required{selector: sel, selected: p.world.selected(sel)}
		return p.fetch(ctx, name, sel)
	}
	req, err := p.request(claim, fetch)
	if err != nil {
		return nil, err
	}
	function := p.Function
	if !p.Unchecked {
		function = copying{function}
	}
	return call(ctx, function, req, fetch)
}

func (p *play) request(claim *object, fetch func(string, *fnv1.ResourceSelector) (*fnv1.Resources, error)) (*fnv1.RunFunctionRequest, error) {
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
		RequiredSchemas:   p.RequiredSchemas,
	}
	for _, o := range p.world.composedBy(claim) {
		s, err := toStruct(o.live)
		if err != nil {
			return nil, err
		}
		req.Observed.Resources[o.component] = &fnv1.Resource{Resource: s}
	}
	for name, sel := range p.Bootstrap {
		if req.RequiredResources[name], err = fetch(name, sel); err != nil {
			return nil, fmt.Errorf("cannot fetch required resource %s: %w", name, err)
		}
	}
	return req, nil
}

// fetch returns the objects that a selector selects, of the world and of the cluster outside of it.
func (p *play) fetch(ctx context.Context, requirement string, sel *fnv1.ResourceSelector) (*fnv1.Resources, error) {
	all := p.world.all()
	if p.Fetch != nil {
		beside, err := p.Fetch(ctx, requirement, sel)
		if err != nil {
			return nil, err
		}
		for _, u := range beside {
			// An object that the claim composed before and does not compose now has been removed.
			if existing(all, u) == nil && existing(p.Existing, u) == nil {
				all = append(all, u)
				p.world.beside[keyOf(u)] = u
			}
		}
	}
	out := &fnv1.Resources{}
	for _, u := range all {
		if !Selects(sel, u) {
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

// Selects reports whether a selector selects an object.
func Selects(sel *fnv1.ResourceSelector, u *unstructured.Unstructured) bool {
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
