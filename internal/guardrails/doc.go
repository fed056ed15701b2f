// Package guardrails checks the guardrails: rules about what claims may request that a platform
// team sets for all of its application teams. It reads a claim's own fields and the installation's
// settings, and nothing else.
//
// package/install/admission.yaml refuses the same at the API server, with the same messages. The
// functions check again, for claims that were stored before a rule existed or that bypassed
// admission, and render writes a report of it.
package guardrails
