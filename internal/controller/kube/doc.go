// Package kube contains what the reconcilers share: their setup, and their requests to the API
// server to apply, create, find and delete objects, and to list the Jobs of one Backup or Restore.
package kube
