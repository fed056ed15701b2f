// Package xrd computes, without a cluster, how the API server answers a claim. It derives the
// CustomResourceDefinition from a CompositeResourceDefinition with Crossplane's own code, and
// defaults and validates with the API server's own: pruning, defaulting, OpenAPI schema, list-map
// keys and CEL rules, including those that compare with the old object.
//
// The package is pure: definitions are passed as bytes, nothing is read from disk or from a
// cluster, and the objects that it is given are never changed. It depends on none of Storeplane's
// kinds.
package xrd
