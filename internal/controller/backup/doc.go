// Package backup reconciles Backups: it creates the CronJobs and Jobs that back up and verify, and
// reports their results in the Backup's status.
//
// Pure functions of what was observed and the time decide what is done (decide.go). The package
// uses only the API server, and connects neither to a store nor to a database. It reads Secrets to
// check references and find the hosts of a database, and to copy the credentials of a
// ProviderConfig and the keys that are kept in escrow.
package backup
