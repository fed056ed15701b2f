// Package pgbackrest calls pgBackRest (https://pgbackrest.org), which creates the physical
// backups of a DatabaseCluster. It writes pgBackRest's configuration and environment, and reads
// its output and its errors. It does not decide when a backup is created.
package pgbackrest
