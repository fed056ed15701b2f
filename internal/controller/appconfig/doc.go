// Package appconfig reconciles AppConfigs: it makes bundles of their content,
// brings them to their targets, waits until these are healthy, and puts the last
// good bundle back if they are not.
//
// What shall run is written to the status before any target is touched, and what
// is done is a function of that status alone. So wherever the provider stops, the
// next one goes on from there: nothing is lost, and nothing bad is tried twice.
// Decide is that function; it knows no client and no clock.
//
// The package touches no target that is paused or being deleted, starts no Job,
// and takes no field that somebody else owns.
package appconfig
