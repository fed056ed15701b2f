// Package telemetry exports metrics of the provider to Prometheus, beside those of
// controller-runtime and crossplane-runtime. Labels are bounded: reasons, and the Backups and
// claims that exist, whose series are removed with them.
package telemetry
