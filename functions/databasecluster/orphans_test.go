package databasecluster_test

import (
	"testing"
	"time"

	"github.com/storeplane/storeplane/functions"
	"github.com/storeplane/storeplane/functions/functionstest"
	"github.com/storeplane/storeplane/internal/converge"
)

func orphaned(t testing.TB, c *crossplane, claim string) *crossplane {
	t.Helper()
	return functionstest.Orphaned(t, c, "orders", claim)
}

// TestOrphans: a claim that is created again adopts the objects of the one before, whatever it sets
// in fields that no longer matter.
func TestOrphans(t *testing.T) {
	cases := map[string]struct {
		reason      string
		first, then string
		message     string
	}{
		"Same": {reason: "The same file again.", first: functionstest.Production, then: functionstest.Production},
		"Restored": {
			reason: "A backup that was restored long ago may be gone by now.",
			first:  functionstest.Production, then: "{size: 3, version: '17', environment: production, restoreFrom: {destination: {type: s3, bucket: gone, secretRef: {name: gone}}, name: old}}",
		},
		"Smaller": {
			reason: "What the servers that were left do not allow is refused with its reason, not without end.",
			first:  functionstest.Production, then: "{size: 3, version: '17', environment: production, storageSize: 1Gi}",
			message: "storageSize may not shrink: 20Gi → 1Gi",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			was := simulate(t, tc.first)
			was.Settle()
			c := orphaned(t, was, functionstest.DatabaseCluster(tc.then))
			c.Reconcile()
			if tc.message != "" {
				if _, got := c.Condition("Accepted"); got != tc.message {
					t.Errorf("%s\nwant %q, got %q", tc.reason, tc.message, got)
				}
				return
			}
			for _, component := range []string{"credentials", "connection", "ca", "postgresql"} {
				if c.Observed[component] == nil {
					t.Fatalf("%s\n%s is not found: %s", tc.reason, component, c.Message())
				}
			}
			if got, want := c.SecretValue("connection", "password"), was.SecretValue("connection", "password"); got != want {
				t.Errorf("%s\nthe password was drawn again", tc.reason)
			}
			if got, want := c.SecretValue("ca", "ca.key"), was.SecretValue("ca", "ca.key"); got != want {
				t.Errorf("%s\nthe authority was made again", tc.reason)
			}
		})
	}
}

// TestRefusedName: the certificates of a claim that is refused because a name is taken are still
// renewed.
func TestRefusedName(t *testing.T) {
	clk := newClock()
	c := simulate(t, functionstest.Production, functions.WithSource(clk))
	c.Settle()
	c.Others = append(c.Others, functionstest.Secret(t, "orders-user-reader", map[string]string{"password": "theirs"}))
	c.Edit([]any{map[string]any{"name": "reader"}}, "users")
	if rsp := c.Reconcile(); !converge.IsFatal(rsp) {
		t.Fatalf("want a claim whose name is taken refused, got %v", rsp.GetResults())
	}
	was := c.SecretValue("tls", "tls.crt")
	clk.now = functionstest.NewYear.Add(61 * 24 * time.Hour)
	if rsp := c.Reconcile(); converge.IsFatal(rsp) || c.SecretValue("tls", "tls.crt") == was {
		t.Errorf("want the certificate renewed, got %v", rsp.GetResults())
	}
	if c.Observed["user-reader"] != nil {
		t.Errorf("nothing is applied over what is not the claim's")
	}
}
