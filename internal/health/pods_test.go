package health

import (
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
	"sigs.k8s.io/yaml"
)

func podOf(t testing.TB, name, status string) *structpb.Struct {
	t.Helper()
	b, err := yaml.YAMLToJSON([]byte("metadata: {name: " + name + "}\nstatus: " + status))
	if err != nil {
		t.Fatal(err)
	}
	s := &structpb.Struct{}
	if err := s.UnmarshalJSON(b); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTroubleOf(t *testing.T) {
	waiting := func(field, reason, message string) string {
		return "{phase: Pending, " + field + ": [{name: a, image: 'registry.example.com/a:1', state: {waiting: {reason: " + reason + ", message: '" + message + "'}}}]}"
	}
	main := func(reason, message string) string { return waiting("containerStatuses", reason, message) }
	unschedulable := func(message string) string {
		return "{phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, message: '" + message + "'}]}"
	}
	cases := map[string]struct {
		reason   string
		statuses map[string]string
		want     string
	}{
		"None":      {reason: "No pods, no trouble."},
		"Well":      {reason: "A pod that runs.", statuses: map[string]string{"p": "{phase: Running, containerStatuses: [{name: a, ready: true, state: {running: {}}}]}"}},
		"Empty":     {reason: "A pod of which nothing is known.", statuses: map[string]string{"p": "{}"}},
		"Starting":  {reason: "What passes by itself is no trouble.", statuses: map[string]string{"p": main("ContainerCreating", "")}},
		"Preparing": {reason: "Nor is to wait for others of the pod.", statuses: map[string]string{"p": main("PodInitializing", "")}},
		"Scheduled": {reason: "Nor to have been scheduled.", statuses: map[string]string{"p": "{conditions: [{type: PodScheduled, status: 'True'}]}"}},

		"ErrImagePull":     {reason: "An image that can not be pulled is named.", statuses: map[string]string{"p": main("ErrImagePull", "manifest unknown: 404 at 10:00:01")}, want: "pod p can not pull image registry.example.com/a:1"},
		"ImagePullBackOff": {reason: "In the same words while it is tried again: they come and go in turn.", statuses: map[string]string{"p": main("ImagePullBackOff", "Back-off 5m")}, want: "pod p can not pull image registry.example.com/a:1"},
		"InvalidImageName": {reason: "A name that is none.", statuses: map[string]string{"p": main("InvalidImageName", "x")}, want: "pod p can not use image name registry.example.com/a:1"},
		"CrashLoop":        {reason: "How often it crashed is not said.", statuses: map[string]string{"p": main("CrashLoopBackOff", "back-off 40s restarting failed container")}, want: "pod p crashes again and again: look at its log"},
		"ConfigError":      {reason: "The kubelet's words on what is missing.", statuses: map[string]string{"p": main("CreateContainerConfigError", "secret \"a\" not found")}, want: `pod p can not start: secret "a" not found`},
		"CreateError":      {reason: "Or can not be made.", statuses: map[string]string{"p": main("CreateContainerError", "no such file")}, want: "pod p can not start: no such file"},
		"RunError":         {reason: "Or can not be run.", statuses: map[string]string{"p": main("RunContainerError", "permission denied")}, want: "pod p can not start: permission denied"},
		"InitContainer":    {reason: "A sidecar is started first.", statuses: map[string]string{"p": waiting("initContainerStatuses", "ErrImagePull", "")}, want: "pod p can not pull image registry.example.com/a:1"},

		"Unschedulable": {
			reason: "What the scheduler would do about it changes, and is left out.", statuses: map[string]string{"p": unschedulable("0/3 nodes are available: 3 Insufficient memory. preemption: 0/3 nodes are available: 3 No preemption victims found.")},
			want: "pod p can not be scheduled: 0/3 nodes are available: 3 Insufficient memory",
		},
		"UnschedulableShort": {reason: "One sentence is taken as it is.", statuses: map[string]string{"p": unschedulable("pod has unbound immediate PersistentVolumeClaims")}, want: "pod p can not be scheduled: pod has unbound immediate PersistentVolumeClaims"},
		"Gated":              {reason: "Another reason is somebody's will.", statuses: map[string]string{"p": "{conditions: [{type: PodScheduled, status: 'False', reason: SchedulingGated, message: x}]}"}},

		"First":       {reason: "The first by name speaks for all, in whichever order they come.", statuses: map[string]string{"p-2": main("ErrImagePull", ""), "p-0": main("ContainerCreating", ""), "p-1": main("CrashLoopBackOff", "")}, want: "pod p-1 crashes again and again: look at its log"},
		"FirstInside": {reason: "Of one pod the first container.", statuses: map[string]string{"p": "{containerStatuses: [{name: a, state: {running: {}}}, {name: b, image: i, state: {waiting: {reason: ErrImagePull}}}, {name: c, state: {waiting: {reason: CrashLoopBackOff}}}]}"}, want: "pod p can not pull image i"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var pods []*structpb.Struct
			for n, status := range tc.statuses {
				pods = append(pods, podOf(t, n, status))
			}
			if got := TroubleOf(pods); got != tc.want {
				t.Errorf("%s\nTroubleOf(): want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

// TestTroubleOfUnreadable: a pod can be anything and is no reason to panic.
func TestTroubleOfUnreadable(t *testing.T) {
	for _, status := range []string{"7", "[]", "{conditions: 7}", "{conditions: [7]}", "{containerStatuses: {}}", "{containerStatuses: [{state: 7}]}", "{containerStatuses: [{state: {waiting: []}}]}"} {
		if got := TroubleOf([]*structpb.Struct{podOf(t, "p", status), nil, {}}); got != "" {
			t.Errorf("%s: want nothing, got %q", status, got)
		}
	}
}
