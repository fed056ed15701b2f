package manager

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
	"github.com/storeplane/storeplane/internal/instance/manager/roll"
)

func TestLost(t *testing.T) {
	// Timeline 6 ended in file 16, 7 in file 17, 8 and 9 in file 20 of the WAL.
	wal := &serverLog{
		timeline:  10,
		ancestors: []instance.Ancestor{{Timeline: 6, End: 0x16000200}, {Timeline: 7, End: 0x17000300}, {Timeline: 8, End: 0x20000400}, {Timeline: 9, End: 0x20000500}},
		files: map[string]bool{
			"00000007.history": true, "00000008.history": true, "00000009.history": true, "0000000A.history": true,
			"000000070000000000000016": true, "000000070000000000000017.partial": true, "000000080000000000000017": true,
			"000000080000000000000018": true, "000000080000000000000020.partial": true, "000000090000000000000020.partial": true,
			"0000000A0000000000000020": true, "0000000A0000000100000000": true,
			"000000050000000000000015": true,
		},
	}
	type args struct{ timeline, reached int64 }
	cases := map[string]struct {
		reason string
		args   args
		want   string
	}{
		"Next":         {reason: "Where a timeline ends in a file, the next one's is sent.", args: args{timeline: 6, reached: 0x16000060}},
		"End":          {reason: "Where a timeline has ended, the next one begins.", args: args{timeline: 7, reached: 0x17000300}},
		"Own":          {reason: "A timeline that does not end in a file has that file itself.", args: args{timeline: 8, reached: 0x18000060}},
		"Same":         {reason: "On one timeline no history is needed.", args: args{timeline: 10, reached: 0x100000060}},
		"History":      {reason: "A server that was copied later lacks the history of earlier timelines.", args: args{timeline: 4, reached: 0x17000060}, want: "the history of timeline 5"},
		"Segment":      {reason: "WAL of long ago was removed.", args: args{timeline: 6, reached: 0x14000060}, want: "the WAL from 0/14000060"},
		"Other":        {reason: "A file of another timeline with the same number is not what is sent.", args: args{timeline: 6, reached: 0x15000060}, want: "the WAL from 0/15000060"},
		"TwoEnds":      {reason: "Two timelines ended in one file: PostgreSQL looks for the second one's, which is no more.", args: args{timeline: 8, reached: 0x20000060}, want: "the WAL from 0/20000060"},
		"LastOfTwo":    {reason: "Of the second of them the next one's file is sent.", args: args{timeline: 9, reached: 0x20000400}},
		"Unknown":      {reason: "Of what is not known nothing is said.", args: args{timeline: 0, reached: 0x17000060}},
		"UnknownPlace": {reason: "Of what is not known nothing is said.", args: args{timeline: 6}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := wal.lost(tc.args.timeline, tc.args.reached)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nlost(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	if got := (&serverLog{}).lost(6, 0x17000060); got != "" {
		t.Errorf("of a primary whose timeline is not known lost(...) says %q", got)
	}
}

func TestReadLog(t *testing.T) {
	volume := t.TempDir()
	dir := filepath.Join(volume, instance.DataFolder, "pg_wal")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{"00000002.history": "1\t0/3000148\tno recovery target specified\n", "000000020000000000000003": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for timeline, want := range map[int64][]instance.Ancestor{1: nil, 2: {{Timeline: 1, End: 0x3000148}}, 3: nil} {
		got, err := readLog(volume, timeline)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.ancestors); diff != "" {
			t.Errorf("readLog(..., %d): -want, +got:\n%s", timeline, diff)
		}
		if !got.files["000000020000000000000003"] {
			t.Error("readLog(...) does not say which files there are")
		}
	}
	if _, err := readLog(t.TempDir(), 1); err == nil {
		t.Error("a volume without a log is no error")
	}
}

func TestStraysMoves(t *testing.T) {
	s, now := detached{}, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		reason  string
		after   time.Duration
		reached int64
		want    bool
	}{
		{reason: "Nothing is known of one that is seen first.", reached: 5, want: true},
		{reason: "A query may hold the replay up.", after: stillFor - time.Second, reached: 5, want: true},
		{reason: "It has replayed nothing for long.", after: time.Second, reached: 5},
		{reason: "It replays what it has.", after: time.Second, reached: 9, want: true},
		{reason: "It may still.", after: stillFor - time.Second, reached: 9, want: true},
		{reason: "It has come to its end.", after: time.Second, reached: 9},
	} {
		now = now.Add(step.after)
		if got := s.moves("a", step.reached, now); got != step.want {
			t.Errorf("%s\nmoves(...): want %t, got %t", step.reason, step.want, got)
		}
	}
}

func TestStraysObstacle(t *testing.T) {
	wal := &serverLog{timeline: 1, files: map[string]bool{"000000010000000000000009": true}}
	const gone, there, beyond = 0x07000060, 0x09000060, 0x09000088
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		reason             string
		received, replayed int64
		paused             bool
		since              time.Duration
		want               string
	}{
		"Gone":     {reason: "What it asks for was removed.", replayed: gone, since: stillFor, want: "the WAL from 0/07000060 is no more"},
		"Moves":    {reason: "It has replayed something of late.", replayed: gone, since: stillFor - time.Second},
		"There":    {reason: "The primary has it.", replayed: there, since: replayFor},
		"Paused":   {reason: "A person has paused the replay, to save what was there before a mistake.", replayed: gone, paused: true, since: replayFor},
		"Received": {reason: "It has received what the primary has removed, and replays it later.", received: there, replayed: gone, since: stillFor},
		"Diverged": {reason: "Its own log ends otherwise than the primary's.", received: beyond, replayed: there, since: replayFor, want: "the WAL that it has received cannot be replayed from 0/09000060"},
		"Slow":     {reason: "A record may take long.", received: beyond, replayed: there, since: replayFor - time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			at := &patroni.Position{Status: patroni.Status{Timeline: 1}}
			at.Xlog.Received, at.Xlog.Replayed, at.Xlog.Paused = tc.received, tc.replayed, tc.paused
			s := detached{reached: map[string]reached{"a": {position: tc.replayed, at: now.Add(-tc.since)}}}
			if got := s.obstacle("a", at, wal, now); got != tc.want {
				t.Errorf("%s\nobstacle(...): want %q, got %q", tc.reason, tc.want, got)
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
	s := detached{}
	steps := []struct {
		reason    string
		after     time.Duration
		streaming bool
		want      []string
	}{
		{reason: "One that has just stopped to follow will be back."},
		{reason: "It is not yet due.", after: detachedFor - time.Second},
		{reason: "Now it is, and neither the primary nor a pod that is not there.", after: time.Second, want: []string{"b"}},
		{reason: "It follows.", after: time.Second, streaming: true},
		{reason: "It strays again, and the clock starts anew.", after: detachedFor},
		{reason: "It is due.", after: detachedFor, want: []string{"b"}},
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
