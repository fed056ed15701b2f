package lead

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/storeplane/storeplane/internal/instance"
)

// states are what a volume may contain when a cluster of its name is created again. A fresh volume
// is no older than the cluster.
var states = map[string]*instance.Data{
	"fresh":      nil,
	"empty":      only(instance.DataEmpty),
	"half":       only(instance.DataCopy),
	"unreadable": only(instance.DataUnreadable),
	"stale":      whole(1, 40),
	"newest":     whole(2, 60, instance.Ancestor{Timeline: 1, End: 50}),
	"foreign":    of1("2"),
}

// TestEveryStateInEveryOrder: for any content of four volumes and any order in which their pods
// start, no server starts before the content of all is known, one with the newest data is the
// first, none begins with an empty database if there is data, and no server starts if there is no
// decision.
func TestEveryStateInEveryOrder(t *testing.T) {
	const servers = 4
	var kinds []string
	for k := range states {
		kinds = append(kinds, k)
	}
	slices.Sort(kinds)
	all := orders(servers)
	combination := make([]string, servers)
	var each func(int)
	each = func(i int) {
		if i == servers {
			for _, order := range all {
				play(t, combination, order)
			}
			return
		}
		for _, k := range kinds {
			combination[i] = k
			each(i + 1)
		}
	}
	each(0)
}

// play simulates the start of a cluster.
func play(t *testing.T, kinds []string, order []int) {
	t.Helper()
	has := func(kind string) bool { return slices.Contains(kinds, kind) }
	c := Cluster{Annotation: "lead-with"}
	place := map[int]int{}
	for i, k := range kinds {
		if k != "fresh" {
			pod := instance.Pod("db", int32(i))
			place[i] = len(c.Kept)
			c.Kept = append(c.Kept, Volume{Claim: "data-" + pod, Pod: pod})
		}
	}
	said := fmt.Sprintf("%v, in order %v", kinds, order)
	var up, started []int
	ask := func() {
		for _, i := range up {
			c.Pod = instance.Pod("db", int32(i)) //nolint:gosec // a few
			c.Claim = "data-" + c.Pod
			if Decide(c).Start && !slices.Contains(started, i) {
				started = append(started, i)
			}
		}
	}
	for n, i := range order {
		up = append(up, i)
		if at, kept := place[i]; kept {
			c.Kept[at].Data = states[kinds[i]]
		}
		ask()
		known := !slices.ContainsFunc(c.Kept, func(v Volume) bool { return v.Data == nil })
		if len(started) > 0 && !known {
			t.Fatalf("%s: server %d started after %d of them had come", said, started[0], n+1)
		}
	}
	data := has("newest") || has("stale") || has("foreign")
	undecided := has("unreadable") || has("foreign") && (has("newest") || has("stale")) || has("half") && !data
	switch {
	case undecided && len(started) > 0:
		t.Fatalf("%s: servers %v started, and it is not decided which leads", said, started)
	case undecided:
		return
	case !data && len(started) != len(kinds):
		t.Fatalf("%s: only servers %v started, and there is no data to wait for", said, started)
	case !data:
		return
	case len(started) != 1:
		t.Fatalf("%s: servers %v started, want one", said, started)
	}
	best := "newest"
	for _, k := range []string{"newest", "stale", "foreign"} {
		if has(k) {
			best = k
			break
		}
	}
	if got := kinds[started[0]]; got != best {
		t.Fatalf("%s: the %s one leads, want the %s one", said, got, best)
	}
	c.Primary = true
	if ask(); len(started) != len(kinds) {
		t.Fatalf("%s: only servers %v started after one led", said, started)
	}
}

// TestNamedInEveryOrder: in a cluster that has run, whichever servers were members, whichever
// volume is named and in whichever order the pods start, only the named server starts, and all
// others once it leads.
func TestNamedInEveryOrder(t *testing.T) {
	const servers = 4
	for mask := 1; mask < 1<<servers; mask++ {
		for named := range servers {
			c := Cluster{Named: "data-" + instance.Pod("db", int32(named))}
			for i := range servers {
				if mask&(1<<i) != 0 {
					c.Members = append(c.Members, instance.Pod("db", int32(i)))
				}
			}
			for _, order := range orders(servers) {
				for _, primary := range []bool{false, true} {
					c.Primary = primary
					for _, i := range order {
						c.Pod = instance.Pod("db", int32(i)) //nolint:gosec // a few
						c.Claim = "data-" + c.Pod
						if got := Decide(c); got.Start != (primary || i == named) || got.First != (!primary && i == named) {
							t.Fatalf("members %v, %s is named, primary %t: got %+v for %s", c.Members, c.Named, primary, got, c.Pod)
						}
					}
				}
			}
		}
	}
}

// orders returns all permutations of the numbers below n.
func orders(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var out [][]int
	for _, o := range orders(n - 1) {
		for i := range n {
			out = append(out, slices.Insert(slices.Clone(o), i, n-1))
		}
	}
	return out
}

// life is the history of a cluster, as far as its volumes show it.
type life struct {
	r       *rand.Rand
	data    []*instance.Data
	primary int
}

// TestNewestHasEveryWrite: whatever happened to a cluster, the volume that is chosen to lead has
// what the last primary wrote.
func TestNewestHasEveryWrite(t *testing.T) {
	for seed := range uint64(20000) {
		l := &life{r: rand.New(rand.NewPCG(seed, 0))} //nolint:gosec // it only has to be the same each time
		for range 2 + l.r.IntN(4) {
			l.data = append(l.data, whole(1, 10))
		}
		for range l.r.IntN(30) {
			l.happen()
		}
		leader, problem := choose(volumes(l.data...))
		if problem != nil {
			t.Fatalf("seed %d: it is not decided: %s", seed, problem.Message)
		}
		if last := l.data[l.primary]; leader.Data.Timeline != last.Timeline || leader.Data.Position != last.Position {
			t.Fatalf("seed %d: %s leads on timeline %d at %s, the last primary was on %d at %s", seed, leader.Pod, leader.Data.Timeline, leader.Data.Position, last.Timeline, last.Position)
		}
	}
}

// happen lets one thing happen: the primary writes, a standby follows, or one is promoted.
func (l *life) happen() {
	i := l.r.IntN(len(l.data))
	p := l.data[l.primary]
	switch l.r.IntN(4) {
	case 0, 1:
		p.Position += instance.LSN(1 + l.r.IntN(20)) //nolint:gosec // a few
	case 2:
		// It streams, rewinds or copies: either way it ends up with the primary's data.
		*l.data[i] = instance.Data{State: p.State, System: p.System, Timeline: p.Timeline, Position: p.Position, History: slices.Clone(p.History)}
	case 3:
		// Only a standby of this primary is on its timeline.
		if s := l.data[i]; i != l.primary && s.Timeline == p.Timeline {
			s.History = append(slices.Clone(s.History), instance.Ancestor{Timeline: s.Timeline, End: s.Position})
			s.Timeline++
			s.Position++
			l.primary = i
		}
	}
}
