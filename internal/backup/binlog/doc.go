// Package binlog reads MySQL's binary logs: which transactions a file has, when they were committed, and where
// each of them is. It reads no rows, and has a server apply what a file has.
//
// The format is that of version 4
// (https://dev.mysql.com/doc/dev/mysql-server/latest/classBinary__log__event.html).
package binlog
