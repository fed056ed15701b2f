// Package xrd answers, without a cluster, what the API server would say to a
// claim. It derives the CustomResourceDefinition from a
// CompositeResourceDefinition with Crossplane's own code, and defaults and
// validates with the API server's own: pruning, defaulting, OpenAPI schema,
// list-map keys and CEL rules, those that compare with the old object
// included.
//
// The package is pure: definitions come in as bytes, nothing is read from disk
// or from a cluster, and the objects it is given are never changed. It knows
// none of our kinds.
package xrd
