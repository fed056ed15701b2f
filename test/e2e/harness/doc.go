// Package harness is what the end-to-end suites share: a cluster that is watched from outside, and
// requests that are made from inside it.
//
// It observes and acts as users and clients do, by the API server and over HTTP, and contains
// nothing about functions or how they are built. Nothing in it sleeps: it waits for events of the
// cluster, always with a timeout, and the error of a timeout names what it waited for.
package harness
