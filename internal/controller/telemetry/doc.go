// Package telemetry is what the provider tells Prometheus beside what
// controller-runtime and crossplane-runtime do. Labels are bounded: reasons, and
// the Backups and claims that there are, whose series go with them.
package telemetry
