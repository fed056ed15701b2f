// Package functions serves every intent from one place. It is the edge between
// the function protocol and the intents: it finds the intent of a composite's
// kind, runs it, and turns all that can go wrong into results. What an intent
// becomes is decided in its own package and in internal/compose.
package functions
