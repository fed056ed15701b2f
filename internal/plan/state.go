package plan

import (
	"context"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A State is what a cluster contains, as far as a plan needs it.
type State interface {
	// Tree returns a claim, what it composes, and what the claims among that compose. It is empty
	// where the claim does not exist.
	Tree(ctx context.Context, claim Object) ([]*unstructured.Unstructured, error)

	// Claims returns the claims of some kinds that no other claim composes, in a namespace, or in
	// all where namespace is empty, sorted by kind, namespace and name.
	Claims(ctx context.Context, kinds []schema.GroupVersionKind, namespace string) ([]*unstructured.Unstructured, error)

	// Fetch returns the objects that a function requires.
	Fetch(ctx context.Context, selector *fnv1.ResourceSelector) ([]*unstructured.Unstructured, error)

	// Serves reports whether the cluster serves a kind.
	Serves(ctx context.Context, kind schema.GroupVersionKind) (bool, error)

	// Unknown lists in sentences what could not be read so far, sorted.
	Unknown() []string

	// Hides reports whether an object could not be read, and so may exist.
	Hides(o Object) bool

	// HidesSecrets reports whether there is a Secret that could not be read.
	HidesSecrets() bool
}
