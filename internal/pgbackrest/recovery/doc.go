// Package recovery recovers a cluster that pgBackRest has restored up to a requested point: it
// starts PostgreSQL where no client reaches it, lets it replay the archive, and stops it again.
package recovery
