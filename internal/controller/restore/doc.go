// Package restore reconciles Restores: each creates one Job, once, that writes a backup into a
// database, and reports the result in the Restore's status.
//
// A pure function of what was observed and the time decides what is done (decide.go). A Job that
// has started is never created again, whatever its result: a user who wants another attempt creates
// another Restore.
package restore
