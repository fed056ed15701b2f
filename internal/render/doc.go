// Package render prints what a claim becomes, offline: either what Crossplane composes of it in one
// reconciliation, by the real `crossplane composition render` with the real function, or all
// objects that it will ever have, by package converge; or the result of package guardrails for it.
//
// Nothing is printed for a claim that its definition or the function refuses. The package depends
// on no intent: the caller provides the function.
package render
