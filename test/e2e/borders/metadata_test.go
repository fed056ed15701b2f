//go:build e2e

package borders

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// metadata is where clouds answer whoever asks from a node, with the node's identity.
const (
	metadataHost = "169.254.169.254"
	metadataPort = 80
	metadataLink = "storeplane-meta"
)

// serveMetadata at its address, of a link of its own on this node, until stop.
func serveMetadata(ctx context.Context) (stop func() error, err error) {
	ip := func(ctx context.Context, args ...string) error {
		if out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("cannot run ip %v: %w: %s", args, err, bytes.TrimSpace(out))
		}
		return nil
	}
	remove := func() error { return ip(context.WithoutCancel(ctx), "link", "delete", metadataLink) }
	// One that an interrupted run has left.
	_ = remove()
	if err := ip(ctx, "link", "add", metadataLink, "type", "dummy"); err != nil {
		return nil, err
	}
	err = errors.Join(ip(ctx, "address", "add", metadataHost+"/32", "dev", metadataLink), ip(ctx, "link", "set", metadataLink, "up"))
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf("%s:%d", metadataHost, metadataPort))
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	return func() error { return errors.Join(listener.Close(), remove()) }, nil
}

// reachesMetadata from pods that have a store's credentials, of a database, a Backup and a
// Restore: none of them reaches it, nor a neighbour, and a Restore's pod reaches its database.
func reachesMetadata(ctx context.Context, n notes) (err error) {
	if err := ready(ctx); err != nil {
		return err
	}
	stop, err := serveMetadata(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	const store = "destination: {type: s3, bucket: b, endpoint: 'https://store.example.com:9000', secretRef: {name: neighbour}}"
	err = errors.Join(
		ground.world.AwaitReady(ctx, started, "DatabaseCluster", "own"),
		create(ctx, ground.tenant, `{apiVersion: backup.example.com/v1, kind: Backup, metadata: {name: sealed, namespace: '${NAMESPACE}'}, spec: {forProvider: {
			source: {type: postgresql, connection: {databaseClusterRef: {name: own}}}, `+store+`}}}`),
		create(ctx, ground.tenant, `{apiVersion: backup.example.com/v1, kind: Restore, metadata: {name: sealed, namespace: '${NAMESPACE}'}, spec: {forProvider: {
			source: {location: {name: sealed, `+store+`}}, target: {type: postgresql, connection: {databaseClusterRef: {name: own}}}}}}`),
	)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, cluster.Delete(ctx, "Restore", tenantNamespace, "sealed"), cluster.Delete(ctx, "Backup", tenantNamespace, "sealed"))
	}()
	for _, policy := range []string{"sealed-dump", "sealed-dump-database", "sealed-restore"} {
		err := ground.world.Await(ctx, soon, "NetworkPolicy "+policy, func() (bool, string) {
			return ground.world.Get("NetworkPolicy", policy) != nil, harness.ClaimOf(ground.world.Get("Restore", "sealed")).Condition("Ready").Message
		})
		if err != nil {
			return err
		}
	}
	own, err := harness.StartClient(ctx, cluster, ground.world)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, own.Stop(ctx)) }()
	neighbour := ""
	for _, p := range ground.world.List("Pod") {
		if p.GetLabels()["app"] == "neighbour" {
			neighbour = harness.Field(p, "status", "podIP")
		}
	}
	database := harness.Field(ground.world.Get("Pod", "own-postgresql-0"), "status", "podIP")
	errs := []error{
		reaches(ctx, "a pod that no policy closes", own, metadataHost, metadataPort),
		reaches(ctx, "a pod that no policy closes", own, neighbour, application),
	}
	if open, err := cluster.Reaches(ctx, tenantNamespace, "own-postgresql-0", "postgresql", metadataHost, metadataPort); err != nil || open {
		errs = append(errs, err, fmt.Errorf("a database's server reaches the metadata service: %t", open))
	}
	for _, pod := range []struct {
		who      string
		labels   harness.Patch
		database bool
	}{
		{"a pod of a Backup's Job that is to verify", harness.Patch{"backup.example.com/backup": "sealed", "backup.example.com/action": "verify"}, false},
		{"a pod of a Backup's Job that is to back up", harness.Patch{"backup.example.com/backup": "sealed", "backup.example.com/action": "backup"}, true},
		{"a Restore's pod", harness.Patch{"backup.example.com/backup": nil, "backup.example.com/restore": "sealed", "backup.example.com/action": "restore"}, true},
	} {
		if _, err := cluster.Patch(ctx, "Pod", tenantNamespace, harness.ClientPod, harness.Patch{"metadata": harness.Patch{"labels": pod.labels}}); err != nil {
			return err
		}
		errs = append(errs, closes(ctx, pod.who, own, metadataHost, metadataPort), closes(ctx, pod.who, own, neighbour, application))
		if pod.database {
			errs = append(errs, reaches(ctx, pod.who, own, database, postgresql))
		}
	}
	n.Addf("%s:%d", metadataHost, metadataPort)
	return errors.Join(errs...)
}
