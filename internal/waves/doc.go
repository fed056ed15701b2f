// Package waves decides in what order the claims of a cluster are upgraded to another release of
// Storeplane, or to other settings. It is pure: from the claims as they are it decides which are
// upgraded now.
//
// Nothing is remembered except what claims contain: the release of their pods, the one that waits,
// since when they are ready, and, in annotations, when their wave began.
package waves
