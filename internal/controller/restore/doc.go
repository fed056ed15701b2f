// Package restore reconciles Restores: each makes one Job, once, that writes a
// backup into a database, and says in the Restore's status what became of it.
//
// What is to be done is decided by a pure function of what was observed and the
// time (decide.go). A Job that has begun is never made again, whatever became of
// it: who wants another try makes another Restore.
package restore
