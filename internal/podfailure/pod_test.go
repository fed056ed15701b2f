package podfailure

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const image = "registry.example.com/a:1"

// waits returns the status of a container that waits.
func waits(reason, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: "a", Image: image, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
}

// failed sets that a container ended with exit code 1 before, with this reason.
func failed(s corev1.ContainerStatus, restarts int32, reason string) corev1.ContainerStatus {
	return ended(s, restarts, 1, reason)
}

func ended(s corev1.ContainerStatus, restarts, exitCode int32, reason string) corev1.ContainerStatus {
	s.RestartCount = restarts
	s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: exitCode, Reason: reason}
	return s
}

func status(containers ...corev1.ContainerStatus) corev1.PodStatus {
	return corev1.PodStatus{ContainerStatuses: containers}
}

func scheduled(status corev1.ConditionStatus, reason, message string) corev1.PodStatus {
	return corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: status, Reason: reason, Message: message}}}
}

func TestOf(t *testing.T) {
	runs := corev1.ContainerStatus{Name: "a", Image: image, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	ready := runs
	ready.Ready = true
	through := corev1.ContainerStatus{Name: "a", Image: image, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 0}}}
	backOff := waits("CrashLoopBackOff", "back-off 40s restarting failed container")
	looping := backOff
	looping.RestartCount = 2

	cases := map[string]struct {
		reason   string
		deleting bool
		status   corev1.PodStatus
		want     string
	}{
		"Empty":     {reason: "A pod of which nothing is known."},
		"Well":      {reason: "A pod that runs.", status: status(ready)},
		"Starting":  {reason: "What passes by itself is no trouble.", status: status(waits("ContainerCreating", ""))},
		"Preparing": {reason: "Nor is to wait for others of the pod.", status: status(waits("PodInitializing", ""))},
		"Scheduled": {reason: "Nor to have been scheduled.", status: scheduled(corev1.ConditionTrue, "", "")},
		"Gated":     {reason: "Another reason is intended by a user or a controller.", status: scheduled(corev1.ConditionFalse, corev1.PodReasonSchedulingGated, "x")},
		"Deleting":  {reason: "A pod that is to go need not come up.", deleting: true, status: status(waits("ErrImagePull", "not found"))},

		"NoImage":      {reason: "An image that does not exist is named.", status: status(waits("ErrImagePull", `rpc error: failed to resolve reference "a:1": a:1: not found`)), want: "cannot pull image " + image + ": not found"},
		"BackOff":      {reason: "In the same words while it is tried again.", status: status(waits("ImagePullBackOff", `Back-off pulling image "a:1": ErrImagePull: a:1: not found`)), want: "cannot pull image " + image + ": not found"},
		"BackOffShort": {reason: "An older kubelet says no reason then.", status: status(waits("ImagePullBackOff", `Back-off pulling image "a:1"`)), want: "cannot pull image " + image},
		"Manifest":     {reason: "Another way to say that it does not exist.", status: status(waits("ErrImagePull", "manifest unknown: 404 at 10:00:01")), want: "cannot pull image " + image + ": not found"},
		"Unauthorized": {reason: "The registry wants to know who asks.", status: status(waits("ErrImagePull", "401 Unauthorized")), want: "cannot pull image " + image + ": not allowed"},
		"NoRegistry":   {reason: "Its name is unknown.", status: status(waits("ErrImagePull", "dial tcp: lookup r: no such host")), want: "cannot pull image " + image + ": no such registry"},
		"Silent":       {reason: "The registry does not answer.", status: status(waits("ErrImagePull", "dial tcp 10.0.0.1:443: i/o timeout")), want: "cannot pull image " + image + ": the registry does not answer"},
		"Limited":      {reason: "Docker Hub limits pulls.", status: status(waits("ErrImagePull", `unexpected status from HEAD request to x: 429 Too Many Requests`)), want: "cannot pull image " + image + ": the registry limits how often images are pulled"},
		"Platform":     {reason: "It exists for other processors.", status: status(waits("ErrImagePull", `failed to pull and unpack image "a:1": no match for platform in manifest: not found`)), want: "cannot pull image " + image + ": it is not built for the node's architecture"},
		"DockerHub":    {reason: "Of an image that does not exist Docker Hub says that it may be private.", status: status(waits("ErrImagePull", `pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed`)), want: "cannot pull image " + image + ": not found, or not allowed without imagePullSecrets"},
		"Plain":        {reason: "A registry without TLS.", status: status(waits("ErrImagePull", `Head "https://r:5000/v2/a/manifests/1": http: server gave HTTP response to HTTPS client`)), want: "cannot pull image " + image + ": the registry does not speak TLS"},
		"Authority":    {reason: "A certificate of an authority of its own.", status: status(waits("ErrImagePull", `tls: failed to verify certificate: x509: certificate signed by unknown authority`)), want: "cannot pull image " + image + ": the node does not trust the registry's certificate"},
		"Handshake":    {reason: "It does not answer in time.", status: status(waits("ErrImagePull", `net/http: TLS handshake timeout`)), want: "cannot pull image " + image + ": the registry does not answer"},
		"Broken":       {reason: "It answers that it fails.", status: status(waits("ErrImagePull", `unexpected status from HEAD request to x: 503 Service Unavailable`)), want: "cannot pull image " + image + ": the registry fails"},
		"DNS":          {reason: "The node's DNS fails.", status: status(waits("ErrImagePull", `lookup r on 10.0.0.10:53: server misbehaving`)), want: "cannot pull image " + image + ": the name of the registry cannot be resolved"},
		"Full":         {reason: "The node has no room for it.", status: status(waits("ErrImagePull", `write /var/lib/containerd/x: no space left on device`)), want: "cannot pull image " + image + ": the node's disk is full"},
		"Unsigned":     {reason: "The runtime's policy asks for a signature.", status: status(waits("SignatureValidationFailed", `Source image rejected`)), want: "cannot pull image " + image + ": its signature is not accepted"},
		"NeverPull":    {reason: "The policy forbids to pull.", status: status(waits("ErrImageNeverPull", "Container image is not present with pull policy of Never: ErrImageNeverPull")), want: "cannot pull image " + image + ": it is not on the node"},
		"NoName":       {reason: "A name that is none.", status: status(waits("InvalidImageName", `Failed to apply default image tag "A": couldn't parse image name "A": invalid reference format`)), want: "cannot pull image " + image + ": that is no image's name"},

		"ConfigError":      {reason: "The kubelet's words on what is missing.", status: status(waits("CreateContainerConfigError", `secret "x" not found`)), want: `cannot start container a: secret "x" not found`},
		"CreateError":      {reason: "Or cannot be made.", status: status(waits("CreateContainerError", "no such file")), want: "cannot start container a: no such file"},
		"RunError":         {reason: "Or cannot be run.", status: status(waits("RunContainerError", "permission denied")), want: "cannot start container a: permission denied"},
		"RunErrorSilently": {reason: "Without words of the kubelet.", status: status(waits("RunContainerError", "")), want: "cannot start container a"},

		"CrashLoop":       {reason: "How often it crashed is not said.", status: status(failed(backOff, 3, "Error")), want: "container a keeps failing"},
		"CrashLoopSecond": {reason: "From the second restart on.", status: status(looping), want: "container a keeps failing"},
		"CrashLoopFirst":  {reason: "One restart is an accident.", status: status(failed(backOff, 1, "Error"))},
		"CrashLoopDone":   {reason: "A server that ends again and again, with whichever code.", status: status(ended(backOff, 2, 0, "Completed")), want: "container a keeps failing"},
		"CrashRun":        {reason: "The same while it is tried again.", status: status(failed(runs, 3, "Error")), want: "container a keeps failing"},
		"CrashReady":      {reason: "Once it is ready it is forgotten.", status: status(failed(ready, 3, "Error"))},
		"Once":            {reason: "One failure is an accident.", status: status(failed(runs, 1, "Error"))},
		"Stopped":         {reason: "To be stopped in order is no failure.", status: status(ended(runs, 3, 0, "Completed"))},
		"Through":         {reason: "An init container that is through may have failed before.", status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{failed(through, 3, "Error")}}},
		"Memory":          {reason: "It needs more memory.", status: status(failed(runs, 2, "OOMKilled")), want: "container a keeps running out of memory"},
		"MemoryLoop":      {reason: "The same while Kubernetes waits.", status: status(failed(backOff, 2, "OOMKilled")), want: "container a keeps running out of memory"},

		"InitContainer": {reason: "A sidecar is started first.", status: corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{waits("ErrImagePull", "")}, ContainerStatuses: []corev1.ContainerStatus{looping}}, want: "cannot pull image " + image},
		"First":         {reason: "The first in trouble speaks for all.", status: status(runs, waits("ErrImagePull", ""), looping), want: "cannot pull image " + image},

		"Unschedulable": {
			reason: "How many nodes there are does not matter, nor what the scheduler would do about it.",
			status: scheduled(corev1.ConditionFalse, corev1.PodReasonUnschedulable, "0/4 nodes are available: 3 Insufficient cpu, 1 node(s) had untolerated taint {a: b}. preemption: 0/4 nodes are available: 4 No preemption victims found."),
			want:   "cannot be scheduled: Insufficient cpu, node(s) had untolerated taint {a: b}",
		},
		"UnschedulableNew": {
			reason: "A newer scheduler says more of what it would do.",
			status: scheduled(corev1.ConditionFalse, corev1.PodReasonUnschedulable, "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."),
			want:   "cannot be scheduled: node(s) didn't match Pod's node affinity/selector",
		},
		"UnschedulableShort": {reason: "One sentence is taken as it is.", status: scheduled(corev1.ConditionFalse, corev1.PodReasonUnschedulable, "pod has unbound immediate PersistentVolumeClaims"), want: "cannot be scheduled: pod has unbound immediate PersistentVolumeClaims"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Status: tc.status}
			if tc.deleting {
				pod.DeletionTimestamp = new(metav1.Unix(1e9, 0))
			}
			if got := Of(pod).String(); got != tc.want {
				t.Errorf("%s\nOf(...): want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

// TestMissing: the kind and name of a missing object are read from the message of the container.
func TestMissing(t *testing.T) {
	cases := map[string]struct{ reason, message, kind, want string }{
		"ConfigMap": {reason: "A ConfigMap that does not exist.", message: `configmap "store-config-1" not found`, kind: "ConfigMap", want: "store-config-1"},
		"Secret":    {reason: "A Secret that does not exist.", message: `secret "store-config-1" not found`, kind: "Secret", want: "store-config-1"},
		"Key":       {reason: "One that exists and has not what is asked for.", message: "couldn't find key a in Secret team/x"},
		"Other":     {reason: "Another object.", message: `serviceaccount "x" not found`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Status: status(waits("CreateContainerConfigError", tc.message))}
			if got := Of(pod); got.Kind != ContainerStart || got.MissingKind != tc.kind || got.Missing != tc.want {
				t.Errorf("%s\nwant a missing %q, got %+v", tc.reason, tc.want, got)
			}
		})
	}
}
