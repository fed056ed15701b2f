// Package backup reconciles Backups: it makes the CronJobs and Jobs that back up
// and verify, and says in the Backup's status what became of them.
//
// What is to be done is decided by pure functions of what was observed and the
// time (decide.go). The package speaks to the API server only, never to a store
// or a database, and reads no Secret but to see whether it is there and to copy
// the credentials of a ProviderConfig.
package backup
