package manager

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
)

// TestBegin: the initialization of a cluster is retried if the initializing server is gone.
func TestBegin(t *testing.T) {
	const taken, identifier, gone = "", "7512345678901234567", "gone"
	empty := &patroni.Status{State: patroni.StateStopped, Role: "uninitialized"}
	stopped := &patroni.Status{State: patroni.StateStopped, Role: patroni.RoleReplica}
	asleep := []patroni.Member{{Name: setName + "-0", Role: patroni.RoleReplica, State: patroni.StateStopped}, {Name: setName + "-1", Role: patroni.RoleReplica, State: patroni.StateStopped}}
	with := func(state, role string) []patroni.Member {
		return []patroni.Member{{Name: setName + "-0", Role: role, State: state}, asleep[1]}
	}
	always := func(s *patroni.Status) []*patroni.Status { return []*patroni.Status{s, s, s, s, s} }
	cases := map[string]struct {
		reason  string
		seen    []*patroni.Status // one per period
		members []patroni.Member
		was     string
		// reported is the last report of the primary, and others the status of the other servers.
		reported instance.Cluster
		others   *patroni.Status
		// gone means that the first server has no pod.
		gone bool
		want string
		held string
	}{
		"Abandoned":  {reason: "A server began to create the cluster, and no server continues.", seen: always(empty), members: asleep, was: taken, want: gone},
		"Alone":      {reason: "A server that knows of no other begins too.", seen: always(empty), was: taken, want: gone},
		"Moment":     {reason: "Who began may not have said so yet.", seen: always(empty)[:3], members: asleep, was: taken, want: taken},
		"Makes":      {reason: "Another one makes it.", seen: always(empty), members: with("initializing new cluster", patroni.RoleReplica), was: taken, want: taken},
		"Restores":   {reason: "Another one restores it, which takes long.", seen: always(empty), members: with("running custom bootstrap script", patroni.RoleReplica), was: taken, want: taken},
		"Leads":      {reason: "There is a leader, who may be copied.", seen: always(empty), members: with(patroni.StateStopped, "leader"), was: taken, want: taken},
		"Made":       {reason: "A cluster that was made has data somewhere, and is not made again.", seen: always(empty), members: asleep, was: identifier, others: stopped, want: identifier, held: "Waiting for " + setName + "-0, which may have this cluster's data, since " + setName + "-1 has none"},
		"Away":       {reason: "Nor where a server that may have it does not answer.", seen: always(empty), was: identifier, want: identifier, held: "Waiting for " + setName + "-0, which may have this cluster's data, since " + setName + "-1 has none"},
		"NoPod":      {reason: "Nor where no server has the volume.", seen: always(empty), members: asleep, was: identifier, others: empty, gone: true, want: identifier, held: "Waiting for volume claim data-" + setName + "-0, which may have this cluster's data, since " + setName + "-1 has none: raise size so that its server starts, or delete the volume claim if what is on it is not needed"},
		"Left":       {reason: "A server of a deleted cluster has written that it was made, and goes on for a moment.", seen: always(empty), members: asleep, was: identifier, others: empty, want: gone},
		"LeftAll":    {reason: "It has written what it knew, too.", seen: always(empty), members: asleep, was: identifier, others: empty, reported: instance.Cluster{Primary: setName + "-0", Set: "earlier", Owner: "earlier"}, want: gone},
		"LeftData":   {reason: "A volume that it has left has data.", seen: always(empty), members: asleep, was: identifier, others: stopped, reported: instance.Cluster{Primary: setName + "-0", Set: "earlier", Owner: "earlier"}, want: identifier, held: "Waiting for " + setName + "-0, which may have this cluster's data, since " + setName + "-1 has none"},
		"Lost":       {reason: "Where a server has led no server creates a new cluster in place of a lost one.", seen: always(empty), members: asleep, was: identifier, others: empty, reported: instance.Cluster{Primary: setName + "-0", Set: "this"}, want: identifier, held: "no volume has this cluster's data any more, which " + setName + "-0 led: restore a backup under another name (spec.restoreFrom), or delete ConfigMap " + setName + "-config to create the cluster again without that data"},
		"LostAgain":  {reason: "One that was restored cannot begin without what it was restored with.", seen: always(empty), members: asleep, was: identifier, others: empty, reported: instance.Cluster{Primary: setName + "-0", Set: "this", System: "7", Stanza: "7-0a1b2c3d"}, want: identifier, held: "no volume has this cluster's data any more, which " + setName + "-0 led: restore a backup under another name (spec.restoreFrom), or delete this DatabaseCluster and apply it again, which restores its source once more"},
		"LostSet":    {reason: "Nor where the StatefulSet was deleted, and the volumes with it.", seen: always(empty), members: asleep, was: identifier, others: empty, reported: instance.Cluster{Primary: setName + "-0", Set: "earlier", Owner: "dbc"}, want: identifier, held: "no volume has this cluster's data any more, which " + setName + "-0 led: restore a backup under another name (spec.restoreFrom), or delete ConfigMap " + setName + "-config to create the cluster again without that data"},
		"LostBefore": {reason: "A manager of an older version does not report which servers it is about.", seen: always(empty), members: asleep, was: identifier, others: empty, reported: instance.Cluster{Primary: setName + "-0"}, want: identifier, held: "no volume has this cluster's data any more, which " + setName + "-0 led: restore a backup under another name (spec.restoreFrom), or delete ConfigMap " + setName + "-config to create the cluster again without that data"},
		"HasData":    {reason: "A server with data is none of those that wait.", seen: always(&patroni.Status{State: patroni.StateStopped, Role: patroni.RoleReplica}), members: asleep, was: taken, want: taken},
		"Works":      {reason: "Nor is one that makes the cluster.", seen: always(&patroni.Status{State: "initializing new cluster", Role: "uninitialized"}), members: asleep, was: taken, want: taken},
		"NotForLong": {reason: "The time starts over when a server does something.", seen: []*patroni.Status{empty, empty, {State: "initializing new cluster", Role: "uninitialized"}, empty, empty, empty}, members: asleep, was: taken, want: taken},
		"NoPatroni":  {reason: "Without Patroni the state is unknown.", seen: always(nil), members: asleep, was: taken, want: taken},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a, config := installed(t)
			settings := &corev1.ConfigMap{ObjectMeta: named(setName + "-config")}
			settings.Annotations = map[string]string{initializeAnnotation: tc.was, "config": "{}"}
			a.put("configmaps", settings)
			fake, at := newServers(t)
			fake.set(func(s *servers) { s.cluster = patroni.Cluster{Members: tc.members} })
			m, err := New(configOf(t, setName+"-1", at.URL), config, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			a.put("configmaps", &corev1.ConfigMap{ObjectMeta: named(setName + "-status"), Data: map[string]string{instance.ClusterKey: text(t, tc.reported)}})
			m.SetController("this")
			m.SetOwner(&metav1.OwnerReference{Kind: "DatabaseCluster", Name: "db", UID: "dbc"})
			if tc.gone {
				a.remove("pods/" + setName + "-0")
			}
			m.remote = func(string) *patroni.Client {
				if tc.others == nil {
					return patroni.At("http://127.0.0.1:1", m.access())
				}
				return patroni.At(at.URL, m.access())
			}
			if tc.others != nil {
				fake.set(func(s *servers) { s.status = *tc.others })
			}
			watching(t, m)
			b, now := &member{Manager: m}, time.Now()
			for _, s := range tc.seen {
				b.retryBootstrap(t.Context(), s, now)
				now = now.Add(memberPeriod)
			}

			a.mu.Lock()
			defer a.mu.Unlock()
			annotations, _ := a.objects["configmaps/"+setName+"-config"]["metadata"].(map[string]any)["annotations"].(map[string]any)
			got, held := annotations[initializeAnnotation].(string)
			if !held {
				got = gone
			}
			if got != tc.want {
				t.Errorf("%s\nbegin(): the cluster is %q, want %q", tc.reason, got, tc.want)
			}
			if b.lost.Message != tc.held {
				t.Errorf("%s\nbegin(): it says %q, want %q", tc.reason, b.lost.Message, tc.held)
			}
			if annotations["config"] != "{}" {
				t.Errorf("begin(): it changed what is not its own: %v", annotations)
			}
		})
	}
}

