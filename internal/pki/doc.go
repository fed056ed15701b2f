// Package pki creates the certificates with which a cluster's servers authenticate: an authority of
// its own for each cluster, and server certificates that it signs. It stores nothing, and its
// callers pass the time.
package pki
