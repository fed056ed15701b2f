package render

import (
	"fmt"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/guardrails"
	"github.com/storeplane/storeplane/internal/settings"
	"github.com/storeplane/storeplane/internal/waves"
)

// Policy checks a claim against the guardrails and returns a PolicyReport. An error comes with the
// report when the claim breaks one, or its definition refuses it.
func (r *Renderer) Policy(in Input) ([]byte, error) {
	defaulted, err := r.Schemas.Default(in.Claim)
	if err != nil {
		return nil, err
	}
	invalid := r.Schemas.Validate(in.Claim)
	report, err := Guard(defaulted, in.Cluster)
	switch {
	case err != nil && invalid != nil:
		// A claim that cannot be read is invalid, and the error of its validation names the place.
		return nil, invalid
	case err != nil:
		return nil, err
	}
	out, err := yaml.Marshal(report)
	if err != nil {
		return nil, fmt.Errorf("cannot print the policy report: %w", err)
	}
	switch {
	case invalid != nil:
		return out, invalid
	case report.Summary.Fail == 1:
		return out, fmt.Errorf("%s %q breaks a guardrail", in.Claim.GetKind(), in.Claim.GetName())
	case report.Summary.Fail > 1:
		return out, fmt.Errorf("%s %q breaks guardrails in %d places", in.Claim.GetKind(), in.Claim.GetName(), report.Summary.Fail)
	}
	return out, nil
}

// Guard checks a claim, with its defaults, against the guardrails in the installation's settings,
// which are among the objects of the cluster.
func Guard(claim *unstructured.Unstructured, cluster []*unstructured.Unstructured) (*guardrails.Report, error) {
	req := &fnv1.RunFunctionRequest{Observed: &fnv1.State{Composite: &fnv1.Resource{}}}
	var err error
	if req.Observed.Composite.Resource, err = asStruct(claim); err != nil {
		return nil, err
	}
	for _, u := range cluster {
		if u.GetKind() != waves.SettingsKind.Kind || u.GetName() != waves.SettingsName {
			continue
		}
		s, err := asStruct(u)
		if err != nil {
			return nil, err
		}
		req.RequiredResources = map[string]*fnv1.Resources{compose.SettingsRequirement: {Items: []*fnv1.Resource{{Resource: s}}}}
	}
	c := compose.NewClaim(req, nil)
	s, err := settings.Read(c, settings.Settings{})
	if err != nil {
		return nil, err
	}
	subject, err := guardrails.Of(c)
	if err != nil {
		return nil, err
	}
	scope := corev1.ObjectReference{APIVersion: claim.GetAPIVersion(), Kind: claim.GetKind(), Namespace: claim.GetNamespace(), Name: claim.GetName()}
	return guardrails.NewReport(scope, guardrails.Check(subject, s.Policy)), nil
}

func asStruct(u *unstructured.Unstructured) (*structpb.Struct, error) {
	b, err := u.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("cannot read %s %q: %w", u.GetKind(), u.GetName(), err)
	}
	s := &structpb.Struct{}
	if err := s.UnmarshalJSON(b); err != nil {
		return nil, fmt.Errorf("cannot read %s %q: %w", u.GetKind(), u.GetName(), err)
	}
	return s, nil
}
