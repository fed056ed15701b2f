// Package kube is what the reconcilers do to the API server: apply, create and
// delete objects, and list the Jobs of one Backup or Restore.
package kube
