// Package functionstest simulates Crossplane for tests of the function, and holds the
// claims that they compose. A test plays a claim round by round: it edits the claim,
// lets Crossplane reconcile it, says how the composed objects are, and looks at what
// there is then.
//
// It knows no schemas: a claim is what the test writes, without defaults.
// internal/converge plays a claim with them, through to its end.
package functionstest
