package render

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/storeplane/storeplane/internal/converge"
	"github.com/storeplane/storeplane/internal/xrd"
)

// A Renderer renders claims.
type Renderer struct {
	// Schemas are those of the kinds of claims.
	Schemas xrd.Schemas

	// Compositions are files, each with the Composition of one kind.
	Compositions fs.FS

	// Function is the function that all Compositions call, for what is rendered in process.
	Function converge.Runner

	// Written is called with a claim after each write of its status. May be nil.
	Written func(claim *unstructured.Unstructured)
}

// Input is a claim and the objects beside it.
type Input struct {
	Claim *unstructured.Unstructured

	// Observed are the objects that the claim composed so far.
	Observed []*unstructured.Unstructured

	// Cluster are the other objects: the installation's EnvironmentConfig.
	Cluster []*unstructured.Unstructured

	// Existing is the claim and the objects below it in a cluster, for Run.
	Existing []*unstructured.Unstructured

	// Fetch returns other objects of a cluster that a function requires by a requirement name, for
	// Run. May be nil.
	Fetch func(ctx context.Context, requirement string, selector *fnv1.ResourceSelector) ([]*unstructured.Unstructured, error)

	// Refused is called when a composed claim is refused, for Run. Without it Run ends with that
	// error. May be nil.
	Refused func(*converge.RefusedError)

	// Unchecked skips the validation of statuses by the claims' schemas, for Run.
	Unchecked bool

	// Serves reports whether a cluster serves a kind, for Run. May be nil: then it serves the kinds
	// of claims only.
	Serves func(ctx context.Context, kind schema.GroupVersionKind) (bool, error)
}

// Run composes a claim until nothing changes any more.
func (r *Renderer) Run(ctx context.Context, in Input) (*converge.Result, error) {
	_, result, err := r.Begin(ctx, in)
	return result, err
}

// Begin is Run for a claim that is edited afterwards, with the returned Simulation.
func (r *Renderer) Begin(ctx context.Context, in Input) (*converge.Simulation, *converge.Result, error) {
	s, err := r.simulator(in)
	if err != nil {
		return nil, nil, err
	}
	s.Existing, s.Fetch, s.Refused, s.Unchecked = in.Existing, in.Fetch, in.Refused, in.Unchecked
	if in.Serves != nil {
		if s.RequiredSchemas, err = requiredSchemas(ctx, r.Compositions, in.Serves); err != nil {
			return nil, nil, err
		}
	}
	return s.Begin(ctx, in.Claim)
}

// Converged renders all objects that a claim will ever have, in the order of their creation, as a
// YAML stream with a comment before the objects of each step. The error may come with a stream,
// when the claim does not become ready.
func (r *Renderer) Converged(ctx context.Context, in Input) ([]byte, error) {
	result, err := r.Run(ctx, in)
	if err != nil {
		return nil, err
	}
	out := &bytes.Buffer{}
	for _, step := range result.Steps {
		fmt.Fprintf(out, "# step %d: %s\n", step.Number, step.Claim)
		for _, ref := range step.Removed {
			fmt.Fprintf(out, "# removes %s\n", ref)
		}
		if err := write(out, step.Appeared, ""); err != nil {
			return nil, err
		}
		if err := write(out, step.Changed, "# changed\n"); err != nil {
			return nil, err
		}
	}
	if !result.Ready {
		message, _, _ := unstructured.NestedString(result.Claim.Object, "status", "message")
		return out.Bytes(), fmt.Errorf("%s %q does not get ready: %s", in.Claim.GetKind(), in.Claim.GetName(), message)
	}
	return out.Bytes(), nil
}

// Once renders in process what Crossplane composes of a claim in one reconciliation. The result is
// byte for byte that of `crossplane composition render`.
func (r *Renderer) Once(ctx context.Context, in Input) ([]byte, error) {
	s, err := r.simulator(in)
	if err != nil {
		return nil, err
	}
	objects, err := s.Once(ctx, in.Claim, in.Observed)
	if err != nil {
		return nil, err
	}
	out := &bytes.Buffer{}
	if err := write(out, objects, ""); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func (r *Renderer) simulator(in Input) (*converge.Simulator, error) {
	// There is no Composition for an unknown kind. The claim is not validated here, since a rule
	// for updates may accept what one for creations does not.
	if _, err := r.Schemas.For(in.Claim); err != nil {
		return nil, err
	}
	c, err := compositionFor(r.Compositions, in.Claim.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	return &converge.Simulator{
		Function:  r.Function,
		Schemas:   r.Schemas,
		Bootstrap: c.required(),
		Cluster:   in.Cluster,
		Pods:      converge.RunInstances,
		Written:   r.Written,
	}, nil
}

// write writes objects as documents of a YAML stream, each with a comment.
func write(out *bytes.Buffer, objects []*unstructured.Unstructured, comment string) error {
	for _, u := range objects {
		b, err := yaml.Marshal(u.Object)
		if err != nil {
			return fmt.Errorf("cannot print %s/%s: %w", u.GetKind(), u.GetName(), err)
		}
		out.WriteString("---\n" + comment)
		out.Write(b)
	}
	return nil
}
