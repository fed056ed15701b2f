package group

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/storeplane/storeplane/internal/gtid"
)

// simulated is a cluster with a model of Group Replication: a write is acknowledged once a majority of
// the primary's view has received it, a view changes by a majority of the one before, and a member
// that leaves in order shrinks it. Servers decide by Decide, and act later: what they saw may be old.
type simulated struct {
	t       *rapid.T
	record  Record
	servers map[string]*server
	acked   gtid.Set
	views   int
	groups  int
	starts  int

	// size is the number of servers that are desired.
	size int

	// restored is what a backup holds that fills the cluster, or empty, and restores is how often a server
	// has begun to fill its volume from it.
	restored gtid.Set
	restores int

	// wiped is true once a volume was lost: then what was acknowledged may be lost with it, if it is
	// said.
	wiped bool
}

type server struct {
	pod          string
	volume       int
	data         Data
	transactions gtid.Set

	// behind are those of its transactions that it has received and not executed, which only a group does.
	behind gtid.Set

	// identity is what distinguishes the data from others with the same transactions, since a restore
	// gives it one.
	identity int

	// uuid is another one at each start.
	uuid string

	up, frozen bool
	state      State
	group      string
	view       *view
	suspected  int

	// pending is what the server has decided to do, by the record that it saw. founding is true
	// between its bootstrap and the confirmation.
	pending  *Action
	seen     Record
	founding bool
}

// view is an installed view of a group.
type view struct {
	id      int
	group   string
	members []string
	primary string

	// alone is the UUID of a server without a group, whose writes are numbered by it, or "".
	alone string
}

// identify has a server be another one from now on.
func (s *simulated) identify(srv *server) {
	s.starts++
	srv.uuid = fmt.Sprintf("eeeeeeee-0000-0000-0000-%012d", s.starts)
}

func (s *simulated) each(do func(*server)) {
	for _, pod := range slices.Sorted(maps.Keys(s.servers)) {
		do(s.servers[pod])
	}
}

func (s *simulated) report(srv *server) Report {
	r := Report{Pod: srv.pod, Claim: srv.uid(), Data: srv.data, Running: srv.data != Empty, Server: srv.pod, Group: srv.group, State: srv.state, Transactions: srv.transactions}
	if srv.data == Empty {
		return Report{Pod: srv.pod, Claim: srv.uid(), Data: Empty}
	}
	r.Behind = srv.state == Offline && !srv.behind.IsEmpty()
	if srv.view != nil {
		r.View, r.Primary, r.Standalone = strconv.Itoa(srv.view.id), srv.view.primary == srv.pod && srv.state == Online, srv.view.alone != ""
		for _, m := range srv.view.members {
			state := s.servers[m].state
			if !s.servers[m].reaches(srv.view) {
				state = Unreachable
			}
			r.Members = append(r.Members, Member{Server: m, Address: m, State: state, Primary: m == srv.view.primary})
		}
	}
	return r
}

func (srv *server) uid() string { return fmt.Sprintf("uid-%s-%d", srv.pod, srv.volume) }

// reaches reports whether a server takes part in a view.
func (srv *server) reaches(v *view) bool { return srv.up && !srv.frozen && srv.view == v }

func (s *simulated) alive(v *view) []string {
	return slices.DeleteFunc(slices.Clone(v.members), func(m string) bool { return !s.servers[m].reaches(v) })
}

// install installs another view with those members of the present one that take part.
func (s *simulated) install(group string, members []string, primary string) {
	s.views++
	v := &view{id: s.views, group: group, members: members, primary: primary}
	for _, m := range members {
		s.servers[m].view = v
	}
}

// elect returns the member that has received the most, or "" if none can lead: one that copies another cannot.
func (s *simulated) elect(members []string) string {
	best := ""
	for _, m := range members {
		if s.servers[m].state == Online && (best == "" || s.servers[m].transactions.Contains(s.servers[best].transactions)) {
			best = m
		}
	}
	return best
}

