// Package run is the program backup: it reads a Task, does it, and reports.
//
// What it reports holds no passwords and no URIs, fits into a pod's termination
// message, and is a failure unless all that was asked for was done.
package run
