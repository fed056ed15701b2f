package podfailure

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestWhy: the reason why a pod is not ready is reported from the first failure on.
func TestWhy(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
	runs := func(since time.Duration) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: "a", Image: image, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: ago(since)}}}
	}
	crashed := func(s corev1.ContainerStatus, code int32, reason, message string) corev1.ContainerStatus {
		s.RestartCount = 1
		s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message}
		return s
	}
	preparing := func(since time.Duration) corev1.PodStatus {
		s := status(waits("ContainerCreating", ""))
		s.StartTime = new(ago(since))
		return s
	}
	mounted := preparing(time.Minute)
	mounted.Conditions = []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue}}
	init := corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{runs(time.Minute)}}
	init.InitContainerStatuses[0].Started = new(bool)
	unstarted := runs(time.Minute)
	unstarted.Started = new(bool)
	ready := runs(time.Minute)
	ready.Ready = true
	ended := corev1.ContainerStatus{Name: "a", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Message: "x\ncannot migrate\n"}}}
	through := corev1.ContainerStatus{Name: "a", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}
	stopped := corev1.ContainerStatus{Name: "proxy", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Message: "listening"}}}
	cases := map[string]struct {
		reason string
		pod    Pod
		want   string
	}{
		"Empty":         {reason: "Nothing is known."},
		"Ready":         {reason: "A pod that is ready.", pod: Pod{PodStatus: status(ready)}},
		"Deleting":      {reason: "A pod that is to go.", pod: Pod{Deleting: true, PodStatus: status(waits("ErrImagePull", "not found"))}},
		"Image":         {reason: "A failure that Of finds.", pod: Pod{PodStatus: status(waits("ErrImagePull", "not found"))}, want: "cannot pull image " + image + ": not found"},
		"Unschedulable": {reason: "Also of a pod that no node takes.", pod: Pod{PodStatus: scheduled(corev1.ConditionFalse, corev1.PodReasonUnschedulable, "0/1 nodes are available: 1 Insufficient cpu.")}, want: "cannot be scheduled: Insufficient cpu"},

		"First":     {reason: "The first failure counts.", pod: Pod{PodStatus: status(crashed(waits("CrashLoopBackOff", "back-off 10s"), 1, "Error", "starting\npanic: no config\n"))}, want: "container a keeps failing: exit code 1: panic: no config"},
		"Again":     {reason: "Also while it is tried again.", pod: Pod{PodStatus: status(crashed(runs(time.Second), 2, "Error", ""))}, want: "container a keeps failing: exit code 2"},
		"Now":       {reason: "And in the moment in which it fails.", pod: Pod{PodStatus: status(ended)}, want: "container a keeps failing: exit code 3: cannot migrate"},
		"Memory":    {reason: "It needs more memory.", pod: Pod{PodStatus: status(crashed(waits("CrashLoopBackOff", ""), 137, "OOMKilled", ""))}, want: "container a keeps running out of memory"},
		"Completes": {reason: "A server does not end.", pod: Pod{PodStatus: status(crashed(waits("CrashLoopBackOff", ""), 0, "Completed", ""))}, want: "container a keeps failing: exit code 0"},
		"Recovered": {reason: "Once it is ready it is forgotten.", pod: Pod{PodStatus: status(crashed(ready, 1, "Error", "x"))}},
		"Through":   {reason: "An init container that is through.", pod: Pod{PodStatus: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{crashed(through, 1, "Error", "x")}, ContainerStatuses: []corev1.ContainerStatus{ready}}}},

		"Once":   {reason: "One that ended once, and has run for a minute since, waits for its probe.", pod: Pod{PodStatus: status(crashed(runs(time.Minute), 137, "OOMKilled", ""))}, want: "container a runs and does not pass its readiness probe"},
		"Reboot": {reason: "A node that was started again has ended it.", pod: Pod{PodStatus: status(crashed(runs(time.Second), 255, "Unknown", ""))}},

		"Well": {reason: "So is one that ended often, and has run well since.", pod: Pod{PodStatus: status(func() corev1.ContainerStatus {
			s := crashed(runs(time.Hour), 1, "Error", "x")
			s.RestartCount = 9
			return s
		}())}, want: "container a runs and does not pass its readiness probe"},

		"Init":    {reason: "An init container has no probes: it has to end.", pod: Pod{PodStatus: init}, want: "init container a has not ended yet"},
		"Beside":  {reason: "One that runs beside the others has.", pod: Pod{PodStatus: init, Sidecars: []string{"a"}}, want: "container a runs and does not pass its startup probe"},
		"Pulling": {reason: "An image that is being pulled is no missing volume.", pod: Pod{PodStatus: mounted, Mounts: []string{"Secret b"}}},

		"Starts":    {reason: "A container that has just begun.", pod: Pod{PodStatus: status(runs(time.Second))}},
		"Readiness": {reason: "It runs, and takes no requests.", pod: Pod{PodStatus: status(runs(time.Minute))}, want: "container a runs and does not pass its readiness probe"},
		"Startup":   {reason: "It has not started.", pod: Pod{PodStatus: status(unstarted)}, want: "container a runs and does not pass its startup probe"},

		"Creating":  {reason: "A pod that has just begun.", pod: Pod{PodStatus: preparing(time.Second)}},
		"Volumes":   {reason: "What it mounts is named.", pod: Pod{PodStatus: preparing(time.Minute), Mounts: []string{"ConfigMap a", "Secret b"}}, want: "cannot start yet: its volumes are not mounted, for which must exist: ConfigMap a, Secret b"},
		"NoVolumes": {reason: "Without any it may be the network.", pod: Pod{PodStatus: preparing(time.Minute)}, want: "cannot start yet: its volumes or its network are not ready"},

		"Evicted":   {reason: "A node has ended it.", pod: Pod{PodStatus: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on resource: memory."}}, want: "was stopped: Evicted: The node was low on resource: memory."},
		"Completed": {reason: "A Job's pod that is through.", pod: Pod{PodStatus: corev1.PodStatus{Phase: corev1.PodSucceeded}}},

		"Root":       {reason: "An image without a user runs as root.", pod: Pod{PodStatus: status(waits("CreateContainerConfigError", `container has runAsNonRoot and image will run as root (pod: "a-1_shop(3f2a9c1e)", container: a)`))}, want: "cannot start container a: its image runs as root, which is not allowed"},
		"RootByName": {reason: "A runtime tells any user that is not a number by its name.", pod: Pod{PodStatus: status(waits("CreateContainerConfigError", `container has runAsNonRoot and image has non-numeric user (root), cannot verify user is non-root (pod: "a-1_shop(3f2a9c1e)", container: a)`))}, want: "cannot start container a: its image runs as root, which is not allowed"},
		"NoProgram":  {reason: "Of what a runtime says the end counts.", pod: Pod{PodStatus: status(crashed(waits("CrashLoopBackOff", ""), 128, "StartError", `failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: exec: "/x": stat /x: no such file or directory: unknown`))}, want: `container a keeps failing: exit code 128: error during container init: exec: "/x": stat /x: no such file or directory`},
		"Sidecar":    {reason: "Sidecars of a Job's pod are stopped once it has failed.", pod: Pod{PodStatus: corev1.PodStatus{Phase: corev1.PodFailed, InitContainerStatuses: []corev1.ContainerStatus{stopped}, ContainerStatuses: []corev1.ContainerStatus{ended}}}, want: "container a keeps failing: exit code 3: cannot migrate"},
		"Named":      {reason: "A user by name is not known to be none that is root.", pod: Pod{PodStatus: status(waits("CreateContainerConfigError", `container has runAsNonRoot and image has non-numeric user (web), cannot verify user is non-root (pod: "a-1_shop(3f2a9c1e)", container: a)`))}, want: "cannot start container a: its image names its user web without a number, so that it might be root"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Why(tc.pod, now).String(); got != tc.want {
				t.Errorf("%s\nWhy(...): want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}
