// Package workload builds the Jobs and CronJobs whose pods run the image backup, and reads their
// results.
//
// It has no client: it builds objects and reads objects. The caller decides what a pod may reach.
// No secret is written into a pod: Secrets are mounted.
package workload
