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

// The address and port of the cloud's metadata service, which gives any client on a node the node's
// identity.
const (
	metadataHost = "169.254.169.254"
	metadataPort = 80
)

// serveMetadata serves the address on this node until stop is called.
func serveMetadata(ctx context.Context) (stop func() error, err error) {
	ip := func(ctx context.Context, args ...string) error {
		if out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("cannot run ip %v: %w: %s", args, err, bytes.TrimSpace(out))
		}
		return nil
	}
	const address, link = metadataHost + "/32", "lo"
	remove := func() error { return ip(context.WithoutCancel(ctx), "address", "delete", address, "dev", link) }
	// Remove the address that an interrupted run has left behind.
	_ = remove()
	if err := ip(ctx, "address", "add", address, "dev", link); err != nil {
		return nil, err
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

// reachesMetadata connects from the pods of a Backup and a Restore whose store has credentials:
// they reach their database, but neither the metadata service nor a neighbour. The pods of a Backup
// whose store has no credentials identify themselves by the node's identity, and reach the metadata
// service.
func reachesMetadata(ctx context.Context, n notes) (err error) {
	if err := ready(ctx); err != nil {
		return err
	}
	stop, err := serveMetadata(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := ground.world.AwaitReady(ctx, started, "DatabaseCluster", "own"); err != nil {
		return err
	}
	for name, key := range map[string]string{"with-credentials": "AWS_ACCESS_KEY_ID", "without-credentials": "AWS_REGION"} {
		err := create(ctx, cluster, "{apiVersion: v1, kind: Secret, metadata: {name: "+name+", namespace: '${NAMESPACE}'}, stringData: {"+key+": x}}")
		if err != nil {
			return err
		}
	}
	store := func(secret, endpoint string) string {
		return "destination: {type: s3, bucket: b, endpoint: " + endpoint + ", secretRef: {name: " + secret + "}}"
	}
	const secure, plain = "'https://store.example.com:9000'", "'http://store.example.com', insecure: true"
	backup := func(name, secret, endpoint string) string {
		return `{apiVersion: backup.example.com/v1, kind: Backup, metadata: {name: ` + name + `, namespace: '${NAMESPACE}'}, spec: {forProvider: {
			source: {type: postgresql, connection: {databaseClusterRef: {name: own}}}, ` + store(secret, endpoint) + `}}}`
	}
	objects := []struct{ kind, name, text, policy string }{
		{"Backup", "sealed", backup("sealed", "with-credentials", secure), "sealed-dump"},
		{"Backup", "plain", backup("plain", "with-credentials", plain), "plain-dump"},
		{"Backup", "known", backup("known", "without-credentials", secure), "known-dump"},
		{"Restore", "sealed", `{apiVersion: backup.example.com/v1, kind: Restore, metadata: {name: sealed, namespace: '${NAMESPACE}'}, spec: {forProvider: {
			source: {location: {name: sealed, ` + store("with-credentials", secure) + `}}, target: {type: postgresql, connection: {databaseClusterRef: {name: own}}}}}}`, "sealed-restore"},
	}
	for _, o := range objects {
		if err := create(ctx, ground.tenant, o.text); err != nil {
			return err
		}
		defer func() {
			err = errors.Join(err, cluster.Delete(context.WithoutCancel(ctx), o.kind, tenantNamespace, o.name))
		}()
		err := ground.world.Await(ctx, soon, "NetworkPolicy "+o.policy, func() (bool, string) {
			return ground.world.Get("NetworkPolicy", o.policy) != nil, harness.ClaimOf(ground.world.Get(o.kind, o.name)).Condition("Ready").Message
		})
		if err != nil {
			return err
		}
	}
	own, err := harness.StartClient(ctx, cluster, ground.world)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, own.Stop(context.WithoutCancel(ctx))) }()
	neighbour, database := neighbourAddress(), harness.Field(ground.world.Get("Pod", "own-postgresql-0"), "status", "podIP")
	errs := []error{
		reaches(ctx, "a pod that no policy closes", own, metadataHost, metadataPort),
		reaches(ctx, "a pod that no policy closes", own, neighbour, application),
	}
	label := func(labels harness.Patch) error {
		_, err := cluster.Patch(ctx, "Pod", tenantNamespace, harness.ClientPod, harness.Patch{"metadata": harness.Patch{"labels": labels}})
		return err
	}
	unlabelled := harness.Patch{"backup.example.com/backup": nil, "backup.example.com/restore": nil, "backup.example.com/action": nil}
	for _, pod := range []struct {
		who    string
		labels harness.Patch
		known  bool
	}{
		{"a Backup's pod without credentials", harness.Patch{"backup.example.com/backup": "known", "backup.example.com/action": "backup"}, true},
		{"a Backup's pod", harness.Patch{"backup.example.com/backup": "sealed", "backup.example.com/action": "backup"}, false},
		{"a Backup's pod with a store at the metadata service's port", harness.Patch{"backup.example.com/backup": "plain", "backup.example.com/action": "backup"}, false},
		{"a Restore's pod", harness.Patch{"backup.example.com/restore": "sealed", "backup.example.com/action": "restore"}, false},
	} {
		// Each case begins with an open network, or what the case before could not reach would
		// count as closed.
		if err := errors.Join(label(unlabelled), reaches(ctx, "a pod without labels", own, neighbour, application), label(pod.labels)); err != nil {
			return err
		}
		errs = append(errs, closes(ctx, pod.who, own, neighbour, application), reaches(ctx, pod.who, own, database, postgresql))
		if pod.known {
			errs = append(errs, reaches(ctx, pod.who, own, metadataHost, metadataPort))
			continue
		}
		errs = append(errs, closes(ctx, pod.who, own, metadataHost, metadataPort), reachesNot(ctx, pod.who, own, neighbour, application))
	}
	n.Addf("%s:%d", metadataHost, metadataPort)
	return errors.Join(errs...)
}