func (s *simulated) observe(srv *server) Cluster {
	c := Cluster{Pod: srv.pod, Address: srv.pod, Size: s.size, Ordinal: ordinalOf, Reports: map[string]Report{}, Record: s.record, Suspected: srv.suspected, Restoring: !s.restored.IsEmpty()}
	s.each(func(other *server) {
		c.Volumes = append(c.Volumes, Volume{Pod: other.pod, Claim: "data-" + other.pod, UID: other.uid()})
		if other.up && !other.frozen {
			c.Reports[other.pod] = s.report(other)
		}
	})
	return c
}

// act does what a server has decided, as package supervisor does it.
func (s *simulated) act(srv *server) {
	action := *srv.pending
	srv.pending = nil
	switch action.Verb {
	case Initialize:
		srv.data, srv.state = Whole, Offline
	case Restore:
		s.restore(srv)
	case restoring:
		srv.data, srv.state, srv.transactions = Whole, Offline, s.restored
	case InitializeCopy:
		if !s.register(srv, false) {
			return
		}
		srv.data, srv.state = Copy, Offline
	case Leave:
		srv.state, srv.view = Offline, nil
	case SetAside:
		if !s.register(srv, false) {
			return
		}
		srv.data, srv.state, srv.transactions, srv.behind, srv.suspected = Empty, "", gtid.Set{}, gtid.Set{}, 0
	case Form:
		// It takes no writes, and founds a group later.
		if v := srv.view; v != nil && v.alone != "" {
			srv.state, srv.view, srv.pending = Offline, nil, &Action{Verb: Bootstrap}
		}
	case Bootstrap, StandAlone:
		if !s.same(srv.seen) {
			return
		}
		s.groups++
		s.record.Founder, s.record.Confirmed = srv.pod, false
		s.record.Name = fmt.Sprintf("00000000-0000-0000-0000-%012d", s.groups)
		srv.group, srv.state, srv.founding, srv.seen = s.record.Name, Online, true, s.record
		s.install(srv.group, []string{srv.pod}, srv.pod)
		if action.Verb == StandAlone {
			srv.view.alone, srv.transactions = srv.uuid, srv.transactions.Minus(srv.behind)
		}
		srv.behind = gtid.Set{}
	case Join, JoinByCopy:
		s.join(srv, action.Verb == JoinByCopy)
	case starting:
		s.start(srv)
	case copying:
		s.copied(srv)
	case Stay:
	}
}

// restoring is the step between the record of a server that restores a backup and the end of that, which may
// be long after.
const restoring Verb = "fill"

// restore records a server as the one that restores the backup.
func (s *simulated) restore(srv *server) {
	if s.record.Founder != srv.pod {
		if !s.same(srv.seen) {
			return
		}
		s.record.Founder, s.record.Confirmed = srv.pod, false
	}
	s.restores++
	srv.identity, srv.pending = s.restores, &Action{Verb: restoring}
}

func (s *simulated) same(r Record) bool { return fmt.Sprint(s.record) == fmt.Sprint(r) }

// register records a server as a member or not, unless the record has changed since it was seen.
func (s *simulated) register(srv *server, member bool) bool {
	uid := ""
	if member {
		uid = srv.uid()
	}
	if s.record.Members[srv.pod] == uid {
		return true
	}
	if !s.same(srv.seen) {
		return false
	}
	members := map[string]string{}
	maps.Copy(members, s.record.Members)
	s.record.Members = members
	if member {
		s.record.Members[srv.pod] = uid
	} else {
		delete(s.record.Members, srv.pod)
	}
	return true
}

// tend has a primary record the members of its view, and no others. It does nothing for a primary
// that cannot be sure that it is one.
func (s *simulated) tend(srv *server) {
	if !srv.up || srv.frozen || srv.founding || !s.record.Confirmed || srv.group != s.record.Name {
		return
	}
	if p := Live(s.observe(srv).Reports, s.record.Name); p == nil || p.Pod != srv.pod {
		return
	}
	s.record.Members = map[string]string{}
	for _, m := range srv.view.members {
		if s.servers[m].state != Recovering {
			s.record.Members[m] = s.servers[m].uid()
		}
	}
}

