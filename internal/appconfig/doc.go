// Package appconfig derives from an AppConfig's configuration its content, the name of the bundle
// that holds it, and the fields by which a pod template refers to it. Both the provider and the
// functions use it, so that a Deployment can name a bundle that the provider has yet to create.
//
// A bundle is an immutable ConfigMap, and a Secret of the same name if there are keys of Secrets.
// Its name is derived from its content. So pods that run an old bundle keep it, a rollback restores
// the old name, and a mix of two contents is not possible.
//
// The package uses no client and no randomness, and a clock only to stop templates that take too
// long.
package appconfig
