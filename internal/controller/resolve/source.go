package resolve

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/engine"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/controller/workload"
	"github.com/storeplane/storeplane/internal/instance"
)

// Source is the source of the data, or the target of a Restore.
type Source struct {
	workload.Source

	// Version of the server, or "" if it is not known.
	Version string

	// Print is a fingerprint of the connection: it changes whenever another database may be
	// reached.
	Print string

	// Waiting is a message why a DatabaseCluster is not ready, or "".
	Waiting string
}

// Source resolves the connection of a database in a namespace, to read from it. Of a DatabaseCluster with a
// user that reads all databases it is that user's.
func (r *Resolver) Source(ctx context.Context, namespace string, db backupv1.Database) (Source, error) {
	ref := db.Connection.DatabaseClusterRef
	if ref == nil {
		return r.named(ctx, namespace, db)
	}
	secret := connectionSecret(ref.Name)
	if db.Type == backupv1.MySQL {
		// Without it nothing is dumped: the first user's dump would lack what others own.
		secret = backup.DumperSecret(ref.Name)
	}
	return r.cluster(ctx, namespace, ref.Name, secret, db)
}

// Target resolves the connection of a database in a namespace, to write to it. Of a DatabaseCluster it is
// that of its first user.
func (r *Resolver) Target(ctx context.Context, namespace string, db backupv1.Database) (Source, error) {
	if ref := db.Connection.DatabaseClusterRef; ref != nil {
		return r.cluster(ctx, namespace, ref.Name, connectionSecret(ref.Name), db)
	}
	return r.named(ctx, namespace, db)
}

// connectionSecret returns the name of the Secret of a DatabaseCluster's first user.
func connectionSecret(cluster string) string { return cluster + "-connection" }

// named resolves the connection in a Secret.
func (r *Resolver) named(ctx context.Context, namespace string, db backupv1.Database) (Source, error) {
	ref := db.Connection.SecretRef
	s, err := r.secret(ctx, namespace, ref.Name, "connection.secretRef")
	if err != nil {
		return Source{}, err
	}
	if err := hasConnection(s, ref.Key); err != nil {
		return Source{}, err
	}
	out := Source{Version: db.Version, Print: PrintOf(s)}
	out.Secret, out.Hosts = s.Name, hosts(s, ref.Key)
	if len(s.Data[ref.Key]) > 0 {
		out.Key = ref.Key
	}
	return out, nil
}

// hosts returns the hosts that a Secret names, as its pods will read it. It returns none if the
// Secret cannot be read as a connection: the pods report why.
func hosts(s *corev1.Secret, key string) []string {
	keys := map[string]string{}
	for _, k := range []string{appsv1.ConnectionURI, appsv1.ConnectionHost, appsv1.ConnectionPort} {
		keys[k] = engine.Value(s.Data[k])
	}
	if len(s.Data[key]) > 0 {
		keys[appsv1.ConnectionURI] = engine.Value(s.Data[key])
	}
	c, err := engine.NewConnection(keys)
	if err != nil {
		return nil
	}
	return c.Addresses()
}

// hasConnection returns a Problem if a Secret does not contain how to connect.
func hasConnection(s *corev1.Secret, key string) error {
	if len(s.Data[key]) > 0 {
		return nil
	}
	for _, part := range []string{appsv1.ConnectionHost, appsv1.ConnectionUsername, appsv1.ConnectionPassword} {
		if len(s.Data[part]) == 0 {
			return problem(backupv1.ReasonSecretKeyNotFound, "connection.secretRef names Secret %s, which has neither key %s nor key %s", s.Name, key, part)
		}
	}
	return nil
}

