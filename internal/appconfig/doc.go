// Package appconfig knows what an AppConfig's configuration becomes: its content,
// the name of the bundle that holds it, and how a pod template refers to it. Both
// the provider and the functions ask it, so that a Deployment can name a bundle
// that the provider has yet to make.
//
// A bundle is an immutable ConfigMap, and a Secret of the same name where there
// are keys of Secrets. Its name is made from its content. So whatever runs an old
// bundle keeps it, a rollback is the old name put back, and what is half of one
// content and half of another cannot be.
//
// The package is pure: it knows no client, no clock and no randomness.
package appconfig
