// Package label names the labels of all objects that Storeplane creates: those that Kubernetes
// recommends (https://kubernetes.io/docs/concepts/overview/working-with-objects/common-labels/), and
// one of its own.
package label

// Labels that Kubernetes recommends.
const (
	Name      = "app.kubernetes.io/name"
	Instance  = "app.kubernetes.io/instance"
	Component = "app.kubernetes.io/component"
	PartOf    = "app.kubernetes.io/part-of"
	ManagedBy = "app.kubernetes.io/managed-by"
	Version   = "app.kubernetes.io/version"
)

// Platform names the outermost claim, so that `kubectl get all -l platform=NAME` shows all of it.
const Platform = "platform"

// Storeplane is the value of ManagedBy.
const Storeplane = "storeplane"

// Values of Component by which other programs than the function find the pods of an application, of
// its migration, of a cache, of the server of a volume with backups, and those that create backups.
const (
	ComponentWeb        = "web"
	ComponentMigration  = "migration"
	ComponentCache      = "cache"
	ComponentRepository = "repository"
	ComponentNamedClaim = "named-claim"
	ComponentBackup     = "backup"
	ComponentLogArchive = "archive"
)
