// Package build holds what the builders of several intents have in common: names and labels,
// security contexts, network policies, disruption budgets.
//
// Builders are pure: typed values in, a typed object out, no client, clock or randomness. They
// depend on no intent. Only Certify generates keys, and takes the time from the claim.
package build
