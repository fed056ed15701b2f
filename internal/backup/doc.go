// Package backup has the types that the provider and the program backup, which its Jobs run,
// exchange, and the layout of a store.
//
// The provider writes a Task into a pod's environment and mounts Secrets beside it. The program
// answers with a Report as the pod's termination message. So the pods need no rights in the
// cluster, and the provider needs none in a store.
//
// A Task, a Report and a Manifest contain no secrets.
package backup
