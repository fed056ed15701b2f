// Package podfailure tells why a pod does not come up, typed for what depends on it, and in
// the same words for all that say it.
//
// The words go into conditions and events, so they hold no counts and no times,
// and not the changing words of one and the same trouble. What passes by itself
// is no trouble.
//
// The package looks at one pod at one moment. It imports nothing of ours.
package podfailure