const (
	// starting is the step between the registration of a server and the moment at which it is in the group,
	// which may be long after.
	starting Verb = "start"

	// copying is the step between the moment at which a server begins to copy a member, in the group, and the end of that.
	copying Verb = "copy"
)

// join registers the server.
func (s *simulated) join(srv *server, byCopy bool) {
	if byCopy {
		srv.data = Copy
	}
	if s.register(srv, !byCopy) {
		srv.pending = &Action{Verb: starting}
	}
}

// start has a registered server join the view of a member that takes part in a majority. The record may
// have changed since it was registered.
func (s *simulated) start(srv *server) {
	byCopy := srv.data == Copy
	var into *view
	s.each(func(m *server) {
		if v := m.view; v != nil && m.state == Online && v.alone == "" && m.reaches(v) && v.group == srv.seen.Name && len(s.alive(v))*2 > len(v.members) {
			into = v
		}
	})
	if into == nil {
		return
	}
	if slices.Contains(into.members, srv.pod) {
		s.t.Fatalf("%s joins view %v, in which it still is", srv.pod, into.members)
	}
	donor := s.servers[s.elect(s.alive(into))]
	switch {
	case byCopy:
		srv.transactions, srv.behind = gtid.Set{}, gtid.Set{}
		srv.group, srv.state, srv.pending = srv.seen.Name, Recovering, &Action{Verb: copying}
		s.install(into.group, append(s.alive(into), srv.pod), s.keep(into))
		return
	case srv.identity != donor.identity:
		s.t.Fatalf("%s joins with other data than %s: both have restored the backup", srv.pod, donor.pod)
	case !donor.transactions.Contains(srv.transactions):
		// Group Replication refuses a server with transactions of its own.
		srv.state = Failed
		return
	}
	srv.transactions = srv.transactions.Union(donor.transactions)
	srv.group, srv.state = srv.seen.Name, Online
	s.install(into.group, append(s.alive(into), srv.pod), s.keep(into))
}

// copied has a server have what a member has that it copies, and start again, so that it joins with that later.
func (s *simulated) copied(srv *server) {
	v := srv.view
	if v == nil || srv.state != Recovering {
		return
	}
	name := s.elect(s.alive(v))
	if name == "" {
		return
	}
	donor := s.servers[name]
	srv.transactions, srv.identity, srv.data = donor.transactions, donor.identity, Whole
	srv.state, srv.view = Offline, nil
	s.identify(srv)
}

// keep returns the primary of the next view.
func (s *simulated) keep(v *view) string {
	if p := s.servers[v.primary]; p != nil && p.reaches(v) {
		return v.primary
	}
	return s.elect(s.alive(v))
}

// confirm ends a bootstrap.
func (s *simulated) confirm(srv *server) {
	srv.founding = false
	if !s.same(srv.seen) {
		srv.state, srv.view = Offline, nil
		return
	}
	if !srv.transactions.Contains(s.restored) {
		s.t.Fatalf("%s leads without the backup that fills the cluster", srv.pod)
	}
	s.record.Confirmed, s.record.Epoch, s.record.Members = true, s.record.Epoch+1, map[string]string{srv.pod: srv.uid()}
	if missing := s.acked.Minus(srv.transactions); !missing.IsEmpty() {
		s.t.Fatalf("%s leads without %s, which was acknowledged", srv.pod, missing)
	}
}

// number returns the first transaction of a group that a server does not have, which is what a primary
// gives to the next one.
func (s *simulated) number(srv *server, group string) gtid.Set {
	for n := 1; ; n++ {
		one, err := gtid.Parse(fmt.Sprintf("%s:%d", group, n))
		if err != nil {
			s.t.Fatal(err)
		}
		if !srv.transactions.Contains(one) {
			return one
		}
	}
}

