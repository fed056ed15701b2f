package databasecluster_test

import (
	"cmp"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/storeplane/storeplane/functions/functionstest"
	"github.com/storeplane/storeplane/internal/converge"
	"github.com/storeplane/storeplane/internal/instance"
)

// TestRefusedFaults: what has a claim refused may break its archive, and its conditions report that.
func TestRefusedFaults(t *testing.T) {
	c := simulate(t, functionstest.Production)
	c.Serve("backup")
	c.Settings = functionstest.Parse(t, "{apiVersion: apiextensions.crossplane.io/v1beta1, kind: EnvironmentConfig, metadata: {name: storeplane}, data: {backup: {type: gcs, bucket: b, secretRef: {name: store, namespace: platform, shared: true}}}}")
	store := functionstest.Secret(t, "store", map[string]string{"credentials.json": "{}"})
	functionstest.Fields(store, "metadata")["namespace"] = structpb.NewStringValue("platform")
	c.Others = []*structpb.Struct{store}
	c.Settle()
	if got := c.ConditionLine("ArchivingHealthy"); got != "True Archiving" {
		t.Fatalf("before: got %s", got)
	}

	c.Others = nil
	c.Reconcile()
	if got, _ := c.Condition("Accepted"); got != "False" || c.ConditionLine("ArchivingHealthy") != "True Archiving" {
		t.Errorf("the Secret is gone: got Accepted %s, %s", got, c.ConditionLine("ArchivingHealthy"))
	}
	c.ReportCluster(func(r *instance.Cluster) { r.Archive.Failing = "there are no credentials" })
	c.Reconcile()
	for _, typ := range []string{"ArchivingHealthy", "BackupHealthy"} {
		if got, want := c.ConditionLine(typ), "False Failing What is written is not archived: there are no credentials"; got != want {
			t.Errorf("%s while the claim is refused: want %q, got %q", typ, want, got)
		}
	}
}

// TestRefusedDumps: while a claim is refused a condition reports that dumps fail.
func TestRefusedDumps(t *testing.T) {
	c := simulate(t, "{engine: mysql, size: 1, version: '9.7', storageSize: 10Gi, backup: {enabled: true, destination: {type: s3, bucket: b, secretRef: {name: store}}}}")
	c.Serve("backup")
	storeSecrets(t, c)
	c.Settle()
	c.Edit("1Gi", "storageSize")
	c.SetStatus("backup", `{atProvider: {lastFailure: {time: "2026-01-01T00:00:00Z", reason: StoreDenied, message: "cannot make a backup: 403"}}}`)
	c.Reconcile()
	if got := c.ConditionLine("BackupHealthy"); got != "False BackupFailed cannot make a backup: 403" {
		t.Errorf("BackupHealthy is %s", got)
	}
}

