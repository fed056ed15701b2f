// Package explain explains why a claim is not ready, or what has happened to it: the tree of its
// objects, the main cause with its evidence and when it began, and what to do.
//
// Explain is a pure function of Facts, the state of a cluster at one moment; Reader.Read reads
// them. Failures of pods are worded by package podfailure, as in the status of claims.
package explain
