package state

import (
	"context"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/internal/converge"
	"github.com/storeplane/storeplane/internal/plan"
)

// withSettings is a state with other settings of the installation.
type withSettings struct {
	plan.State

	settings []*unstructured.Unstructured
}

// WithSettings returns a state in which these objects replace those of the cluster that have the
// same kinds and names. Without objects it returns the state itself.
func WithSettings(s plan.State, settings []*unstructured.Unstructured) plan.State {
	if len(settings) == 0 {
		return s
	}
	return &withSettings{State: s, settings: settings}
}

// Fetch implements plan.State.
func (s *withSettings) Fetch(ctx context.Context, sel *fnv1.ResourceSelector) ([]*unstructured.Unstructured, error) {
	for _, u := range s.settings {
		if converge.Selects(sel, u) {
			return []*unstructured.Unstructured{u}, nil
		}
	}
	return s.State.Fetch(ctx, sel)
}
