// Package instance defines what the function and the instance managers in the pods of a
// DatabaseCluster exchange. The function writes Desired into a ConfigMap. The managers
// reconcile it, and report into another ConfigMap, which is composed too, so that the function
// observes it.
//
// Neither contains a secret: passwords are in the Secret credentials, and only its resource
// version is mentioned here. Neither changes without a cause, since every change runs the
// function.
package instance
