package manager

import (
	"sync"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/roll"
)

// backWithin is how long a standby may take to stream after its restart.
const backWithin = 2 * time.Minute

// remindWithin is for how long after the primary's restart its standbys are reminded of
// theirs: they have replayed it by then.
const remindWithin = 30 * time.Second

// restarts counts restarts of servers for one change of the claim.
type restarts struct {
	mu     sync.Mutex
	digest string
	of     map[string]tally
}

type tally struct {
	tried, restarted int
	at               time.Time
}

// count sets how often each server was restarted for what is desired now.
func (r *restarts) count(digest string, servers []roll.Server) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.digest != digest {
		r.digest, r.of = digest, map[string]tally{}
	}
	for i := range servers {
		t := r.of[servers[i].Pod]
		servers[i].Tried, servers[i].Restarted = t.tried, t.restarted
	}
}

func (r *restarts) tried(pod string) {
	r.change(pod, func(t *tally) { t.tried++ })
}

func (r *restarts) restarted(pod string) {
	r.change(pod, func(t *tally) { t.restarted++ })
}

// recent reports whether a server was restarted for this change and its last try was within
// remindWithin.
func (r *restarts) recent(pod string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.of[pod]
	return t.restarted > 0 && now.Sub(t.at) < remindWithin
}

func (r *restarts) change(pod string, change func(*tally)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.of[pod]
	change(&t)
	t.at = time.Now()
	if r.of == nil {
		r.of = map[string]tally{}
	}
	r.of[pod] = t
}

// problems returns the problems of restarts: those that had no effect, and those after which a
// standby does not follow.
func (r *restarts) problems(c roll.Cluster, step roll.Step, now time.Time) []instance.Problem {
	r.mu.Lock()
	defer r.mu.Unlock()
	var problems []instance.Problem
	add := func(pod, message string) {
		problems = append(problems, instance.Problem{Subject: instance.SubjectPod, Name: pod, Message: pod + message})
	}
	if step.Stuck != "" {
		add(step.Stuck, " still waits for a restart after several tries")
	}
	for _, s := range c.Servers {
		t := r.of[s.Pod]
		if s.Pod != c.Primary && t.tried > 0 && !s.Streaming && now.Sub(t.at) > backWithin {
			add(s.Pod, " does not follow the primary since its restart")
		}
	}
	return problems
}