// TestBeginOnce: a mark that a server has set again since the managers began to count is not
// removed before it has been there as long itself, although it has the same value.
func TestBeginOnce(t *testing.T) {
	const taken, gone = "", "gone"
	period := int(memberPeriod / time.Second)
	cases := map[string]struct {
		reason string
		// managers holds when each manager passes first, marked when a server marks the cluster
		// and changed when something else changes Patroni's configuration, in seconds.
		managers, marked, changed []int
		unmarked                  bool // at first
		until                     int
		want                      string
		removed                   int
	}{
		"Again":   {reason: "The mark is of another server than at first.", managers: []int{0}, marked: []int{29}, until: 30, want: taken},
		"First":   {reason: "There was no mark at first.", managers: []int{0}, unmarked: true, marked: []int{25}, until: 30, want: taken},
		"Two":     {reason: "Another manager has removed the mark, and the server that has set it since may not have shown its state yet.", managers: []int{0, 5}, marked: []int{31}, until: 35, want: taken, removed: 1},
		"Between": {reason: "A manager that comes later counts from then.", managers: []int{0, 7}, marked: []int{32}, until: 59, want: taken, removed: 1},
		"Three":   {reason: "However many managers there are, one removes it.", managers: []int{0, 1, 2}, until: 45, want: gone, removed: 1},
		"BothEnd": {reason: "The second server is gone too.", managers: []int{0, 5}, marked: []int{31}, until: 65, want: gone, removed: 2},
		"Changed": {reason: "Another change only delays it.", managers: []int{0}, changed: []int{12}, until: 60, want: gone, removed: 1},
		"Delayed": {reason: "It does delay it.", managers: []int{0}, changed: []int{12}, until: 59, want: taken},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a, config := installed(t)
			settings := &corev1.ConfigMap{ObjectMeta: named(setName + "-config")}
			settings.Annotations = map[string]string{"config": "{}"}
			if !tc.unmarked {
				settings.Annotations[initializeAnnotation] = taken
			}
			a.put("configmaps", settings)
			fake, at := newServers(t)
			fake.set(func(s *servers) { s.cluster = patroni.Cluster{} })
			var members []*member
			for i := range tc.managers {
				m, err := New(configOf(t, instance.Pod(setName, int32(i)), at.URL), config, slog.New(slog.DiscardHandler))
				if err != nil {
					t.Fatal(err)
				}
				m.SetOwner(&metav1.OwnerReference{Kind: "DatabaseCluster", Name: "db", UID: "dbc"})
				members = append(members, &member{Manager: m})
			}
			annotate := func(change func(annotations map[string]any)) {
				a.change("configmaps/"+setName+"-config", func(o map[string]any) {
					change(o["metadata"].(map[string]any)["annotations"].(map[string]any))
				})
			}
			empty, start := &patroni.Status{State: patroni.StateStopped, Role: "uninitialized"}, time.Now()
			for s := range tc.until + 1 {
				if slices.Contains(tc.changed, s) {
					annotate(func(annotations map[string]any) { annotations["config"] = `{"ttl":20}` })
				}
				if slices.Contains(tc.marked, s) {
					annotate(func(annotations map[string]any) { delete(annotations, initializeAnnotation) })
					annotate(func(annotations map[string]any) { annotations[initializeAnnotation] = taken })
				}
				for i, first := range tc.managers {
					if s >= first && (s-first)%period == 0 {
						members[i].retryBootstrap(t.Context(), empty, start.Add(time.Duration(s)*time.Second))
					}
				}
			}

			got, held := a.annotations("configmaps/" + setName + "-config")[initializeAnnotation].(string)
			if !held {
				got = gone
			}
			if got != tc.want {
				t.Errorf("%s\nretryBootstrap(...): the mark is %q, want %q", tc.reason, got, tc.want)
			}
			if got := len(a.events()); got != tc.removed {
				t.Errorf("%s\nretryBootstrap(...): %d marks were removed, want %d", tc.reason, got, tc.removed)
			}
		})
	}
}

// watching waits until the manager has read the reports.
func watching(t *testing.T, m *Manager) {
	t.Helper()
	go m.Status.Run(t.Context())
	eventually(t, "reports are known", func() bool { return m.Status.One() != nil })
}
