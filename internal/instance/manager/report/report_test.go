package report

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/postgres"
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
				got := l.Standbys([]string{"db-1", "db-0"}, "db-0", map[string]postgres.Follower{"db-1": {Streaming: m.streaming, Synchronous: true, Lag: m.lag}}, start.Add(m.at))
				want := []instance.Standby{{Name: "db-1", Streaming: m.streaming, Synchronous: m.streaming, Lagging: m.want}}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s: after %s: -want, +got:\n%s", tc.reason, m.at, diff)
				}
			}
		})
	}
}

func waiting(reason, message string) corev1.PodStatus {
	return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
		Name: "postgresql", Image: "r/postgresql:99", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}},
	}}}
}

func failing(state corev1.ContainerState, restarts int32, reason string) corev1.PodStatus {
	return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
		Name: "postgresql", State: state, RestartCount: restarts,
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Reason: reason}},
	}}}
}

func TestPods(t *testing.T) {
	said := []instance.Problem{{Subject: instance.SubjectPod, Name: "db-2", Message: "db-2: cannot pull image r/postgresql:99: not found"}}
	cases := map[string]struct {
		reason string
		status corev1.PodStatus
		before []instance.Problem
		want   string
	}{
		"Well":     {reason: "Nothing is wrong"},
		"Starting": {reason: "A container that is being made is not in trouble", status: waiting("ContainerCreating", "")},
		"NoImage": {
			reason: "The image does not exist", status: waiting("ErrImagePull", `rpc error: failed to resolve reference "r/postgresql:99": r/postgresql:99: not found`),
			want: "db-2: cannot pull image r/postgresql:99: not found",
		},
		"BackOff":      {reason: "Kubernetes says no reason", status: waiting("ImagePullBackOff", `Back-off pulling image "r/postgresql:99"`), want: "db-2: cannot pull image r/postgresql:99"},
		"BackOffAgain": {reason: "The reason that was known stays", status: waiting("ImagePullBackOff", `Back-off pulling image "r/postgresql:99"`), before: said, want: said[0].Message},
		"Forbidden":    {reason: "The registry wants to know who asks", status: waiting("ErrImagePull", "401 Unauthorized"), want: "db-2: cannot pull image r/postgresql:99: not allowed"},
		"Config":       {reason: "A Secret is missing", status: waiting("CreateContainerConfigError", `secret "x" not found`), want: `db-2: cannot start container postgresql: secret "x" not found`},
		"CrashLoop":    {reason: "It keeps failing", status: failing(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 10s"}}, 3, "Error"), want: "db-2: container postgresql keeps failing"},
		"CrashRun":     {reason: "The same while it tries again", status: failing(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, 3, "Error"), want: "db-2: container postgresql keeps failing"},
		"Memory":       {reason: "It needs more memory", status: failing(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, 2, "OOMKilled"), want: "db-2: container postgresql keeps running out of memory"},
		"Once":         {reason: "One failure is an accident", status: failing(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, 1, "Error")},
		"Unschedulable": {
			reason: "How many nodes there are does not matter",
			status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
				Message: "0/4 nodes are available: 3 Insufficient cpu, 1 node(s) had untolerated taint {a: b}. preemption: 0/4 nodes are available: 4 No preemption victims found.",
			}}},
			want: "db-2: cannot be scheduled: Insufficient cpu, node(s) had untolerated taint {a: b}",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Status: tc.status}
			pod.Name = "db-2"
			var want []instance.Problem
			if tc.want != "" {
				want = []instance.Problem{{Subject: instance.SubjectPod, Name: "db-2", Message: tc.want}}
			}
			if diff := cmp.Diff(want, Pods([]*corev1.Pod{pod}, tc.before)); diff != "" {
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
