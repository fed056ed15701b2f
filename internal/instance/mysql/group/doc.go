// Package group decides what a server of a DatabaseCluster with engine mysql does about its group:
// whether it founds the group, joins it, copies another server, or waits. Who is primary and what is
// committed is decided by Group Replication
// (https://dev.mysql.com/doc/refman/9.7/en/group-replication.html). What it leaves to its users is
// decided here: which server bootstraps a group that has no members, on which data, and what becomes
// of a server whose data the group does not have.
//
// The package is pure. A group is bootstrapped only by a server that holds the Record, so that two
// servers that decide at once, or one that decides by what it saw long ago, found no second group.
package group
