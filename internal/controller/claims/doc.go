// Package claims watches the claims for what Prometheus is told of them. It reads,
// and changes nothing: what a claim is made of is decided by its function alone.
package claims
