// Package structs converts between Go's Kubernetes types and the protobuf Structs of the function
// protocol, in one step each way.
//
// The usual conversion goes through JSON or map[string]any twice. A function spends most of its
// time there, so this package walks the Go value once, with a plan for each type that is created
// when the type is first used. It writes what encoding/json would, with three differences that
// server-side apply requires: a nil field is left out instead of being null, an empty struct whose
// tag contains omitempty is left out, and so is an object's status.
//
// It refuses maps whose keys are not strings, and, as encoding/json does, channels, functions and
// complex numbers.
package structs
