// Package waves decides in what order the claims of a cluster are upgraded to another release of
// Storeplane, or to other settings. It is pure: of claims that are as they are it says which are to
// be upgraded now.
//
// Nothing is remembered but what claims say themselves: which release their pods are of, which one
// waits, since when they are ready, and, in annotations, when their wave began.
package waves
