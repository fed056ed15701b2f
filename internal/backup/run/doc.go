// Package run is the program backup: it reads a Task, executes it, and reports the result.
//
// A report contains no passwords and no URIs, fits into a pod's termination message, and is a
// failure unless the whole Task succeeded.
package run
