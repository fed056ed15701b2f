// Package pause carries a claim's pause down to what the claim is made of.
// Crossplane leaves a claim alone that has the annotation crossplane.io/paused,
// and calls no function for it: so the smaller claims and the managed resources
// that it composes would go on by themselves. They get the annotation too, for as
// long as their claim has it. What a person has said on one of them holds.
package pause
