package roll

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// world is a simulated cluster whose pods come back by themselves, after one or more steps of time.
type world struct {
	Cluster

	// away is the number of steps until each server is back.
	away []int

	// late is the number of steps until standbys become synchronous.
	late int
}

func drawWorld(t *rapid.T) *world {
	size := rapid.IntRange(1, 7).Draw(t, "size")
	w := &world{Cluster: Cluster{
		Primary: fmt.Sprintf("db-%d", rapid.IntRange(0, size-1).Draw(t, "primary")), Size: size,
		Synchronous: size > 1 && rapid.Bool().Draw(t, "synchronous"), Replace: size > 1, LagBytes: lagBytes,
	}, away: make([]int, size)}
	for i := range size {
		s := Server{
			Pod: fmt.Sprintf("db-%d", i), Ordinal: i, Exists: true, Ready: true,
			Outdated: size > 1 && rapid.Bool().Draw(t, "outdated"), Restart: rapid.Bool().Draw(t, "restart"),
		}
		s.Streaming = s.Pod != w.Primary
		w.Servers = append(w.Servers, s)
		if s.Streaming && rapid.IntRange(0, 3).Draw(t, "broken") == 0 {
			w.hurt(t, i)
		}
	}
	w.late = rapid.IntRange(0, 5).Draw(t, "late")
	w.acknowledge()
	return w
}

// hurt makes a standby unusable for some steps, in one of several ways.
func (w *world) hurt(t *rapid.T, i int) {
	s := &w.Servers[i]
	w.away[i] = rapid.IntRange(1, 4).Draw(t, "away")
	switch rapid.IntRange(0, 5).Draw(t, "how") {
	case 0:
		gone(s)
	case 1:
		silent(s)
	case 2:
		lagging(s)
	case 3:
		s.Streaming = false
	case 4:
		joining(s)
	default:
		s.Deleting = true
	}
}

// acknowledge makes all following standbys synchronous once late is over, as Patroni does.
func (w *world) acknowledge() {
	for i := range w.Servers {
		s := &w.Servers[i]
		s.Synchronous = w.late == 0 && w.follows(s)
	}
}

// pass lets one step of time pass: servers whose time is over are back and current.
func (w *world) pass() {
	w.late = max(w.late-1, 0)
	for i := range w.Servers {
		if w.away[i] == 0 {
			continue
		}
		if w.away[i]--; w.away[i] > 0 {
			continue
		}
		s := &w.Servers[i]
		if !s.Exists || s.Deleting {
			s.Outdated, s.Restart = false, false
		}
		s.Exists, s.Deleting, s.Ready, s.Joining, s.LagBytes = true, false, true, false, 0
		s.Streaming = s.Pod != w.Primary
	}
	w.acknowledge()
}

// take executes a step.
func (w *world) take(t *rapid.T, step Step) {
	if step.Verb == Wait {
		return
	}
	s := w.server(step.Pod)
	if step.Verb == Restart {
		s.Tried++
		if rapid.IntRange(0, 4).Draw(t, "fails") == 0 {
			return
		}
		s.Restarted, s.Restart = s.Restarted+1, false
	}
	if s.Pod != w.Primary {
		s.Ready, s.Streaming, s.Synchronous = false, false, false
		s.Deleting = step.Verb == Replace
		w.away[s.Ordinal] = rapid.IntRange(1, 4).Draw(t, "back")
		return
	}
	if step.Verb == Restart {
		return
	}
	// The preStop hook hands over before the pod is deleted.
	for i := range w.Servers {
		if o := &w.Servers[i]; w.follows(o) && (!w.Synchronous || o.Synchronous) {
			w.Primary, o.Streaming, o.Synchronous = o.Pod, false, false
			break
		}
	}
	s.Ready, s.Streaming, s.Deleting = false, false, true
	w.away[s.Ordinal] = 1
	w.late = rapid.IntRange(0, 5).Draw(t, "late")
}

// check fails the test if the step is not allowed.
func (w *world) check(t *rapid.T, step Step) {
	if step.Verb == Wait {
		return
	}
	s := w.server(step.Pod)
	if s.Deleting || !s.Exists {
		t.Fatalf("%s is away already", s.Pod)
	}
	for _, o := range w.within() {
		if s.Joining && o.Pod != s.Pod && o.Pod != w.Primary && !w.follows(o) {
			t.Fatalf("%s goes while it joins, and %s does not follow either", s.Pod, o.Pod)
		}
	}
	if step.Verb == Replace && !s.Outdated || step.Verb == Restart && !s.Restart {
		t.Fatalf("%s need not go", s.Pod)
	}
	if step.Verb == Replace && s.Pod != w.Primary && !s.Ready && !s.Streaming {
		return // it does not serve
	}
	for _, o := range w.within() {
		switch {
		case o.Pod == s.Pod, o.Pod == w.Primary:
		case !o.Exists, o.Deleting, !o.Streaming:
			t.Fatalf("%s goes while %s is away: two at once", s.Pod, o.Pod)
		case o.LagBytes > lagBytes:
			t.Fatalf("%s goes while %s lags", s.Pod, o.Pod)
		case s.Pod == w.Primary && step.Verb == Replace && o.Outdated:
			t.Fatalf("primary %s goes before %s", s.Pod, o.Pod)
		case s.Pod == w.Primary && step.Verb == Restart && o.Restart && o.Restarted == 0:
			t.Fatalf("primary %s restarts before %s", s.Pod, o.Pod)
		}
	}
	if w.Synchronous && s.Pod == w.Primary && !w.all(func(o *Server) bool { return o.Pod == w.Primary || o.Synchronous }) {
		t.Fatalf("primary %s goes before every standby is in step", s.Pod)
	}
}

func TestRolls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		for range 40 * w.Size {
			step := Next(w.Cluster)
			w.check(t, step)
			w.take(t, step)
			w.pass()
			if again := Next(w.Cluster); step.Verb == Wait && step.Message == "" && again.Message == "" {
				break
			}
		}
		step := Next(w.Cluster)
		if step.Verb != Wait || step.Message != "" {
			t.Fatalf("it does not end: %+v in %+v", step, w.Servers)
		}
		for _, s := range w.Servers {
			if s.Exists && s.Outdated && w.Replace {
				t.Errorf("%s is still outdated", s.Pod)
			}
			if s.Restart && step.Stuck == "" {
				t.Errorf("%s still waits for a restart, and nothing says so", s.Pod)
			}
		}
	})
}
