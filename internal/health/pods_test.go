package health

import (
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
	"sigs.k8s.io/yaml"
)

func podOf(t testing.TB, metadata, status string) *structpb.Struct {
	t.Helper()
	b, err := yaml.YAMLToJSON([]byte("metadata: " + metadata + "\nspec: 7\nstatus: " + status))
	if err != nil {
		t.Fatal(err)
	}
	s := &structpb.Struct{}
	if err := s.UnmarshalJSON(b); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestFailureOf: which pod is reported. What is wrong with one pod is determined by
// internal/podfailure.
func TestFailureOf(t *testing.T) {
	const (
		image    = `{startTime: "2026-01-02T03:04:05Z", containerStatuses: [{name: a, image: 'registry.example.com/a:1', restartCount: 0, state: {waiting: {reason: ErrImagePull, message: 'a:1: not found'}}}]}`
		crash    = "{containerStatuses: [{name: a, restartCount: 4, state: {waiting: {reason: CrashLoopBackOff}}}]}"
		starting = "{containerStatuses: [{name: a, state: {waiting: {reason: ContainerCreating}}}]}"
	)
	type pod struct{ metadata, status string }
	cases := map[string]struct {
		reason string
		pods   []pod
		want   string
	}{
		"None":  {reason: "No pods, no trouble."},
		"Empty": {reason: "A pod of which nothing is known.", pods: []pod{{"{name: p}", "{}"}}},
		"One":   {reason: "Its name comes first, as in what the managers report.", pods: []pod{{"{name: p}", image}}, want: "p: cannot pull image registry.example.com/a:1: not found"},
		"First": {reason: "The first by name speaks for all, in whichever order they come.", pods: []pod{{"{name: p-2}", image}, {"{name: p-0}", starting}, {"{name: p-1}", crash}, {"{name: p-3}", image}}, want: "p-1: container a keeps failing"},
		"Name":  {reason: "It is the name that decides, not the words after it.", pods: []pod{{"{name: p-1}", image}, {"{name: p}", image}}, want: "p: cannot pull image registry.example.com/a:1: not found"},
		"Gone":  {reason: "A pod that is to go need not come up.", pods: []pod{{`{name: p, deletionTimestamp: "2026-01-02T03:04:05Z"}`, image}}},
		"Other": {reason: "One that cannot be read keeps no other one from telling.", pods: []pod{{"{name: p-0}", "7"}, {"{name: p-1}", crash}}, want: "p-1: container a keeps failing"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var pods []*structpb.Struct
			for _, p := range tc.pods {
				pods = append(pods, podOf(t, p.metadata, p.status))
			}
			if got := FailureOf(pods); got != tc.want {
				t.Errorf("%s\nFailureOf(): want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

// TestFailureOfUnreadable: a pod of any shape causes no panic.
func TestFailureOfUnreadable(t *testing.T) {
	for _, status := range []string{"7", "[]", "{conditions: 7}", "{conditions: [7]}", "{containerStatuses: {}}", "{containerStatuses: [{state: 7}]}", "{containerStatuses: [{state: {waiting: []}}]}"} {
		if got := FailureOf([]*structpb.Struct{podOf(t, "{name: p}", status), nil, {}}); got != "" {
			t.Errorf("%s: want nothing, got %q", status, got)
		}
	}
}
