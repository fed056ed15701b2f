package databasecluster_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/functions/functionstest"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/instance"
)

// TestBounds: the platform's credentials can only be used for the platform's store, and there only
// to restore backups of the own namespace and of those that granted it.
func TestBounds(t *testing.T) {
	const install = "{apiVersion: apiextensions.crossplane.io/v1beta1, kind: EnvironmentConfig, metadata: {name: storeplane}, data: {backup: {type: s3, bucket: b, prefix: p, endpoint: 'https://all', secretRef: {name: store, namespace: platform, shared: true}, grants: [{of: lost, to: [team]}]}}}"
	platform := functionstest.Secret(t, "store", map[string]string{"AWS_ACCESS_KEY_ID": "k", "admin.kubeconfig": "for no tenant"})
	functionstest.Fields(platform, "metadata")["namespace"] = structpb.NewStringValue("platform")
	copied := functionstest.Secret(t, "other-backup-store", map[string]string{"AWS_ACCESS_KEY_ID": "k"})
	functionstest.Fields(copied, "metadata")["annotations"] = structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
		backup.BoundsAnnotation: structpb.NewStringValue(`{"of":"EnvironmentConfig storeplane","bucket":"b","prefix":"p","endpoint":"https://all","reads":["team","lost"]}`),
	}})
	const ways = ", or name credentials of this namespace in destination.secretRef"
	const ask = " may not be restored here with the credentials of EnvironmentConfig storeplane: ask for a RestoreGrant to team in namespace bank, or the platform team for a grant where that one is lost" + ways
	cases := map[string]struct{ reason, spec, want string }{
		"Own":         {reason: "What it has backed up itself.", spec: "{size: 1, version: '17', restoreFrom: {destination: {type: s3, bucket: b}, name: sales}}"},
		"Granted":     {reason: "What it was granted.", spec: "{size: 1, version: '17', restoreFrom: {destination: {type: s3, bucket: b}, namespace: lost, name: sales}}"},
		"Given":       {reason: "What its owner has granted.", spec: "{size: 1, version: '17', restoreFrom: {destination: {type: s3, bucket: b}, namespace: lab, name: sales}}"},
		"GivenToCopy": {reason: "Also by a copy of the credentials.", spec: "{size: 1, version: '17', restoreFrom: {destination: {type: s3, bucket: b, secretRef: {name: other-backup-store}}, namespace: lab, name: sales}}"},
		"Others":      {reason: "No other namespace's.", spec: "{size: 1, version: '17', restoreFrom: {destination: {type: s3, bucket: b}, namespace: bank, name: sales}}", want: "restoreFrom: backups of namespace bank" + ask},
		"Transaction": {reason: "PostgreSQL knows none.", spec: "{size: 1, version: '17', restoreFrom: {destination: {type: s3, bucket: b}, name: sales, beforeTransaction: '3e11fa47-71ca-11e1-9e33-c80aa9429562:23'}}", want: "restoreFrom.beforeTransaction is not available with engine postgresql: it restores to a time: create the claim again with restoreFrom.time"},
		"Copy":        {reason: "Nor by a copy of the credentials.", spec: "{size: 1, version: '17', restoreFrom: {destination: {type: s3, bucket: b, secretRef: {name: other-backup-store}}, namespace: bank, name: sales}}", want: "restoreFrom: backups of namespace bank" + ask},
		"Bucket":      {reason: "Nor elsewhere.", spec: "{size: 1, version: '17', restoreFrom: {destination: {type: s3, bucket: c}, name: sales}}", want: "restoreFrom: destination.bucket is c, and the credentials of EnvironmentConfig storeplane are for b alone: name that one" + ways},
		"Endpoint":    {reason: "No endpoint of its own learns them.", spec: "{size: 1, version: '17', backup: {enabled: true, destination: {type: s3, bucket: b, endpoint: 'https://mine', secretRef: {name: other-backup-store}}}}", want: "backup: destination.endpoint is https://mine, and the credentials of EnvironmentConfig storeplane are for https://all alone: leave it out" + ways},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, tc.spec)
			c.Settings = functionstest.Parse(t, install)
			c.Others = append(c.Others, platform, copied)
			c.Serve("restoregrant")
			c.Add("{apiVersion: backup.example.com/v1, kind: RestoreGrant, metadata: {name: labs, namespace: lab}, spec: {to: [team]}}")
			c.Add("{apiVersion: backup.example.com/v1, kind: RestoreGrant, metadata: {name: banks, namespace: bank}, spec: {to: [vault]}}")
			c.Reconcile()
			c.Reconcile()
			got := ""
			if c.Phase() == "Failed" {
				got = c.Message()
			}
			if got != tc.want {
				t.Fatalf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
			if tc.want != "" {
				return
			}
			r := instance.Restore{}
			if err := json.Unmarshal([]byte(c.SecretValue("source", instance.RestoreFile)), &r); err != nil {
				t.Fatal(err)
			}
			if r.Destination.Prefix != "p" || r.Destination.Endpoint != "https://all" || c.SecretValue("source", "AWS_ACCESS_KEY_ID") != "k" {
				t.Errorf("%s\nwant the platform's place and credentials, got %+v", tc.reason, r.Destination)
			}
			if got := c.SecretValue("source", "admin.kubeconfig"); got != "" {
				t.Errorf("%s\nmore than credentials of the store is copied: %q", tc.reason, got)
			}
			if functionstest.Get(c.Observed["source"], "metadata", "annotations", backup.BoundsAnnotation).GetStringValue() == "" {
				t.Errorf("%s\nwant the copy bound as the platform's credentials are", tc.reason)
			}
		})
	}
}

