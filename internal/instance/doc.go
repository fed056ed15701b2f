// Package instance is what the function and the instance managers in the pods
// of a DatabaseCluster tell each other. The function writes Desired into a
// ConfigMap; the managers make it so, and write what they see into another one,
// which is composed too, so that the function observes it.
//
// Nothing of it is a secret: passwords are in the Secret credentials, and only
// its resource version is spoken of here. Nothing of it changes unless
// something has happened: every change runs the function.
package instance
