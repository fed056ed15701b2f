// Package store reaches a Backup's destination: an object store, or a volume.
//
// What differs between them is how one is opened and how its errors read. All
// else is one path, over gocloud.dev/blob. Every error of this package has a
// backup.Reason.
package store
