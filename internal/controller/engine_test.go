package controller_test

import (
	"strings"
	"testing"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
)

// TestPhysicalOfOtherEngine: a physical Backup of a DatabaseCluster of another engine is refused with that engine, and
// does not wait for what never comes.
func TestPhysicalOfOtherEngine(t *testing.T) {
	cases := map[string]struct {
		reason string
		asked  backupv1.Engine
		engine string
	}{
		"PostgreSQL": {reason: "A cluster of MySQL has no CronJobs.", asked: backupv1.PostgreSQL, engine: "mysql"},
		"MySQL":      {reason: "A cluster of PostgreSQL cannot be cloned.", asked: backupv1.MySQL, engine: "postgresql"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := aBackup()
			p := &b.Spec.ForProvider
			p.Method, p.Schedule = backupv1.Physical, ""
			p.Source = backupv1.Database{Type: tc.asked, Connection: backupv1.Connection{DatabaseClusterRef: &backupv1.LocalReference{Name: "ledger"}}}
			cluster := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "apps.example.com/v1", "kind": "DatabaseCluster",
				"metadata": map[string]any{"namespace": "shop", "name": "ledger"}, "spec": map[string]any{"engine": tc.engine, "version": "9.7"},
			}}
			w := newWorld(t, append(shop(), cluster, b)...)
			if _, err := w.reconcile(t, b); err != nil {
				t.Fatal(err)
			}
			if err := w.Get(t.Context(), client.ObjectKeyFromObject(b), b); err != nil {
				t.Fatal(err)
			}
			c := b.GetCondition(xpv2.TypeReady)
			if want := "whose engine is " + tc.engine + ", and type is " + string(tc.asked); string(c.Reason) != backupv1.ReasonInvalidTask || !strings.Contains(c.Message, want) {
				t.Errorf("%s\nwant it refused with %q, got %s: %s", tc.reason, want, c.Reason, c.Message)
			}
		})
	}
}