// TestRefusedCopies: values that are copied from another Secret are still copied while the claim is
// refused, and nothing else changes.
func TestRefusedCopies(t *testing.T) {
	platform := func(value string) *structpb.Struct {
		s := functionstest.Secret(t, "store", map[string]string{"credentials.json": value})
		functionstest.Fields(s, "metadata")["namespace"] = structpb.NewStringValue("platform")
		return s
	}
	store := func(bucket string) string {
		return "backup: {type: gcs, bucket: " + bucket + ", secretRef: {name: store, namespace: platform, shared: true}}"
	}
	restore := "{size: 1, version: '17', storageSize: 10Gi, restoreFrom: {destination: {type: s3, bucket: old, secretRef: {name: store}}, name: sales}}"
	cases := map[string]struct {
		reason  string
		spec    string
		install string
		others  []*structpb.Struct
		// restoring claims have no database yet, so they do not settle.
		restoring bool
		change    func(*crossplane)
		// copied reports whether the change has arrived, and keeps means that it must not arrive.
		copied func(*crossplane) bool
		keeps  bool
	}{
		"TLS": {
			reason: "Clients and servers get the authority of a certificate that the user has renewed.",
			spec:   strings.Replace(broughtTLS, "{", "{storageSize: 10Gi, ", 1), others: []*structpb.Struct{functionstest.CertificateSecret(t, nil)},
			change: func(c *crossplane) {
				c.Others = []*structpb.Struct{functionstest.CertificateSecret(t, nil)}
			},
			copied: func(c *crossplane) bool {
				want := functionstest.Get(c.Others[0], "data", "ca.crt").GetStringValue()
				peers := functionstest.Get(c.Observed["config"], "data", "peers.crt").GetStringValue()
				return functionstest.Get(c.Observed["connection"], "data", "ca.crt").GetStringValue() == want && strings.HasPrefix(peers, c.SecretValue("connection", "ca.crt"))
			},
		},
		"UnusableTLS": {
			reason: "What no server can use is not copied.",
			spec:   strings.Replace(broughtTLS, "{", "{storageSize: 10Gi, ", 1), others: []*structpb.Struct{functionstest.CertificateSecret(t, nil)}, keeps: true,
			change: func(c *crossplane) {
				c.Others = []*structpb.Struct{functionstest.CertificateSecret(t, func(v map[string]string) { v["tls.key"] = otherKey(t) })}
			},
			copied: func(c *crossplane) bool {
				return functionstest.Get(c.Observed["connection"], "data", "ca.crt").GetStringValue() == functionstest.Get(c.Others[0], "data", "ca.crt").GetStringValue()
			},
		},
		"OtherTLS": {
			reason: "The Secret that the servers mount counts, not one that a refused claim names.",
			spec:   strings.Replace(broughtTLS, "{", "{storageSize: 10Gi, ", 1), others: []*structpb.Struct{functionstest.CertificateSecret(t, nil)}, keeps: true,
			change: func(c *crossplane) {
				other := functionstest.CertificateSecret(t, nil)
				functionstest.Fields(other, "metadata")["name"] = structpb.NewStringValue("other")
				c.Others = append(c.Others, other)
				c.Edit(map[string]any{"secretName": "other"}, "tls")
			},
			copied: func(c *crossplane) bool {
				return functionstest.Get(c.Observed["connection"], "data", "ca.crt").GetStringValue() == functionstest.Get(c.Others[1], "data", "ca.crt").GetStringValue()
			},
		},
		"Store": {
			reason: "Servers go on archiving when the installation's credentials are rotated.",
			spec:   "{size: 1, version: '17', storageSize: 10Gi, backup: {enabled: true}}", install: store("b"), others: []*structpb.Struct{platform("old")},
			change: func(c *crossplane) { c.Others = []*structpb.Struct{platform("new")} },
			copied: func(c *crossplane) bool {
				return c.SecretValue("backup-store", "credentials.json") == "new"
			},
		},
		"StoreOfDumps": {
			reason: "So do the pods that make dumps.",
			spec:   "{engine: mysql, size: 1, version: '9.7', storageSize: 10Gi, backup: {enabled: true}}", install: store("b"), others: []*structpb.Struct{platform("old")},
			change: func(c *crossplane) { c.Others = []*structpb.Struct{platform("new")} },
			copied: func(c *crossplane) bool {
				return c.SecretValue("backup-store", "credentials.json") == "new"
			},
		},
		"OtherStoreOfDumps": {
			reason: "Credentials of another store do not open theirs.",
			spec:   "{engine: mysql, size: 1, version: '9.7', storageSize: 10Gi, backup: {enabled: true}}", install: store("b"), others: []*structpb.Struct{platform("old")}, keeps: true,
			change: func(c *crossplane) {
				c.InstallSettings("{" + store("other") + "}")
				c.Others = []*structpb.Struct{platform("new")}
			},
			copied: func(c *crossplane) bool {
				return c.SecretValue("backup-store", "credentials.json") == "new"
			},
		},
		"OtherStore": {
			reason: "Credentials of another store do not open the one that is in use.",
			spec:   "{size: 1, version: '17', storageSize: 10Gi, backup: {enabled: true}}", install: store("b"), others: []*structpb.Struct{platform("old")}, keeps: true,
			change: func(c *crossplane) {
				c.InstallSettings("{" + store("other") + "}")
				c.Others = []*structpb.Struct{platform("new")}
			},
			copied: func(c *crossplane) bool {
				return c.SecretValue("backup-store", "credentials.json") == "new"
			},
		},
		"Source": {
			reason: "A restore goes on when the credentials of what it reads are rotated.",
			spec:   restore, others: []*structpb.Struct{functionstest.Secret(t, "store", map[string]string{"AWS_SECRET_ACCESS_KEY": "old"})}, restoring: true,
			change: func(c *crossplane) {
				c.Others = []*structpb.Struct{functionstest.Secret(t, "store", map[string]string{"AWS_SECRET_ACCESS_KEY": "new"})}
			},
			copied: func(c *crossplane) bool {
				return c.SecretValue("source", "AWS_SECRET_ACCESS_KEY") == "new"
			},
		},
		"OtherPassword": {
			reason: "The Secret that a password came from counts, not one that a refused claim names.",
			spec:   strings.Replace(broughtPassword, "{", "{storageSize: 10Gi, ", 1), others: []*structpb.Struct{functionstest.Secret(t, "mine", map[string]string{"password": "old one"})}, keeps: true,
			change: func(c *crossplane) {
				c.Others = append(c.Others, functionstest.Secret(t, "other", map[string]string{"password": "new one"}))
				c.Edit([]any{map[string]any{"name": "reader", "passwordSecretRef": map[string]any{"name": "other"}}}, "users")
			},
			copied: func(c *crossplane) bool { return c.SecretValue("user-reader", "password") == "new one" },
		},
		"Password": {
			reason: "A password that a user brings reaches the database and whoever connects with it.",
			spec:   strings.Replace(broughtPassword, "{", "{storageSize: 10Gi, ", 1), others: []*structpb.Struct{functionstest.Secret(t, "mine", map[string]string{"password": "old one"})},
			change: func(c *crossplane) {
				c.Others = []*structpb.Struct{functionstest.Secret(t, "mine", map[string]string{"password": "new&one"})}
			},
			copied: func(c *crossplane) bool {
				return c.SecretValue("user-reader", "password") == "new&one" && c.SecretValue("credentials", "user-reader") == "new&one" &&
					strings.Contains(c.SecretValue("user-reader", "uri"), "//reader:new&one@") && strings.Contains(c.SecretValue("user-reader", "multi-host-uri"), "//reader:new&one@") && strings.Contains(c.SecretValue("user-reader", "verified-uri"), "//reader:new&one@") &&
					strings.Contains(c.SecretValue("user-reader", "jdbc-uri"), "&password=new%26one&")
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, tc.spec)
			c.Serve("backup")
			c.Others = tc.others
			if tc.install != "" {
				c.InstallSettings("{" + tc.install + "}")
			}
			if tc.restoring {
				c.Reconcile()
				c.Reconcile()
			} else {
				c.Settle()
			}
			set := cmp.Or(functionstest.Get(c.Claim, "spec", "engine").GetStringValue(), "postgresql")
			names, server := c.ComponentNames(), c.Observed[set].GetFields()["spec"].String()
			// The claim is refused, since a volume cannot shrink.
			c.Edit("1Gi", "storageSize")
			tc.change(c)
			c.Reconcile()
			if got := tc.copied(c); got == tc.keeps {
				t.Errorf("%s\ncopied: %t", tc.reason, got)
			}
			if status, _ := c.Condition("Accepted"); status != "False" {
				t.Errorf("%s\nwant Accepted False, got %q", tc.reason, status)
			}
			if got := c.ComponentNames(); strings.Join(got, " ") != strings.Join(names, " ") || c.Observed[set].GetFields()["spec"].String() != server {
				t.Errorf("%s\nnothing else changes, got %v", tc.reason, got)
			}
			// One pass sets the generation that is refused.
			c.Reconcile()
			if !converge.IsFatal(c.Reconcile()) {
				t.Errorf("%s\nwhile nothing is due a refusal is fatal", tc.reason)
			}
		})
	}
}
