package manager

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/internal/instance/manager/roll"
)

func TestLost(t *testing.T) {
	files := map[string]bool{
		"00000007.history": true, "00000008.history": true,
		"000000070000000000000016.partial": true, "000000070000000000000017": true, "000000080000000100000000": true,
	}
	type args struct{ standby, primary, reached int64 }
	cases := map[string]struct {
		reason string
		args   args
		want   string
	}{
		"All":           {reason: "A standby that has all it needs will follow.", args: args{standby: 6, primary: 8, reached: 0x17000060}},
		"Same":          {reason: "On one timeline no history is needed.", args: args{standby: 8, primary: 8, reached: 0x100000060}},
		"History":       {reason: "A server that was copied later lacks the history of earlier timelines.", args: args{standby: 4, primary: 8, reached: 0x17000060}, want: "the history of timeline 5"},
		"Segment":       {reason: "WAL of long ago was removed.", args: args{standby: 6, primary: 8, reached: 0x15000060}, want: "the WAL from 0/15000060"},
		"Partial":       {reason: "The end of a timeline that went on is no file to follow from.", args: args{standby: 6, primary: 8, reached: 0x16000060}, want: "the WAL from 0/16000060"},
		"Unknown":       {reason: "Of what is not known nothing is said.", args: args{standby: 0, primary: 8, reached: 0x17000060}},
		"UnknownPlace":  {reason: "Of what is not known nothing is said.", args: args{standby: 6, primary: 8}},
		"UnknownLeader": {reason: "Of what is not known nothing is said.", args: args{standby: 6, reached: 0x17000060}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := lost(files, tc.args.standby, tc.args.primary, tc.args.reached)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nlost(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestStraysDue(t *testing.T) {
	pod := func(name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.PodStatus{PodIP: "192.0.2.1"}}
	}
	see := func(streaming bool) *view {
		return &view{
			pods: []*corev1.Pod{pod("a"), pod("b"), pod("c")},
			cluster: roll.Cluster{Primary: "a", Servers: []roll.Server{
				{Pod: "a", Exists: true}, {Pod: "b", Exists: true, Streaming: streaming}, {Pod: "c", Exists: true, Streaming: true}, {Pod: "d"},
			}},
		}
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := strays{}
	steps := []struct {
		reason    string
		after     time.Duration
		streaming bool
		want      []string
	}{
		{reason: "One that has just stopped to follow will be back."},
		{reason: "It is not yet due.", after: strayFor - time.Second},
		{reason: "Now it is, and neither the primary nor a pod that is not there.", after: time.Second, want: []string{"b"}},
		{reason: "It follows.", after: time.Second, streaming: true},
		{reason: "It strays again, and the clock starts anew.", after: strayFor},
		{reason: "It is due.", after: strayFor, want: []string{"b"}},
	}
	for _, step := range steps {
		now = now.Add(step.after)
		var got []string
		for _, p := range s.due(see(step.streaming), now) {
			got = append(got, p.Name)
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s\ndue(...): -want, +got:\n%s", step.reason, diff)
		}
	}
	s.copied["b"] = now
	if got := s.due(see(false), now.Add(againAfter-time.Second)); len(got) != 0 {
		t.Error("A standby that copies the primary is asked again")
	}
	if got := s.due(see(false), now.Add(againAfter)); len(got) != 1 {
		t.Error("A standby that did not come back is not asked again")
	}
}
