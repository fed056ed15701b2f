package podfailure

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
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
	volumes := corev1.PodSpec{Volumes: []corev1.Volume{
		{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "b"}}},
		{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "a"}}}},
		{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}},
	}}
	killed := crashed(unstarted, 143, "Error", "listening on 0.0.0.0:3000")
	killed.RestartCount = 3
	get := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromString("http")}}}
	probes := corev1.PodSpec{Containers: []corev1.Container{{
		Name: "a", Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}, StartupProbe: get,
		ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(9090)}}},
	}}}
	type given struct {
		corev1.PodStatus

		Spec     corev1.PodSpec
		Deleting bool
	}
	cases := map[string]struct {
		reason string
		pod    given
		want   string
	}{
		"Empty":         {reason: "Nothing is known."},
		"Ready":         {reason: "A pod that is ready.", pod: given{PodStatus: status(ready)}},
		"Deleting":      {reason: "A pod that is to go.", pod: given{Deleting: true, PodStatus: status(waits("ErrImagePull", "not found"))}},
		"Image":         {reason: "A failure that Of finds.", pod: given{PodStatus: status(waits("ErrImagePull", "not found"))}, want: "cannot pull image " + image + ": not found"},
		"Unschedulable": {reason: "Also of a pod that no node takes.", pod: given{PodStatus: scheduled(corev1.ConditionFalse, corev1.PodReasonUnschedulable, "0/1 nodes are available: 1 Insufficient cpu.")}, want: "cannot be scheduled: Insufficient cpu"},

		"First":     {reason: "The first failure counts.", pod: given{PodStatus: status(crashed(waits("CrashLoopBackOff", "back-off 10s"), 1, "Error", "starting\npanic: no config\n"))}, want: "container a keeps failing: exit code 1: panic: no config"},
		"Again":     {reason: "Also while it is tried again.", pod: given{PodStatus: status(crashed(runs(time.Second), 2, "Error", ""))}, want: "container a keeps failing: exit code 2"},
		"Now":       {reason: "And in the moment in which it fails.", pod: given{PodStatus: status(ended)}, want: "container a keeps failing: exit code 3: cannot migrate"},
		"Memory":    {reason: "It needs more memory.", pod: given{PodStatus: status(crashed(waits("CrashLoopBackOff", ""), 137, "OOMKilled", ""))}, want: "container a keeps running out of memory"},
		"Completes": {reason: "A server does not end.", pod: given{PodStatus: status(crashed(waits("CrashLoopBackOff", ""), 0, "Completed", ""))}, want: "container a keeps failing: exit code 0"},
		"Recovered": {reason: "Once it is ready it is forgotten.", pod: given{PodStatus: status(crashed(ready, 1, "Error", "x"))}},
		"Through":   {reason: "An init container that is through.", pod: given{PodStatus: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{crashed(through, 1, "Error", "x")}, ContainerStatuses: []corev1.ContainerStatus{ready}}}},

		"Once":   {reason: "One that ended once, and has run for a minute since, waits for its probe.", pod: given{PodStatus: status(crashed(runs(time.Minute), 137, "OOMKilled", ""))}, want: "container a runs and does not pass its readiness probe"},
		"Reboot": {reason: "A node that was started again has ended it.", pod: given{PodStatus: status(crashed(runs(time.Second), 255, "Unknown", ""))}},

		"Well": {reason: "So is one that ended often, and has run well since.", pod: given{PodStatus: status(func() corev1.ContainerStatus {
			s := crashed(runs(time.Hour), 1, "Error", "x")
			s.RestartCount = 9
			return s
		}())}, want: "container a runs and does not pass its readiness probe"},

		"Init":    {reason: "An init container has no probes: it has to end.", pod: given{PodStatus: init}, want: "init container a has not ended yet"},
		"Beside":  {reason: "One that runs beside the others has.", pod: given{PodStatus: init, Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "a", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}}}, want: "container a runs and does not pass its startup probe"},
		"Pulling": {reason: "An image that is being pulled is no missing volume.", pod: given{PodStatus: mounted, Spec: volumes}},

		"Starts":    {reason: "A container that has just begun.", pod: given{PodStatus: status(runs(time.Second))}},
		"Readiness": {reason: "It runs, and takes no requests.", pod: given{PodStatus: status(runs(time.Minute))}, want: "container a runs and does not pass its readiness probe"},
		"Startup":   {reason: "It has not started.", pod: given{PodStatus: status(unstarted)}, want: "container a runs and does not pass its startup probe"},

		"StartupPort":   {reason: "What the probe asks for is named.", pod: given{PodStatus: status(unstarted), Spec: probes}, want: "container a runs and does not pass its startup probe, GET /healthz at port 8080"},
		"ReadinessPort": {reason: "Also a port alone.", pod: given{PodStatus: status(runs(time.Minute)), Spec: probes}, want: "container a runs and does not pass its readiness probe, a connection to port 9090"},
		"Killed":        {reason: "The kubelet kills a container for its probe.", pod: given{PodStatus: status(killed), Spec: probes}, want: "container a runs and does not pass its startup probe, GET /healthz at port 8080"},
		"KilledWaits":   {reason: "Until it runs again it is not known which probe that was.", pod: given{PodStatus: status(crashed(waits("CrashLoopBackOff", ""), 137, "Error", "x\nlistening on 0.0.0.0:3000")), Spec: probes}, want: "container a keeps failing: exit code 137, as after a failed startup or liveness probe: listening on 0.0.0.0:3000"},

		"Creating":  {reason: "A pod that has just begun.", pod: given{PodStatus: preparing(time.Second)}},
		"Volumes":   {reason: "What it mounts is named.", pod: given{PodStatus: preparing(time.Minute), Spec: volumes}, want: "cannot start yet: its volumes or its network are not ready. These must exist: ConfigMap a, PersistentVolumeClaim c, Secret b"},
		"NoVolumes": {reason: "Without any it may be the network.", pod: given{PodStatus: preparing(time.Minute)}, want: "cannot start yet: its volumes or its network are not ready"},

		"Evicted":   {reason: "A node has ended it.", pod: given{PodStatus: corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on resource: memory."}}, want: "was stopped: Evicted: The node was low on resource: memory."},
		"Completed": {reason: "A Job's pod that is through.", pod: given{PodStatus: corev1.PodStatus{Phase: corev1.PodSucceeded}}},

		"Root":       {reason: "An image without a user runs as root.", pod: given{PodStatus: status(waits("CreateContainerConfigError", `container has runAsNonRoot and image will run as root (pod: "a-1_shop(3f2a9c1e)", container: a)`))}, want: "cannot start container a: its image runs as root, which is not allowed"},
		"RootByName": {reason: "A runtime tells any user that is not a number by its name.", pod: given{PodStatus: status(waits("CreateContainerConfigError", `container has runAsNonRoot and image has non-numeric user (root), cannot verify user is non-root (pod: "a-1_shop(3f2a9c1e)", container: a)`))}, want: "cannot start container a: its image runs as root, which is not allowed"},
		"NoProgram":  {reason: "Of what a runtime says the end counts.", pod: given{PodStatus: status(crashed(waits("CrashLoopBackOff", ""), 128, "StartError", `failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: exec: "/x": stat /x: no such file or directory: unknown`))}, want: `container a keeps failing: exit code 128: error during container init: exec: "/x": stat /x: no such file or directory`},
		"Sidecar":    {reason: "Sidecars of a Job's pod are stopped once it has failed.", pod: given{PodStatus: corev1.PodStatus{Phase: corev1.PodFailed, InitContainerStatuses: []corev1.ContainerStatus{stopped}, ContainerStatuses: []corev1.ContainerStatus{ended}}}, want: "container a keeps failing: exit code 3: cannot migrate"},
		"Named":      {reason: "A user by name is not known to be none that is root.", pod: given{PodStatus: status(waits("CreateContainerConfigError", `container has runAsNonRoot and image has non-numeric user (web), cannot verify user is non-root (pod: "a-1_shop(3f2a9c1e)", container: a)`))}, want: "cannot start container a: its image names its user web without a number, so that it might be root"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Status: tc.pod.PodStatus, Spec: tc.pod.Spec}
			if tc.pod.Deleting {
				pod.DeletionTimestamp = new(ago(0))
			}
			if got := Why(pod, now).String(); got != tc.want {
				t.Errorf("%s\nWhy(...): want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

// TestDue: a pod that starts counts as failed a moment later, if nothing changes. No event announces that.
func TestDue(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) *metav1.Time { return new(metav1.NewTime(now.Add(-d))) }
	runs := func(since time.Duration, ready bool) corev1.PodStatus {
		return corev1.PodStatus{
			StartTime:         ago(time.Hour),
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Ready: ready, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: *ago(since)}}}},
		}
	}
	mounts := corev1.PodStatus{StartTime: ago(time.Second)}
	for name, tc := range map[string]struct {
		reason   string
		pod      corev1.PodStatus
		deleting bool
		want     time.Duration
	}{
		"Starts":   {reason: "A container that runs has a while to become ready.", pod: runs(2*time.Second, false), want: 3 * time.Second},
		"Ready":    {reason: "One that is ready does not fail by the time.", pod: runs(2*time.Second, true)},
		"Failed":   {reason: "One that is late has failed already.", pod: runs(time.Minute, false)},
		"Mounts":   {reason: "A pod has a while to get its volumes.", pod: mounts, want: 4 * time.Second},
		"Deleting": {reason: "A pod that is deleted does not fail.", pod: mounts, deleting: true},
		"Unknown":  {reason: "Nor one that no node has yet.", pod: corev1.PodStatus{}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Status: tc.pod}
			if tc.deleting {
				pod.DeletionTimestamp = ago(0)
			}
			if got := Due(pod, now); got != tc.want {
				t.Errorf("%s\nDue(): want %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
}
