//go:build e2e

package borders

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// awaitRefusal waits until a Backup or Restore of the tenant is refused with a reason, checks that
// no Job and no copy of the platform's credentials was created for it, and deletes it.
func awaitRefusal(ctx context.Context, n notes, kind, name, reason string) error {
	err := ground.world.Await(ctx, soon, kind+" "+name+" to be refused with "+reason, func() (bool, string) {
		c := harness.ClaimOf(ground.world.Get(kind, name)).Condition("Ready")
		return c.Status == metav1.ConditionFalse && c.Reason == reason, c.Reason + ": " + c.Message
	})
	if err == nil {
		n.Addf("%s", harness.ClaimOf(ground.world.Get(kind, name)).Condition("Ready").Message)
	}
	for _, j := range ground.world.List("Job") {
		err = errors.Join(err, errors.New("a Job was made all the same: "+j.GetName()))
	}
	for _, copied := range []string{copyOfBackup(name), copyOfRestore(name)} {
		if ground.world.Get("Secret", copied) != nil {
			err = errors.Join(err, errors.New("the platform's credentials were copied for it, into Secret "+copied))
		}
	}
	return errors.Join(err, cluster.Delete(context.WithoutCancel(ctx), kind, tenantNamespace, name))
}

// The names of the Secrets with a copy of the platform's credentials.
func copyOfBackup(name string) string  { return name + "-dump-store" }
func copyOfRestore(name string) string { return name + "-restore-store" }

const platforms = "providerConfigRef: {kind: ClusterProviderConfig, name: e2e-borders}"

// readsBackups tries to restore a backup of the victim, whose namespace is a free field of a
// Restore. The victim may allow it by a RestoreGrant, which the attacker cannot create in the
// victim's namespace.
func readsBackups(ctx context.Context, n notes) error {
	if err := ready(ctx); err != nil {
		return err
	}
	restore := func(name string) error {
		return create(ctx, ground.tenant, `{apiVersion: backup.example.com/v1, kind: Restore, metadata: {name: `+name+`, namespace: '${NAMESPACE}'}, spec: {`+platforms+`, forProvider: {
			source: {location: {namespace: `+victimNamespace+`, name: orders, destination: {type: s3, bucket: platform}}},
			target: {type: postgresql, connection: {secretRef: {name: own-connection}}}}}}`)
	}
	grant := func(of string) string {
		return "{apiVersion: backup.example.com/v1, kind: RestoreGrant, metadata: {name: e2e, namespace: " + of + "}, spec: {to: ['${NAMESPACE}']}}"
	}
	err := errors.Join(
		refused("a grant in the victim's stead", create(ctx, ground.tenant, grant(victimNamespace)), "is forbidden"),
		create(ctx, ground.tenant, grant(tenantNamespace)), // in its own namespace
		restore("theft"),
	)
	if err != nil {
		return err
	}
	if err := awaitRefusal(ctx, n, "Restore", "theft", "NotGranted"); err != nil {
		return err
	}
	if err := create(ctx, cluster, grant(victimNamespace)); err != nil {
		return err
	}
	if err := restore("lent"); err != nil {
		return err
	}
	// There is no store to read from: the grant allows the attempt, and that is checked.
	err = ground.world.Await(ctx, soon, "the Restore that the victim has granted to begin", func() (bool, string) {
		return ground.world.Get("Job", "lent-restore") != nil && ground.world.Get("Secret", copyOfRestore("lent")) != nil, harness.ClaimOf(ground.world.Get("Restore", "lent")).Condition("Ready").Message
	})
	err = errors.Join(err,
		cluster.Delete(ctx, "Restore", tenantNamespace, "lent"),
		ground.world.AwaitGone(ctx, soon, "Job", "lent-restore"),
		ground.world.AwaitGone(ctx, soon, "Secret", copyOfRestore("lent")),
		cluster.Delete(ctx, "RestoreGrant", victimNamespace, "e2e"),
		restore("relapse"),
	)
	if err != nil {
		return err
	}
	return awaitRefusal(ctx, n, "Restore", "relapse", "NotGranted")
}

// borrowsCredentials tries to use the platform's credentials for an endpoint of the tenant, for
// another bucket, and from the provider's own environment.
func borrowsCredentials(ctx context.Context, n notes) error {
	if err := ready(ctx); err != nil {
		return err
	}
	backup := func(name, ref, destination string) error {
		return create(ctx, ground.tenant, `{apiVersion: backup.example.com/v1, kind: Backup, metadata: {name: `+name+`, namespace: '${NAMESPACE}'}, spec: {`+ref+`, forProvider: {
			source: {type: postgresql, connection: {secretRef: {name: own-connection}}}, destination: `+destination+`}}}`)
	}
	config := func(name, credentials string) error {
		return create(ctx, ground.tenant, "{apiVersion: storeplane.example.com/v1, kind: ProviderConfig, metadata: {name: "+name+", namespace: '${NAMESPACE}'}, spec: {credentials: "+credentials+"}}")
	}
	own := func(name string) string { return "providerConfigRef: {kind: ProviderConfig, name: " + name + "}" }
	if err := errors.Join(config("environment", "{source: Environment}"), config("elsewhere", "{source: Secret, secretRef: {namespace: "+platformNamespace+", name: store}}")); err != nil {
		return err
	}
	var errs []error
	for _, a := range []struct{ name, ref, destination, reason string }{
		{"endpoint", platforms, "{type: s3, bucket: platform, endpoint: 'https://thief.example.com'}", "DestinationInvalid"},
		{"bucket", platforms, "{type: s3, bucket: other}", "DestinationInvalid"},
		{"prefix", platforms, "{type: s3, bucket: platform, prefix: " + victimNamespace + "}", "DestinationInvalid"},
		{"environment", own("environment"), "{type: s3, bucket: platform}", "ProviderConfigInvalid"},
		{"elsewhere", own("elsewhere"), "{type: s3, bucket: platform}", "ProviderConfigInvalid"},
	} {
		if err := backup(a.name, a.ref, a.destination); err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, awaitRefusal(ctx, n, "Backup", a.name, a.reason))
	}
	return errors.Join(errs...)
}

// injectsSettings tries to add lines to the configuration of pgBackRest, which is read line by
// line.
func injectsSettings(ctx context.Context, _ notes) error {
	if err := ready(ctx); err != nil {
		return err
	}
	database := func(destination string) error {
		return create(ctx, ground.tenant, `{apiVersion: apps.example.com/v1, kind: DatabaseCluster, metadata: {name: lines, namespace: '${NAMESPACE}'}, spec: {
			size: 1, version: "17", backup: {schedule: "@daily", destination: `+destination+`}}}`, metav1.DryRunAll)
	}
	var errs []error
	for field, destination := range map[string]string{
		"bucket": `{type: s3, bucket: "b\nrepo1-s3-key=x", secretRef: {name: s}}`,
		"prefix": `{type: s3, bucket: b, prefix: "p\nrepo1-path=/other", secretRef: {name: s}}`,
		"region": `{type: s3, bucket: b, region: "r\nrepo1-storage-verify-tls=n", secretRef: {name: s}}`,
	} {
		errs = append(errs, refused("a line break in "+field, database(destination), "destination."+field))
	}
	return errors.Join(append(errs, database("{type: s3, bucket: b, prefix: p, region: r, secretRef: {name: s}}"))...)
}
