package manager

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
)

// TestBootstrapped: the servers' own roles are created where they are missing, but not before this
// server leads: Patroni creates them in a new database, and fails if they appear meanwhile.
func TestBootstrapped(t *testing.T) {
	cases := map[string]struct {
		members []patroni.Member
		want    map[string]string
	}{
		"Leads":      {members: []patroni.Member{{Name: "db-postgresql-0", Role: "leader"}}, want: map[string]string{instance.UserReplication: "LOGIN REPLICATION", instance.UserRewind: "LOGIN"}},
		"NoneLeads":  {members: []patroni.Member{{Name: "db-postgresql-0", Role: "replica"}}, want: map[string]string{}},
		"AnotherOne": {members: []patroni.Member{{Name: "db-postgresql-1", Role: "leader"}}, want: map[string]string{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, server := newServers(t)
			s.set(func(s *servers) { s.cluster.Members = tc.members })
			c := configOf(t, "db-postgresql-0", server.URL)
			m := &Manager{Config: c, patroni: patroni.At(server.URL, patroni.NewAccess(c.Credentials, c.control()))}
			got := map[string]string{}
			for _, l := range logins(&instance.Desired{}, nil, (&primary{Manager: m}).bootstrapped(t.Context())) {
				if l.Create != "" {
					got[l.Name] = l.Create
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("roles that are created: -want, +got:\n%s", diff)
			}
		})
	}
}
