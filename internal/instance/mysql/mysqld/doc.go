// Package mysqld contains the files and the process of a MySQL server: its data directory on the
// volume, the options that a group relies on, and the program itself as a child process.
package mysqld
