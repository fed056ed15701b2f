// Package store accesses the destination of a Backup: an object store, or a volume.
//
// The types of store differ in how they are opened and how their errors read. All else is the
// same code, by gocloud.dev/blob. Every error of this package has a backup.Reason.
package store
