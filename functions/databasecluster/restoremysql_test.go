package databasecluster_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	k8sappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/functions/functionstest"
	"github.com/storeplane/storeplane/internal/instance"
)

// TestRestoreMySQL: a cluster of engine mysql is filled from a physical Backup, by the name of the Backup
// and with the key that was generated for it, and keeps its pods when the restore has ended.
func TestRestoreMySQL(t *testing.T) {
	type want struct {
		Name, ID, Before, Key string
		Encrypted             bool
	}
	for name, tc := range map[string]struct {
		reason, spec string
		own, escrow  string
		want         want
	}{
		"Backup":    {reason: "A Backup has its place.", spec: "{backupRef: {name: ledger-copies}}", want: want{Name: "ledger-copies"}},
		"Generated": {reason: "The key that was generated for it reads it.", spec: "{backupRef: {name: ledger-copies}}", own: "K1\n", want: want{Name: "ledger-copies", Key: "K1\n", Encrypted: true}},
		"Escrow":    {reason: "Or the copy of it.", spec: "{backupRef: {name: ledger-copies}}", escrow: "K2\n", want: want{Name: "ledger-copies", Key: "K2\n", Encrypted: true}},
		"Differ":    {reason: "Where they differ, each has its backups.", spec: "{backupRef: {name: ledger-copies}}", own: "K1\n", escrow: "K2\n", want: want{Name: "ledger-copies", Key: "K1\nK2\n", Encrypted: true}},
		"ID":        {reason: "A backup may be named.", spec: "{backupRef: {name: ledger-copies}, id: 20261127T030000Z-x7k2p}", want: want{Name: "ledger-copies", ID: "20261127T030000Z-x7k2p"}},
		"Before": {
			reason: "So may the first transaction that is not wanted.", spec: "{backupRef: {name: ledger-copies}, beforeTransaction: '3e11fa47-71ca-11e1-9e33-c80aa9429562:23'}",
			want: want{Name: "ledger-copies", Before: "3e11fa47-71ca-11e1-9e33-c80aa9429562:23"},
		},
		"Place": {reason: "A place is one of a Backup that is gone.", spec: "{destination: {type: s3, bucket: b, secretRef: {name: store}}, name: ledger-copies}", escrow: "K2\n", want: want{Name: "ledger-copies", Key: "K2\n", Encrypted: true}},
	} {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, "{engine: mysql, size: 3, version: '9.7', restoreFrom: "+tc.spec+"}")
			c.Serve("backup")
			storeSecrets(t, c)
			c.Others = append(c.Others, functionstest.Parse(t, `{apiVersion: backup.example.com/v1, kind: Backup, metadata: {name: ledger-copies, namespace: team}, spec: {forProvider: {method: physical,
				source: {type: mysql, connection: {databaseClusterRef: {name: ledger}}}, destination: {type: s3, bucket: b, secretRef: {name: store}}}}}`))
			if tc.own != "" {
				c.Others = append(c.Others, functionstest.Secret(t, "ledger-copies-dump-key", map[string]string{"key": tc.own}))
			}
			if tc.escrow != "" {
				s := functionstest.Secret(t, "team.ledger-copies.backup", map[string]string{"key": tc.escrow})
				functionstest.Fields(s, "metadata")["namespace"] = functionstest.Parse(t, "{v: storeplane-escrow}").GetFields()["v"]
				c.Others = append(c.Others, s)
			}
			template := func() corev1.PodTemplateSpec {
				return functionstest.As[k8sappsv1.StatefulSet](t, c.Observed["mysql"]).Spec.Template
			}
			for range 3 {
				c.Reconcile()
			}
			r := instance.Restore{}
			if err := json.Unmarshal([]byte(c.SecretValue("source", instance.RestoreFile)), &r); err != nil {
				t.Fatalf("%v; the claim is %s, %q", err, c.Phase(), c.Message())
			}
			if diff := cmp.Diff(backupv1.Destination{Type: "s3", Bucket: "b"}, r.Destination); diff != "" || r.Namespace != "team" {
				t.Errorf("%s\nthe place: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, want{Name: r.Name, ID: r.ID, Before: r.Before, Key: c.SecretValue("source", instance.RestoreKey), Encrypted: r.Encrypted}); diff != "" {
				t.Errorf("%s\nwhat is restored: -want, +got:\n%s", tc.reason, diff)
			}
			before := template()
			if !slices.ContainsFunc(before.Spec.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == instance.RestoreDir }) {
				t.Errorf("%s\nthe server mounts nothing to restore from", tc.reason)
			}
			c.Report("orders-mysql-0.json", `{"restore":{"message":"Restoring backup 20200101T000000Z-abc"}}`)
			c.Reconcile()
			if c.Phase() != "Restoring" || !strings.Contains(c.Message(), "Restoring backup 20200101T000000Z-abc") {
				t.Errorf("%s\nwant Restoring, got %s, %q", tc.reason, c.Phase(), c.Message())
			}
			c.Report("orders-mysql-0.json", `{}`)
			c.Settle()
			if c.Phase() != "Running" || c.Observed["source"] != nil {
				t.Errorf("%s\nwant Running without the source, got %s, %q", tc.reason, c.Phase(), c.Message())
			}
			if diff := cmp.Diff(before, template()); diff != "" {
				t.Errorf("%s\nthe end of a restore replaces servers: -before, +after:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRestoreMySQLRefused: what no server of engine mysql can be filled from.
func TestRestoreMySQLRefused(t *testing.T) {
	config := "restoreFrom.backupRef: Backup other has no destination.secretRef, and its ProviderConfig is not read here: create the claim again with restoreFrom.destination, the bucket, prefix, endpoint and secretRef of its backups, or without secretRef for those in the platform's store, and restoreFrom.name: other"
	for name, tc := range map[string]struct{ reason, method, source, destination, want string }{
		"Config": {reason: "The function knows no ProviderConfig.", method: "physical", source: "mysql", destination: "{type: s3, bucket: b}", want: config},
		"Dump":   {reason: "A dump is restored by a Restore.", method: "logical", source: "mysql", destination: "{type: s3, bucket: b}", want: "restoreFrom.backupRef: Backup other has method logical: create the claim again without restoreFrom, and restore it with a Restore"},
		"Engine": {reason: "It is another database.", method: "physical", source: "postgresql", destination: "{type: s3, bucket: b}", want: "restoreFrom.backupRef: Backup other has source.type postgresql, and this claim has engine mysql: create the claim again with a Backup of the same engine"},
		"Volume": {reason: "No server mounts it.", method: "physical", source: "mysql", destination: "{type: volume, bucket: disk}", want: "restoreFrom: the backups of team/other are on a volume, which servers of engine mysql cannot read: create the claim again with one in an object store, or without restoreFrom to restore a dump with a Restore"},
	} {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, "{engine: mysql, size: 1, version: '9.7', restoreFrom: {backupRef: {name: other}}}")
			c.Serve("backup")
			c.Others = append(c.Others, functionstest.Parse(t, `{apiVersion: backup.example.com/v1, kind: Backup, metadata: {name: other, namespace: team}, spec: {forProvider: {method: `+tc.method+`,
				source: {type: `+tc.source+`, connection: {databaseClusterRef: {name: sales}}}, destination: `+tc.destination+`}}}`))
			c.Reconcile()
			c.Reconcile()
			if c.Phase() != "Failed" || c.Message() != tc.want {
				t.Errorf("%s\nwant Failed, %q\ngot %s, %q", tc.reason, tc.want, c.Phase(), c.Message())
			}
		})
	}
}

