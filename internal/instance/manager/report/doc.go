// Package report turns what a manager observes into its reports. Every change of a report runs
// the composition function, so nothing in it flaps or counts.
package report
