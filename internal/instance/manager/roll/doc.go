// Package roll decides what the manager beside the primary does next to the
// servers: hand over, replace a pod that is of an old revision, or restart a
// server for a parameter. It is one step at a time, decided anew from what is
// seen each time, so that nothing has to be remembered but how often a server
// was restarted.
//
// It never decides who is primary, and it takes nothing away from a cluster
// that is not well, except a server that does not serve anyway.
package roll