// TestRestore: a cluster is restored from a backup, reports the progress, and removes the objects
// of the restore afterwards.
func TestRestore(t *testing.T) {
	c := simulate(t, "{size: 2, version: '17', restoreFrom: {destination: {type: volume, bucket: old}, name: sales, systemIdentifier: '7000000000000000002', time: '2020-01-02T03:04:05Z'}}")
	c.Reconcile()
	c.Reconcile()
	r := instance.Restore{}
	if err := json.Unmarshal([]byte(c.SecretValue("source", instance.RestoreFile)), &r); err != nil {
		t.Fatal(err)
	}
	want := instance.Restore{
		Destination: backupv1.Destination{Type: "volume", Bucket: "old"}, Namespace: "team", Name: "sales", System: "7000000000000000002", Host: "orders-source.team.svc",
		Time: new(time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)),
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("what is restored: -want, +got:\n%s", diff)
	}
	if p := patroni(t, c)["bootstrap"].(map[string]any); p["method"] != "restore" {
		t.Errorf("Patroni makes an empty cluster: %v", p)
	}
	c.Heal("postgresql", "source-server")
	c.Report("orders-postgresql-0.json", `{"restore":{"message":"Restoring backup 20200101-000000F"}}`)
	c.Reconcile()
	if c.Phase() != "Restoring" || !strings.Contains(c.Message(), "Restoring backup 20200101-000000F") {
		t.Errorf("want Restoring, got %s, %q", c.Phase(), c.Message())
	}
	c.Report("orders-postgresql-0.json", `{"restore":{"message":"there is no backup","failed":true}}`)
	c.Reconcile()
	if c.Phase() != "Failed" || !strings.Contains(c.Message(), "there is no backup") {
		t.Errorf("want Failed, got %s, %q", c.Phase(), c.Message())
	}
	before := servers(t, c).Spec.Template
	c.Report("orders-postgresql-0.json", `{}`)
	c.Settle()
	if c.Phase() != "Running" {
		t.Errorf("want Running, got %s, %q", c.Phase(), c.Message())
	}
	for _, n := range []string{"source", "source-config", "source-server", "source-service", "source-networkpolicy"} {
		if c.Observed[n] != nil {
			t.Errorf("%s is left after the restore", n)
		}
	}
	if diff := cmp.Diff(before, servers(t, c).Spec.Template); diff != "" {
		t.Errorf("the end of a restore replaces servers: -before, +after:\n%s", diff)
	}
	names := slices.Sorted(maps.Keys(c.Observed))
	if !slices.Contains(names, "backup-tls") || slices.Contains(names, "backup-full") {
		t.Errorf("who was restored is not backed up by that, and keeps what it mounts: got %v", names)
	}
}

// TestRestoreBackup: restoreFrom.backupRef reads the location of the backups from a Backup.
func TestRestoreBackup(t *testing.T) {
	const claim = "{size: 1, version: '17', restoreFrom: {backupRef: {name: sales-backup}}}"
	c := simulate(t, claim)
	c.Serve("backup")
	storeSecrets(t, c)
	c.Others = append(c.Others, functionstest.Parse(t, `{apiVersion: backup.example.com/v1, kind: Backup, metadata: {name: sales-backup, namespace: team}, spec: {forProvider: {method: physical,
		source: {type: postgresql, connection: {databaseClusterRef: {name: sales}}}, destination: {type: s3, bucket: b, secretRef: {name: store}}, encryption: {secretRef: {name: key, key: passphrase}}}}}`))
	c.Reconcile()
	r := instance.Restore{}
	if err := json.Unmarshal([]byte(c.SecretValue("source", instance.RestoreFile)), &r); err != nil {
		t.Fatal(err)
	}
	want := instance.Restore{Destination: backupv1.Destination{Type: "s3", Bucket: "b"}, Namespace: "team", Name: "sales", Encrypted: true}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("what is restored: -want, +got:\n%s", diff)
	}
	if got := c.SecretValue("source", instance.RestoreKey); got != "secret-passphrase" {
		t.Errorf("the key of the encryption is not there: %q", got)
	}
	for _, v := range servers(t, c).Spec.Template.Spec.Volumes {
		if v.Secret != nil && v.Secret.SecretName == "orders-source" && (v.Secret.Optional == nil || !*v.Secret.Optional) {
			t.Errorf("servers do not start once the source is gone")
		}
	}
	// Once the data is restored, the Backup may be deleted.
	c.Settle()
	c.Others = nil
	c.Settle()
	if c.Phase() != "Running" {
		t.Errorf("want Running, got %s, %q", c.Phase(), c.Message())
	}
	// And the report, which is created again.
	c.ReportCluster(func(r *instance.Cluster) { r.Timeline = 2 })
	c.Reconcile()
	before := servers(t, c).Spec.Template
	delete(c.Observed, "instances")
	for range 3 {
		if rsp := c.Reconcile(); len(rsp.GetResults()) > 0 || c.Observed["instances"] == nil {
			t.Fatalf("refused: %v", rsp.GetResults())
		}
	}
	if diff := cmp.Diff(before, servers(t, c).Spec.Template); diff != "" {
		t.Errorf("servers are replaced: -before, +after:\n%s", diff)
	}
	c.Settle()
	if c.Phase() != "Running" {
		t.Errorf("want Running, got %s, %q", c.Phase(), c.Message())
	}
}
