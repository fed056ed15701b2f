// Package podfailure says in words why a pod does not come up. Both the function,
// while no server is up, and the instance managers say it, and in the same words.
//
// The words go into conditions and events, so they hold no counts and no times,
// and not the changing words of one and the same trouble. What passes by itself
// is no trouble.
//
// The package looks at one pod at one moment. It imports nothing of ours.
package podfailure
