package manager

import (
	"log/slog"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
)

// TestBehind: a server that has not reached the last primary's timeline reports why it does not
// lead, once there has been no leader for some periods.
func TestBehind(t *testing.T) {
	const ways = " has not replayed, so that writes would be lost. " +
		"To lead without them, annotate the DatabaseCluster with storeplane.example.com/lead-with=<volume claim>@dbc-20260102T030405Z, and delete that volume's pod"
	const says = "Waiting for " + setName + "-0 to lead again: the cluster was on timeline 3, which " + setName + "-1, on timeline 2," + ways
	at := func(timeline int64) *patroni.Status {
		return &patroni.Status{State: patroni.StateRunning, Role: patroni.RoleReplica, Timeline: timeline}
	}
	leads := &patroni.Status{State: patroni.StateRunning, Role: "primary", Timeline: 3}
	led := patroni.Member{Name: setName + "-0", Role: "leader", State: patroni.StateRunning}
	self := patroni.Member{Name: setName + "-1", Role: patroni.RoleReplica, State: patroni.StateRunning}
	cases := map[string]struct {
		reason  string
		seen    []*patroni.Status // one per period
		members []patroni.Member
		history [][]any
		want    string

		// leaderless means that the server may lead, though no server does.
		leaderless bool
	}{
		"Behind":     {reason: "It may not lead.", seen: []*patroni.Status{at(2), at(2), at(2), at(2)}, members: []patroni.Member{self}, want: says},
		"Moment":     {reason: "The last primary may be about to come back.", seen: []*patroni.Status{at(2), at(2), at(2)}, members: []patroni.Member{self}},
		"Led":        {reason: "There is a leader, which it follows.", seen: []*patroni.Status{at(2), at(2), at(2), at(2)}, members: []patroni.Member{led, self}},
		"Same":       {reason: "It saw that timeline.", seen: []*patroni.Status{at(3), at(3), at(3), at(3)}, members: []patroni.Member{self}, leaderless: true},
		"Unknown":    {reason: "It does not know its own.", seen: []*patroni.Status{at(0), at(0), at(0), at(0)}, members: []patroni.Member{self}, want: "Waiting for " + setName + "-0 to lead again: the cluster was on timeline 3, which " + setName + "-1" + ways},
		"Starts":     {reason: "It is not up yet.", seen: []*patroni.Status{{State: "starting", Role: patroni.RoleReplica}, {State: "starting", Role: patroni.RoleReplica}, {State: "starting", Role: patroni.RoleReplica}, {State: "starting", Role: patroni.RoleReplica}}, members: []patroni.Member{self}},
		"Unreported": {reason: "The last primary was gone before its manager could report, and Patroni remembers.", seen: []*patroni.Status{at(3), at(3), at(3), at(3)}, members: []patroni.Member{self}, history: [][]any{{1, 5, "x"}, {2, 6, "x"}, {3, 7, "x"}}, want: "Waiting for " + setName + "-0 to lead again: the cluster was on timeline 4, which " + setName + "-1, on timeline 3," + ways},
		"Again":      {reason: "The time starts over when it leads.", seen: []*patroni.Status{at(2), at(2), leads, at(2), at(2)}, members: []patroni.Member{self}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a, config := installed(t)
			a.put("configmaps", &corev1.ConfigMap{ObjectMeta: named(setName + "-status"), Data: map[string]string{instance.ClusterKey: text(t, instance.Cluster{Primary: setName + "-0", Timeline: 3, Began: "20260102T030405Z"})}})
			fake, at := newServers(t)
			fake.set(func(s *servers) { s.cluster, s.history = patroni.Cluster{Members: tc.members}, tc.history })
			m, err := New(configOf(t, setName+"-1", at.URL), config, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			m.SetOwner(&metav1.OwnerReference{Kind: "DatabaseCluster", Name: "db", UID: "dbc"})
			watching(t, m)
			b, now := &member{Manager: m}, time.Now()
			var got instance.Member
			for _, s := range tc.seen {
				got = instance.Member{}
				b.reportNoLeader(t.Context(), s, now, &got)
				now = now.Add(memberPeriod)
			}
			message := ""
			if got.Held != nil {
				message = got.Held.Message
			}
			if message != tc.want || (got.Leaderless != "") != (tc.want != "" || tc.leaderless) {
				t.Errorf("%s\nreportNoLeader(): it reports %q, leaderless %q, want %q", tc.reason, message, got.Leaderless, tc.want)
			}
		})
	}
}
