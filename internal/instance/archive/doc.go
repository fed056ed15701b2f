// Package archive runs in a server's pod, archives its WAL, and lets its backups be taken and
// restored: it is PostgreSQL's archive command, pgBackRest's server, and the restore that
// fills a new cluster. It works without the API server: all that it needs is mounted.
package archive
