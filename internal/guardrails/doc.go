// Package guardrails holds the guardrails: rules about what claims may ask for that
// a platform team sets for all of its application teams. It looks at a claim's
// own fields and at the installation's settings, at nothing else.
//
// package/install/admission.yaml refuses the same at the API server, in the same
// words. The functions ask this package again, for what was stored before a rule
// came or slipped by, and render makes a report of it.
package guardrails
