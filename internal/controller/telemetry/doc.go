// Package telemetry is what the provider tells Prometheus beside what
// controller-runtime and crossplane-runtime do. Labels are bounded: reasons, and
// the Backups that there are; those of a Backup go with it.
package telemetry
