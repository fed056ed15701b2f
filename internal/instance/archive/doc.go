// Package archive is what runs in a server's pod so that its WAL is archived and
// its backups can be made and restored: PostgreSQL's archive command, pgBackRest's
// server, and the restore that fills a new cluster. It works without the API
// server: all that it needs is mounted.
package archive
