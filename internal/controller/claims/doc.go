// Package claims watches the claims and exports metrics of them. It only reads: what a claim is
// composed of is decided by its function alone.
package claims
