// Package podfailure explains why a pod does not become ready: with a type for programs, and with a
// message that is the same wherever it is reported.
//
// The messages become part of conditions and events. They contain no counts, no times and no other
// text that changes while the failure stays the same. Only Why also reports
// what passes by itself.
//
// The package judges one pod at one moment. It imports no other package of this module.
package podfailure
