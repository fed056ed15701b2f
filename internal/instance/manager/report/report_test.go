package report

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/storeplane/storeplane/internal/instance"
)

func TestStandbys(t *testing.T) {
	const much, half, little = instance.LagBytes + 1, instance.LagBytes * 3 / 4, 10
	type moment struct {
		at        time.Duration
		streaming bool
		lag       int64
		want      bool
	}
	cases := map[string]struct {
		reason  string
		moments []moment
	}{
		"Peak":     {reason: "A peak is no lag", moments: []moment{{0, true, much, false}, {5 * time.Second, true, little, false}, {11 * time.Second, true, much, false}}},
		"Lags":     {reason: "It lags after a while", moments: []moment{{0, true, much, false}, {9 * time.Second, true, much, false}, {10 * time.Second, true, much, true}}},
		"Recovers": {reason: "It recovers after a while of much less", moments: []moment{{0, true, much, false}, {10 * time.Second, true, much, true}, {20 * time.Second, true, little, true}, {30 * time.Second, true, little, false}}},
		"Between":  {reason: "A bit less is not recovered", moments: []moment{{0, true, much, false}, {10 * time.Second, true, much, true}, {20 * time.Second, true, half, true}, {60 * time.Second, true, half, true}}},
		"Away":     {reason: "One that does not stream does not lag, and starts anew", moments: []moment{{0, true, much, false}, {10 * time.Second, true, much, true}, {20 * time.Second, false, 0, false}, {21 * time.Second, true, much, false}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := Lags{}
			start := time.Unix(1e9, 0)
			for _, m := range tc.moments {
				got := l.Standbys([]string{"db-1", "db-0"}, "db-0", map[string]Follower{"db-1": {Streaming: m.streaming, Synchronous: true, Lag: m.lag}}, start.Add(m.at))
				want := []instance.Standby{{Name: "db-1", Streaming: m.streaming, Synchronous: m.streaming, Lagging: m.want}}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s: after %s: -want, +got:\n%s", tc.reason, m.at, diff)
				}
			}
		})
	}
}

// TestJoined: a server that is only desired has not joined the cluster.
func TestJoined(t *testing.T) {
	is := func(name string, streaming, fresh bool) instance.Standby {
		return instance.Standby{Name: name, Streaming: streaming, New: fresh}
	}
	cases := map[string]struct {
		reason string
		before instance.Cluster
		named  bool
		now    bool // streaming
		want   bool // New
	}{
		"First":    {reason: "Before the first report no standby has joined.", want: true},
		"Joins":    {reason: "Who streams has joined.", before: instance.Cluster{Primary: "db-0", Standbys: []instance.Standby{is("db-1", false, true)}}, now: true},
		"Waits":    {reason: "Who has not streamed yet has not.", before: instance.Cluster{Primary: "db-0", Standbys: []instance.Standby{is("db-1", false, true)}}, want: true},
		"Away":     {reason: "Who has streamed stays a member.", before: instance.Cluster{Primary: "db-0", Standbys: []instance.Standby{is("db-1", true, false)}}},
		"Older":    {reason: "So do all whom an older manager names.", before: instance.Cluster{Primary: "db-0", Standbys: []instance.Standby{is("db-1", false, false)}}},
		"Failover": {reason: "So does the primary of before.", before: instance.Cluster{Primary: "db-1", Standbys: []instance.Standby{is("db-0", true, false)}}},
		"Decided":  {reason: "Who followed others than one that leads by decision has other data.", before: instance.Cluster{Primary: "db-2", Standbys: []instance.Standby{is("db-1", true, false), is("db-0", false, true)}}, want: true},
		"Follows":  {reason: "Until it streams from that one.", before: instance.Cluster{Primary: "db-2", Standbys: []instance.Standby{is("db-1", true, false)}}, now: true},
		"Named":    {reason: "A member that leads by decision may have other data, too.", before: instance.Cluster{Primary: "db-1", Standbys: []instance.Standby{is("db-0", true, false)}}, named: true, want: true},
		"Added":    {reason: "Who was not there is new.", before: instance.Cluster{Primary: "db-0", Standbys: []instance.Standby{is("db-2", true, false)}}, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Joined("db-0", []instance.Standby{is("db-1", tc.now, false)}, &tc.before, tc.named)
			if diff := cmp.Diff([]instance.Standby{is("db-1", tc.now, tc.want)}, got); diff != "" {
				t.Errorf("%s\nJoined(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPods: the problems of pods are reported, and a reason that is known stays.
// internal/podfailure tests the reasons themselves.
func TestPods(t *testing.T) {
	waiting := func(reason, message string) corev1.PodStatus {
		return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: "postgresql", Image: "r/postgresql:99", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
		}}}
	}
	said := func(name, words string) []instance.Problem {
		return []instance.Problem{{Subject: instance.SubjectPod, Name: name, Message: name + ": " + words}}
	}
	const known, unknown = "cannot pull image r/postgresql:99: not found", "cannot pull image r/postgresql:99"
	backOff := waiting("ImagePullBackOff", `Back-off pulling image "r/postgresql:99"`)
	cases := map[string]struct {
		reason string
		status corev1.PodStatus
		before []instance.Problem
		want   []instance.Problem
	}{
		"Well":         {reason: "Nothing is wrong"},
		"WellAgain":    {reason: "What was wrong and is no more is not said", before: said("db-2", known)},
		"NoImage":      {reason: "The pod's name comes first", status: waiting("ErrImagePull", "r/postgresql:99: not found"), want: said("db-2", known)},
		"BackOff":      {reason: "Kubernetes says no reason", status: backOff, want: said("db-2", unknown)},
		"BackOffAgain": {reason: "The reason that was known stays", status: backOff, before: said("db-2", known), want: said("db-2", known)},
		"BackOffOther": {reason: "Another pod's reason is not this one's", status: backOff, before: said("db-1", known), want: said("db-2", unknown)},
		"Changed":      {reason: "Another trouble takes the place of the one that was known", status: waiting("CreateContainerConfigError", `secret "x" not found`), before: said("db-2", known), want: said("db-2", `cannot start container postgresql: secret "x" not found`)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Status: tc.status}
			pod.Name = "db-2"
			if diff := cmp.Diff(tc.want, Pods([]*corev1.Pod{pod}, tc.before)); diff != "" {
				t.Errorf("%s: Pods(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestProblems(t *testing.T) {
	a := instance.Problem{Subject: instance.SubjectDatabase, Name: "a", Message: "m"}
	b := instance.Problem{Subject: instance.SubjectPod, Name: "b", Message: "m"}
	if diff := cmp.Diff([]instance.Problem{a, b}, Sort([]instance.Problem{b, a, b})); diff != "" {
		t.Errorf("Sort(...): -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]instance.Problem{b}, New([]instance.Problem{a}, []instance.Problem{a, b})); diff != "" {
		t.Errorf("New(...): -want, +got:\n%s", diff)
	}
	keys := []string{instance.ClusterKey, "db-0.json", "db-2.json", "other"}
	if diff := cmp.Diff([]string{"db-2.json"}, Obsolete(keys, []string{"db-0", "db-1"})); diff != "" {
		t.Errorf("Obsolete(...): -want, +got:\n%s", diff)
	}
}
