// Package functions serves every intent from one place. It is the edge between the
// function protocol and the intents: it finds the intent of a composite's kind, runs it,
// and turns every failure into a result. What an intent composes is decided in its own
// package and in internal/compose.
package functions
