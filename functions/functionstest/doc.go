// Package functionstest simulates Crossplane for tests of the function, and contains the claims
// that they compose. A test runs a claim round by round: it edits the claim, lets Crossplane
// reconcile it, sets the status of the composed objects, and checks the objects that exist then.
//
// Cluster simulates Crossplane's controllers by events instead, for a claim and all that it composes, to
// count passes and requests.
//
// It has no schemas: a claim is what the test writes, without defaults. Package internal/converge
// runs a claim with schemas, until nothing changes any more.
package functionstest
