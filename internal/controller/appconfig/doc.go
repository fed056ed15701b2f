// Package appconfig reconciles AppConfigs: it creates bundles of their content, rolls them out to
// the targets, waits until these are healthy, and rolls back to the last good bundle if they are
// not.
//
// The bundle that is to run is written to the status before any target is changed, and what is done
// is a function of that status and of what was observed. So wherever the provider stops, the next
// one continues from there: nothing is lost, and no bundle that failed is tried twice. Decide is
// that function; it has no client and no clock.
//
// The package changes no target that is paused or being deleted, starts no Job, and takes no field
// that another field manager owns.
package appconfig
