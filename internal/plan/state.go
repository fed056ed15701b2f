package plan

import (
	"context"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A State is what a cluster has, as far as a plan needs it.
type State interface {
	// Tree returns a claim, what it composes, and what the claims among that compose.
	// It is empty where the claim does not exist.
	Tree(ctx context.Context, claim Object) ([]*unstructured.Unstructured, error)

	// Claims of some kinds that no other claim composes, in a namespace, or in all of them
	// where it is empty, by kind, namespace and name.
	Claims(ctx context.Context, kinds []schema.GroupVersionKind, namespace string) ([]*unstructured.Unstructured, error)

	// Fetch returns the objects that a function requires.
	Fetch(ctx context.Context, selector *fnv1.ResourceSelector) ([]*unstructured.Unstructured, error)

	// Serves tells whether the cluster serves a kind.
	Serves(ctx context.Context, kind schema.GroupVersionKind) (bool, error)

	// Unknown is what could not be read so far, in sentences, sorted.
	Unknown() []string

	// Hides tells whether an object may exist that could not be read.
	Hides(o Object) bool

	// HidesSecrets tells whether there is a Secret that could not be read.
	HidesSecrets() bool
}
