// Package workload makes the Jobs and CronJobs whose pods run the image backup,
// and reads what became of them.
//
// It is pure: it builds objects and looks at objects. What a pod may reach is
// decided by who calls it. Nothing that it writes into a pod is a secret: those
// are mounted.
package workload
