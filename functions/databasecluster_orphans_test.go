package functions_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/storeplane/storeplane/functions"
)

// orphaned is a new claim in a namespace where another one of its name has left all
// that it had, as kubectl delete --cascade=orphan does.
func (c *cluster) orphaned(t *testing.T, claim string) *cluster {
	t.Helper()
	next := newCluster(t, claim)
	next.fn, next.settings = c.fn, c.settings
	next.others = append(next.others, c.others...)
	for component, o := range c.observed {
		left := proto.CloneOf(o)
		delete(fields(left, "metadata"), "managedFields")
		set(left, "orders", "metadata", "labels", "crossplane.io/composite")
		set(left, component, "metadata", "annotations", "crossplane.io/composition-resource-name")
		next.others = append(next.others, left)
	}
	return next
}

// TestDatabaseClusterOrphans: a claim that is created again finds what it had,
// whatever its own file says that does not matter any more.
func TestDatabaseClusterOrphans(t *testing.T) {
	cases := map[string]struct {
		reason      string
		first, then string
		message     string
	}{
		"Same": {reason: "The same file again.", first: production, then: production},
		"Restored": {
			reason: "A backup that was restored long ago may be gone by now.",
			first:  production, then: "{size: 3, version: '17', environment: production, restoreFrom: {destination: {type: s3, bucket: gone, secretRef: {name: gone}}, name: old}}",
		},
		"Smaller": {
			reason: "What the servers that were left do not allow is refused with its reason, not without end.",
			first:  production, then: "{size: 3, version: '17', environment: production, storageSize: 1Gi}",
			message: "storageSize may not shrink: 20Gi → 1Gi",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			was := newCluster(t, databaseCluster(tc.first))
			was.settle()
			c := was.orphaned(t, databaseCluster(tc.then))
			c.reconcile()
			if tc.message != "" {
				if _, got := c.condition("Accepted"); got != tc.message {
					t.Errorf("%s\nwant %q, got %q", tc.reason, tc.message, got)
				}
				return
			}
			for _, component := range []string{"credentials", "connection", "ca", "postgresql"} {
				if c.observed[component] == nil {
					t.Fatalf("%s\n%s is not found: %s", tc.reason, component, c.message())
				}
			}
			if got, want := c.value("connection", "password"), was.value("connection", "password"); got != want {
				t.Errorf("%s\nthe password was drawn again", tc.reason)
			}
			if got, want := c.value("ca", "ca.key"), was.value("ca", "ca.key"); got != want {
				t.Errorf("%s\nthe authority was made again", tc.reason)
			}
		})
	}
}

// TestDatabaseClusterRefusedName: a claim that is refused for a name that is taken
// has its certificates renewed all the same.
func TestDatabaseClusterRefusedName(t *testing.T) {
	clk := newClock()
	c := newCluster(t, databaseCluster(production), functions.WithSource(clk))
	c.settle()
	c.others = append(c.others, secretObject(t, "orders-user-reader", map[string]string{"password": "theirs"}))
	c.edit([]any{map[string]any{"name": "reader"}}, "users")
	if rsp := c.reconcile(); !isFatal(rsp) {
		t.Fatalf("want a claim whose name is taken refused, got %v", rsp.GetResults())
	}
	was := c.value("tls", "tls.crt")
	clk.now = newYear.Add(61 * 24 * time.Hour)
	if rsp := c.reconcile(); isFatal(rsp) || c.value("tls", "tls.crt") == was {
		t.Errorf("want the certificate renewed, got %v", rsp.GetResults())
	}
	if c.observed["user-reader"] != nil {
		t.Errorf("nothing is applied over what is not the claim's")
	}
}

// TestProtectionsAreApart: a DatabaseCluster and an EcommercePlatform of one name
// share no object.
func TestProtectionsAreApart(t *testing.T) {
	names := map[string]string{}
	for _, claim := range []string{databaseCluster(production), ecommercePlatform(bigShop)} {
		c := newCluster(t, claim)
		set(c.claim, "store", "metadata", "name")
		c.settle()
		for component, o := range c.observed {
			key := get(o, "kind").GetStringValue() + " " + get(o, "metadata", "name").GetStringValue()
			if other := names[key]; other != "" {
				t.Errorf("%s is %s of both kinds", key, component)
			}
			names[key] = component
		}
	}
}
