// Package explain says why a claim is not ready, or what has happened to it: the tree of what
// it made, the one cause with its evidence, since when, and what to do.
//
// Explain is a pure function of Facts, what a cluster tells at one moment; Read reads them. What
// keeps pods from becoming ready is said in podfailure's words, as claims say it themselves.
package explain
