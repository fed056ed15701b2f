// Package recovery brings a cluster that pgBackRest has restored up to the point
// that was asked for: it starts PostgreSQL where nobody reaches it, lets it read
// the archive, and stops it again.
package recovery
