package databasecluster_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/storeplane/storeplane/functions/functionstest"
	"github.com/storeplane/storeplane/internal/instance"
)

// TestGrows: the instance managers expand the volumes. The StatefulSet does not change: the API
// server would refuse another template.
func TestGrows(t *testing.T) {
	c := simulate(t, functionstest.Production)
	c.Settle()
	set := proto.CloneOf(functionstest.Get(c.Observed["postgresql"], "spec"))
	capacity := func(sizes ...string) {
		t.Helper()
		for i, s := range sizes {
			c.ReportMember(int32(i), func(m *instance.Member) { m.Capacity = s })
		}
	}
	c.Edit("30Gi", "storageSize")
	rsp := c.Reconcile()
	if got := desiredOf(t, c).Storage; got != "30Gi" {
		t.Errorf("want the managers to be told of 30Gi, got %s", got)
	}
	if !proto.Equal(set, functionstest.Get(c.Observed["postgresql"], "spec")) {
		t.Errorf("want the StatefulSet as it was")
	}
	if len(functionstest.Waiting(rsp)) == 0 || c.Phase() != "Upgrading" {
		t.Errorf("want it to be on its way, got %s", c.Phase())
	}

	c.Heal("instances")
	for _, sizes := range [][]string{{"20Gi", "20Gi", "20Gi"}, {"30Gi", "20Gi", "20Gi"}, {"30Gi", "30Gi", "20Gi"}} {
		capacity(sizes...)
		rsp := c.Reconcile()
		if want := "Waiting for postgresql (Volumes are being grown)"; len(functionstest.Waiting(rsp)) == 0 || c.Phase() != "Upgrading" || c.Message() != want {
			t.Errorf("%v: want Upgrading and %q, got %s and %q", sizes, want, c.Phase(), c.Message())
		}
	}
	capacity("30Gi", "30Gi", "30Gi")
	if rsp := c.Reconcile(); len(functionstest.Waiting(rsp)) > 0 || c.Phase() != "Running" {
		t.Errorf("want Running, got %s, %q", c.Phase(), c.Message())
	}

	// The volume of a server that is added later begins with the size of the old template.
	c.Edit(4, "size")
	c.Settle()
	capacity("30Gi", "30Gi", "30Gi", "20Gi")
	c.Reconcile()
	if c.ComponentStatus("postgresql") != "Volumes are being grown" {
		t.Errorf("want the new one's volume to be waited for, got %q", c.ComponentStatus("postgresql"))
	}
}

// TestCanNotGrow: a volume that cannot grow is reported, and the servers keep running.
func TestCanNotGrow(t *testing.T) {
	c := simulate(t, functionstest.Production)
	c.Settle()
	c.Edit("30Gi", "storageSize")
	c.Reconcile()
	c.Heal("instances")
	for i := range int32(3) {
		c.ReportMember(i, func(m *instance.Member) {
			m.Capacity, m.Volume = "20Gi", "cannot grow: its StorageClass does not allow it"
		})
	}
	rsp := c.Reconcile()
	const each = " cannot grow: its StorageClass does not allow it"
	want := "Volumes do not have their size: that of orders-postgresql-0" + each + ", that of orders-postgresql-1" + each + ", that of orders-postgresql-2" + each
	if len(functionstest.Waiting(rsp)) > 0 || c.Phase() != "Degraded" || c.Message() != want || c.ConditionLine("StorageHealthy") != "False VolumeResizeFailed "+want {
		t.Errorf("want Degraded, Ready and %q, got %s, waiting for %v, %q and %q", want, c.Phase(), functionstest.Waiting(rsp), c.Message(), c.ConditionLine("StorageHealthy"))
	}
}

// TestVolumes: the volume template of an existing StatefulSet is never changed, or the API server
// would refuse all further updates.
func TestVolumes(t *testing.T) {
	template := func(c *crossplane) *structpb.Value {
		return functionstest.Get(c.Observed["postgresql"], "spec", "volumeClaimTemplates")
	}
	cases := map[string]struct {
		reason  string
		before  string // settings
		change  func(*crossplane)
		storage string
	}{
		"InstallationsClass":      {reason: "The installation has another default class now.", before: "{storageClassName: old}", change: func(c *crossplane) { c.InstallSettings("{storageClassName: new}") }, storage: "10Gi"},
		"InstallationsFirstClass": {reason: "The installation has a default class now.", change: func(c *crossplane) { c.InstallSettings("{storageClassName: new}") }, storage: "10Gi"},
		"InstallationsNoClass":    {reason: "The installation's default class is gone.", before: "{storageClassName: old}", change: func(c *crossplane) { c.Settings = nil }, storage: "10Gi"},
		"ClaimsClass":             {reason: "The claim names a class that it did not name: the XRD does not see that.", change: func(c *crossplane) { c.Edit("new", "storageClassName") }, storage: "10Gi"},
		"Environment":             {reason: "The claim moves to production: what it did not say it keeps.", change: func(c *crossplane) { c.Edit("production", "environment") }, storage: "10Gi"},
		"SameQuantity":            {reason: "The claim says the same size in other words.", change: func(c *crossplane) { c.Edit("10240Mi", "storageSize") }, storage: "10Gi"},
		"Bigger":                  {reason: "The claim asks for more.", change: func(c *crossplane) { c.Edit("1Ti", "storageSize") }, storage: "1Ti"},
		"PlatformLabel":           {reason: "The claim is given a platform.", change: func(c *crossplane) { functionstest.Set(c.Claim, "store", "metadata", "labels", "platform") }, storage: "10Gi"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, functionstest.OneServer)
			if tc.before != "" {
				c.InstallSettings(tc.before)
			}
			c.Settle()
			before := template(c)
			tc.change(c)
			c.Settle()
			if diff := cmp.Diff(before.AsInterface(), template(c).AsInterface()); diff != "" {
				t.Errorf("%s\nThe template must stay: -before, +after:\n%s", tc.reason, diff)
			}
			if got := desiredOf(t, c).Storage; got != tc.storage {
				t.Errorf("%s\nThe managers: want %s, got %s", tc.reason, tc.storage, got)
			}
		})
	}
}
