// Package roll decides what the manager beside the primary does next with the servers: hand
// over, replace a pod of an old revision, or restart a server for a parameter. It is one step
// at a time, decided again each time from what is observed, so that nothing has to be recorded
// but how often a server was restarted.
//
// It never decides which server is primary, and it stops no server of a cluster that is not
// healthy, except one that does not serve anyway.
package roll
