// Package pgbackrest knows how to speak to pgBackRest (https://pgbackrest.org),
// which makes the physical backups of a DatabaseCluster: its configuration, its
// environment, what it answers, and what its errors mean. It decides nothing
// about when a backup is made.
package pgbackrest
