// Package segment is about the parts of MySQL's binary logs that are archived beside physical backups, segments:
// which of them a restore applies to a backup, whether any is missing, and which are of no use any more.
//
// Which transactions there are is compared by their sets of GTIDs alone, and never by the times or names of files: a
// segment says which transactions were executed before its own, so that one that is missing is noticed, whoever has
// written the others, and in whichever order.
package segment
