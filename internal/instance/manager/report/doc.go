// Package report puts what a manager sees into the words and facts of its
// reports. Every change of a report runs the composition function, so nothing
// in it flaps or counts.
package report
