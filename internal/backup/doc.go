// Package backup is what the provider and the program backup, which its Jobs
// run, tell each other, and what lies in a store.
//
// The provider writes a Task into a pod's environment and mounts Secrets beside
// it. The program answers with a Report as the pod's termination message: so the
// pods need no rights in the cluster, and the provider none in a store.
//
// Nothing of a Task, a Report or a Manifest is a secret.
package backup
