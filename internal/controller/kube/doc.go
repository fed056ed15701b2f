// Package kube is what the reconcilers share: how they are set up, and what they do to the
// API server: apply, create and delete objects, and list the Jobs of one Backup or Restore.
package kube
