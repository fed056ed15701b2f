// Package pki makes the certificates with which a cluster's servers prove who
// they are: an authority of its own for each cluster, and server certificates
// that it signs. It keeps nothing and knows no clock.
package pki
