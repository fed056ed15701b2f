// Package pause passes the pause of a claim on to the objects that it composes. Crossplane does not
// reconcile a claim with the annotation crossplane.io/paused, and calls no function for it, but the
// smaller claims and the managed resources that it composes would still be reconciled. They get the
// annotation too, for as long as their claim has it. A value that a user has set on one of them
// stays.
package pause