// cluster resolves the connection to a DatabaseCluster by one of its Secrets.
func (r *Resolver) cluster(ctx context.Context, namespace, name, secret string, db backupv1.Database) (Source, error) {
	c, err := r.Cluster(ctx, namespace, name)
	if err != nil {
		return Source{}, err
	}
	if err := c.Check(name, db.Type); err != nil {
		return Source{}, err
	}
	out := Source{Version: cmp.Or(db.Version, c.Version), Waiting: c.Waiting}
	s, err := r.secret(ctx, namespace, secret, "connection.databaseClusterRef")
	switch {
	case AsProblem(err) != nil:
		return Source{}, problem(backupv1.ReasonDatabaseClusterNotReady, "DatabaseCluster %s has no Secret %s yet", name, secret)
	case err != nil:
		return Source{}, err
	}
	out.Secret, out.Print, out.Cluster = s.Name, PrintOf(s), name
	return out, nil
}

// Cluster is what a Backup or Restore reads of a DatabaseCluster.
type Cluster struct {
	Engine  backupv1.Engine
	Version string
	Storage resource.Quantity

	// Waiting is a message why it is not ready, or "" if it is.
	Waiting string
}

// Check returns a Problem if the DatabaseCluster, of that name, is not of the engine that an object names.
func (c Cluster) Check(name string, engine backupv1.Engine) error {
	if c.Engine == engine {
		return nil
	}
	return problem(backupv1.ReasonInvalidTask, "connection.databaseClusterRef names DatabaseCluster %s, whose engine is %s, and type is %s: create this object again with type %s", name, c.Engine, engine, c.Engine)
}

// Volumes returns the DatabaseCluster of a name with the size of its servers' volumes, or with zero if that is not
// known yet. A claim that sets no size has that of its environment when it was created, which its first volume
// shows.
func (r *Resolver) Volumes(ctx context.Context, namespace, name string) (Cluster, error) {
	c, err := r.Cluster(ctx, namespace, name)
	if err != nil || !c.Storage.IsZero() {
		return c, err
	}
	pvc := &corev1.PersistentVolumeClaim{}
	volume := instance.VolumeClaim(build.Scope{Claim: name}.Name(string(c.Engine)) + "-0")
	err = r.Reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: volume}, pvc)
	switch {
	case kerrors.IsNotFound(err):
		return c, nil
	case err != nil:
		return Cluster{}, fmt.Errorf("cannot get PersistentVolumeClaim %s/%s: %w", namespace, volume, err)
	}
	c.Storage = pvc.Spec.Resources.Requests[corev1.ResourceStorage]
	return c, nil
}

var clusterKind = appsv1.GroupVersion.WithKind(appsv1.DatabaseClusterKind)

// Cluster returns the DatabaseCluster of a name, or a Problem if it does not exist.
func (r *Resolver) Cluster(ctx context.Context, namespace, name string) (Cluster, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(clusterKind)
	err := r.Reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, u)
	switch {
	case meta.IsNoMatchError(err):
		return Cluster{}, problem(backupv1.ReasonDatabaseClusterNotFound, "connection.databaseClusterRef names DatabaseCluster %s, and there are no DatabaseClusters here: install the Configuration", name)
	case kerrors.IsNotFound(err):
		return Cluster{}, problem(backupv1.ReasonDatabaseClusterNotFound, "connection.databaseClusterRef names DatabaseCluster %s, which does not exist in namespace %s", name, namespace)
	case err != nil:
		return Cluster{}, fmt.Errorf("cannot get DatabaseCluster %s/%s: %w", namespace, name, err)
	}
	return clusterOf(u), nil
}

func clusterOf(u *unstructured.Unstructured) Cluster {
	out := Cluster{Waiting: "DatabaseCluster " + u.GetName() + " is not ready"}
	engine, _, _ := unstructured.NestedString(u.Object, "spec", "engine")
	out.Engine = backupv1.Engine(cmp.Or(engine, string(backupv1.PostgreSQL)))
	out.Version, _, _ = unstructured.NestedString(u.Object, "spec", "version")
	storage, _, _ := unstructured.NestedString(u.Object, "spec", "storageSize")
	if q, err := resource.ParseQuantity(storage); err == nil {
		out.Storage = q
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		c, ok := c.(map[string]any)
		if !ok || c["type"] != "Ready" {
			continue
		}
		if c["status"] == "True" {
			out.Waiting = ""
		} else if words, ok := c["message"].(string); ok && words != "" {
			out.Waiting += ": " + words
		}
	}
	return out
}