// TestRestoreMySQLWaits: the claim reports what its servers wait for before one restores, and that it is
// refused while a user has to decide.
func TestRestoreMySQLWaits(t *testing.T) {
	for name, tc := range map[string]struct{ reason, held, phase string }{
		"Waits":     {reason: "It may pass.", held: `{"message":"Waiting for orders-mysql-1"}`, phase: "Restoring"},
		"Undecided": {reason: "It does not pass by itself.", held: `{"message":"Volume claim x holds a database","undecided":true}`, phase: "Failed"},
	} {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, "{engine: mysql, size: 3, version: '9.7', restoreFrom: {destination: {type: s3, bucket: b, secretRef: {name: store}}, name: copies}}")
			storeSecrets(t, c)
			for range 3 {
				c.Reconcile()
			}
			c.Report("orders-mysql-0.json", `{"held":`+tc.held+`}`)
			c.Reconcile()
			held := instance.Held{}
			if err := json.Unmarshal([]byte(tc.held), &held); err != nil {
				t.Fatal(err)
			}
			if c.Phase() != tc.phase || !strings.Contains(c.Message(), held.Message) {
				t.Errorf("%s\nwant %s with %q, got %s, %q", tc.reason, tc.phase, held.Message, c.Phase(), c.Message())
			}
		})
	}
}
