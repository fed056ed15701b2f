// Package v1 holds the intents that an application team can claim on their
// own: DatabaseCluster and WebApp. They are composite resource definitions of
// Crossplane v2 (namespaced, no separate claim kind); the XRDs beside this
// folder are generated from these types.
//
// The package imports nothing else of Storeplane. Its types, and those of platform/v1, are
// no runtime.Objects: the function reads a claim from a protobuf Struct, and the provider
// reads it untyped.
//
// +groupName=apps.example.com
// +versionName=v1
package v1
