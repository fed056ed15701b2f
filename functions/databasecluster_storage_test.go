package functions_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/storeplane/storeplane/internal/instance"
)

// TestDatabaseClusterGrows: the managers grow the volumes. The StatefulSet stays
// as it is: the API server refuses another template.
func TestDatabaseClusterGrows(t *testing.T) {
	c := newCluster(t, databaseCluster(production))
	c.settle()
	set := proto.CloneOf(get(c.observed["postgresql"], "spec"))
	capacity := func(sizes ...string) {
		t.Helper()
		for i, s := range sizes {
			c.reportMember(int32(i), func(m *instance.Member) { m.Capacity = s })
		}
	}
	c.edit("30Gi", "storageSize")
	rsp := c.reconcile()
	if got := told(t, c).Storage; got != "30Gi" {
		t.Errorf("want the managers to be told of 30Gi, got %s", got)
	}
	if !proto.Equal(set, get(c.observed["postgresql"], "spec")) {
		t.Errorf("want the StatefulSet as it was")
	}
	if len(waiting(rsp)) == 0 || c.phase() != "Upgrading" {
		t.Errorf("want it to be on its way, got %s", c.phase())
	}

	c.heal("instances")
	for _, sizes := range [][]string{{"20Gi", "20Gi", "20Gi"}, {"30Gi", "20Gi", "20Gi"}, {"30Gi", "30Gi", "20Gi"}} {
		capacity(sizes...)
		rsp := c.reconcile()
		if want := "Waiting for postgresql (Volumes are being grown)"; len(waiting(rsp)) == 0 || c.phase() != "Upgrading" || c.message() != want {
			t.Errorf("%v: want Upgrading and %q, got %s and %q", sizes, want, c.phase(), c.message())
		}
	}
	capacity("30Gi", "30Gi", "30Gi")
	if rsp := c.reconcile(); len(waiting(rsp)) > 0 || c.phase() != "Running" {
		t.Errorf("want Running, got %s, %q", c.phase(), c.message())
	}

	// A server that is added later has the old template's volume first.
	c.edit(4, "size")
	c.settle()
	capacity("30Gi", "30Gi", "30Gi", "20Gi")
	c.reconcile()
	if c.component("postgresql") != "Volumes are being grown" {
		t.Errorf("want the new one's volume to be waited for, got %q", c.component("postgresql"))
	}
}

// TestDatabaseClusterCanNotGrow: a volume that cannot grow is said to be so,
// and what runs goes on.
func TestDatabaseClusterCanNotGrow(t *testing.T) {
	c := newCluster(t, databaseCluster(production))
	c.settle()
	c.edit("30Gi", "storageSize")
	c.reconcile()
	c.heal("instances")
	for i := range int32(3) {
		c.reportMember(i, func(m *instance.Member) {
			m.Capacity, m.Volume = "20Gi", "cannot grow: its StorageClass does not allow it"
		})
	}
	rsp := c.reconcile()
	const each = " cannot grow: its StorageClass does not allow it"
	want := "Volumes do not have their size: that of orders-postgresql-0" + each + ", that of orders-postgresql-1" + each + ", that of orders-postgresql-2" + each
	if len(waiting(rsp)) > 0 || c.phase() != "Degraded" || c.message() != want || c.verdict("StorageHealthy") != "False VolumeResizeFailed "+want {
		t.Errorf("want Degraded, Ready and %q, got %s, waiting for %v, %q and %q", want, c.phase(), waiting(rsp), c.message(), c.verdict("StorageHealthy"))
	}
}

// TestDatabaseClusterVolumes: the template of volumes cannot be changed once
// the StatefulSet exists, or the API server refuses all of it for ever.
func TestDatabaseClusterVolumes(t *testing.T) {
	template := func(c *cluster) *structpb.Value { return get(c.observed["postgresql"], "spec", "volumeClaimTemplates") }
	cases := map[string]struct {
		reason  string
		before  string // settings
		change  func(*cluster)
		storage string
	}{
		"InstallationsClass":      {reason: "The installation has another default class now.", before: "{storageClassName: old}", change: func(c *cluster) { c.install("{storageClassName: new}") }, storage: "10Gi"},
		"InstallationsFirstClass": {reason: "The installation has a default class now.", change: func(c *cluster) { c.install("{storageClassName: new}") }, storage: "10Gi"},
		"InstallationsNoClass":    {reason: "The installation's default class is gone.", before: "{storageClassName: old}", change: func(c *cluster) { c.settings = nil }, storage: "10Gi"},
		"ClaimsClass":             {reason: "The claim names a class that it did not name: the XRD does not see that.", change: func(c *cluster) { c.edit("new", "storageClassName") }, storage: "10Gi"},
		"Environment":             {reason: "The claim moves to production: what it did not say it keeps.", change: func(c *cluster) { c.edit("production", "environment") }, storage: "10Gi"},
		"SameQuantity":            {reason: "The claim says the same size in other words.", change: func(c *cluster) { c.edit("10240Mi", "storageSize") }, storage: "10Gi"},
		"Bigger":                  {reason: "The claim asks for more.", change: func(c *cluster) { c.edit("1Ti", "storageSize") }, storage: "1Ti"},
		"PlatformLabel":           {reason: "The claim is given a platform.", change: func(c *cluster) { set(c.claim, "store", "metadata", "labels", "platform") }, storage: "10Gi"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, databaseCluster(oneServer))
			if tc.before != "" {
				c.install(tc.before)
			}
			c.settle()
			before := template(c)
			tc.change(c)
			c.settle()
			if diff := cmp.Diff(before.AsInterface(), template(c).AsInterface()); diff != "" {
				t.Errorf("%s\nThe template must stay: -before, +after:\n%s", tc.reason, diff)
			}
			if got := told(t, c).Storage; got != tc.storage {
				t.Errorf("%s\nThe managers: want %s, got %s", tc.reason, tc.storage, got)
			}
		})
	}
}
