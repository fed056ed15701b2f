// Package structs converts between Go's Kubernetes types and the protobuf
// Structs of the function protocol, in one step each way.
//
// The usual way goes through JSON or map[string]any twice. A function spends
// most of its time there, so this package walks the Go value once, with a plan
// for each type that is made the first time the type is met. It writes what
// encoding/json would, with three differences that server-side apply wants: a
// nil value is left out instead of being null, an empty struct whose tag says
// omitempty is left out, and an object's status is left out.
//
// It refuses maps whose keys are not strings, channels, functions and complex
// numbers, as encoding/json does.
package structs