// write has a server that takes writes acknowledge one.
func (s *simulated) write(srv *server, slow int) {
	v := srv.view
	if !srv.up || srv.frozen || v == nil || v.primary != srv.pod || srv.state != Online || srv.founding {
		return
	}
	alive := s.alive(v)
	if len(alive)*2 <= len(v.members) {
		return
	}
	if missing := s.acked.Minus(srv.transactions); !missing.IsEmpty() {
		s.t.Fatalf("%s takes writes in view %v without %s, which was acknowledged", srv.pod, v.members, missing)
	}
	by := v.group
	if v.alone != "" {
		by = v.alone
	}
	one := s.number(srv, by)
	if s.acked.Contains(one) {
		s.t.Fatalf("%s gives %s to another transaction than the one that was acknowledged", srv.pod, one)
	}
	// A majority of the view, with the primary, receives it before it is acknowledged.
	slices.SortFunc(alive, func(a, b string) int { return (ordinalOf(a)+slow)%7 - (ordinalOf(b)+slow)%7 })
	alive = slices.DeleteFunc(alive, func(m string) bool { return m == srv.pod })
	srv.transactions = srv.transactions.Union(one)
	for _, m := range alive[:len(v.members)/2] {
		s.servers[m].transactions = s.servers[m].transactions.Union(one)
		if slow%2 == 1 {
			s.servers[m].behind = s.servers[m].behind.Union(one)
		}
	}
	s.acked = s.acked.Union(one)
}

// settle installs the view that a majority of the present one agrees on, delivers what its members
// have received to all of them, and fails members without a majority.
func (s *simulated) settle(v *view) {
	alive := s.alive(v)
	if len(alive)*2 <= len(v.members) {
		for _, m := range alive {
			s.servers[m].state, s.servers[m].view = Failed, nil
		}
		return
	}
	all := gtid.Set{}
	for _, m := range alive {
		all = all.Union(s.servers[m].transactions)
	}
	for _, m := range alive {
		s.servers[m].transactions, s.servers[m].behind = all, gtid.Set{}
	}
	if len(alive) < len(v.members) {
		s.install(v.group, alive, s.keep(v))
	}
}

// TestSimulation: whatever fails, and whichever size is desired, no server leads or takes writes without what was acknowledged, and
// once nothing fails any more all servers are one group.
func TestSimulation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &simulated{t: t, servers: map[string]*server{}, size: rapid.SampledFrom([]int{1, 3, 5}).Draw(t, "size")}
		for n := range s.size {
			pod := fmt.Sprintf("db-%d", n)
			// One that is not scheduled yet starts later.
			s.servers[pod] = &server{pod: pod, data: Empty, up: rapid.IntRange(0, 3).Draw(t, "up "+pod) > 0}
			s.identify(s.servers[pod])
		}
		if rapid.Bool().Draw(t, "from a backup") {
			s.restored = parsed(t, "ffffffff-0000-0000-0000-000000000000:1-5")
		}
		pods := slices.Sorted(maps.Keys(s.servers))
		var step func(srv *server, what string, slow int)
		step = func(srv *server, what string, slow int) {
			switch what {
			case "decide":
				if srv.up && !srv.frozen && srv.pending == nil && !srv.founding {
					action := Decide(s.observe(srv))
					srv.suspected++
					if !action.Suspect {
						srv.suspected = 0
					}
					srv.pending, srv.seen = &action, s.record
				}
			case "act":
				if srv.up && !srv.frozen && srv.founding {
					s.confirm(srv)
				} else if srv.up && !srv.frozen && srv.pending != nil {
					s.act(srv)
				}
			case "write":
				s.write(srv, slow)
			case "tend":
				s.tend(srv)
			case "wipe":
				if !srv.up {
					// A copy that is not complete is no loss.
					s.wiped = s.wiped || srv.data == Whole
					srv.data, srv.transactions, srv.behind = Empty, gtid.Set{}, gtid.Set{}
					srv.volume++
				}
			case "lose a copy":
				if srv.state == Recovering {
					step(srv, "kill", 0)
					step(srv, "wipe", 0)
				}
			case "settle":
				if srv.view != nil && srv.up && !srv.frozen {
					s.settle(srv.view)
				}
			case "kill":
				srv.up, srv.state, srv.view, srv.pending, srv.founding = false, Offline, nil, nil, false
				srv.frozen = false
			case "start":
				if srv.up = true; srv.state == Offline && srv.data == Whole {
					s.identify(srv)
				}
			case "shrink":
				// A server that restores the backup and is removed is one that another takes over from.
				if s.restored.IsEmpty() || s.record.Ran() {
					s.size = 1
				}
			case "grow":
				s.size = len(pods)
			case "freeze":
				srv.frozen = true
			case "thaw":
				// A member that the others have gone on without finds itself expelled.
				if srv.frozen = false; srv.view != nil && slices.ContainsFunc(pods, func(p string) bool {
					o := s.servers[p]
					return o.view != nil && o.view.id > srv.view.id && o.view.group == srv.view.group
				}) {
					srv.state, srv.view = Failed, nil
				}
			case "leave":
				if v := srv.view; v != nil && srv.up && !srv.frozen && len(s.alive(v))*2 > len(v.members) {
					s.settle(v)
					v = srv.view
					rest := slices.DeleteFunc(slices.Clone(v.members), func(m string) bool { return m == srv.pod })
					srv.state, srv.view, srv.up, srv.pending, srv.founding = Offline, nil, false, nil, false
					if len(rest) > 0 {
						s.install(v.group, rest, s.keepOf(v, rest))
					}
				}
			}
		}
		calm := func(rounds int, steps ...string) {
			for range rounds {
				for _, pod := range pods {
					for _, what := range steps {
						step(s.servers[pod], what, 0)
					}
				}
			}
		}
		if rapid.Bool().Draw(t, "whole at first") {
			calm(20, "decide", "act", "act", "write")
		}
		faults := []string{"decide", "act", "decide", "act", "tend", "wipe", "write", "write", "write", "settle", "kill", "lose a copy", "start", "start", "freeze", "thaw", "leave", "shrink", "grow"}
		for i := range rapid.IntRange(0, 120).Draw(t, "steps") {
			if what := rapid.IntRange(0, 20).Draw(t, fmt.Sprintf("all %d", i)); what == 0 {
				calm(1, "kill")
			} else if what == 1 {
				calm(5, "start", "decide", "act", "act")
			}
			srv := s.servers[rapid.SampledFrom(pods).Draw(t, fmt.Sprintf("server %d", i))]
			step(srv, rapid.SampledFrom(faults).Draw(t, fmt.Sprintf("step %d", i)), i)
		}
		s.size = len(pods)
		calm(80, "start", "thaw", "settle", "tend", "decide", "act", "act", "act", "write")
		first := s.servers[pods[0]].view
		for _, pod := range pods {
			srv := s.servers[pod]
			if s.wiped && first == nil && Decide(s.observe(srv)).Undecided {
				// What was lost with a volume is for a user to decide.
				continue
			}
			if srv.view == nil || srv.view != first || srv.state != Online {
				t.Fatalf("%s is %q in view %v after all faults have ended: %+v", pod, srv.state, srv.view, Decide(s.observe(srv)))
			}
			if missing := s.acked.Minus(srv.transactions); !missing.IsEmpty() && pod == first.primary {
				t.Fatalf("%s lacks %s", pod, missing)
			}
		}
	})
}

func parsed(t *rapid.T, text string) gtid.Set {
	set, err := gtid.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// keepOf returns the primary among those that stay.
func (s *simulated) keepOf(v *view, rest []string) string {
	if slices.Contains(rest, v.primary) {
		return v.primary
	}
	return s.elect(rest)
}
