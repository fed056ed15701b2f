package supervisor

import (
	"maps"
	"syscall"
	"testing"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/mysqltest"
)

const (
	upWithin   = 60 * time.Second
	joinWithin = 120 * time.Second
)

// TestGroup: three servers come up as one group, and lose no acknowledged row when the primary is
// killed, hands over, is frozen, and when all are killed at once.
func TestGroup(t *testing.T) {
	w := newWorld(t, 3)
	began := time.Now()
	for n := range 3 {
		w.start(n)
	}
	w.until("a primary", upWithin, func() bool { return w.leader() != "" })
	t.Logf("a primary after %s", time.Since(began))
	w.until("three members", joinWithin, func() bool { return w.online() == 3 })
	t.Logf("three members after %s", time.Since(began))
	w.prepare()
	l := w.write(4)
	time.Sleep(time.Second)
	l.longest()

	for _, fault := range []struct {
		name string
		do   func()
	}{
		{"primary is killed", func() { w.signal(w.leader(), syscall.SIGKILL) }},
		{"primary hands over and stops", func() {
			n := ordinal(w.leader())
			w.leave(n)
			w.start(n)
		}},
		{"primary's pod is deleted", func() {
			w.deleted(2 * time.Minute)
			defer w.deleted(0)
			n, began := ordinal(w.leader()), time.Now()
			w.leave(n)
			at, unmarked := w.handed()
			if before, after := at.Sub(began), time.Since(at); before < instance.SettleFor || after < instance.SettleFor || !unmarked {
				t.Errorf("the primary of a pod that is being deleted: want a hand-over after and before %s, to a pod without a mark, got %s, %s, %t", instance.SettleFor, before, after, unmarked)
			}
			w.start(n)
		}},
		{"primary hands over and stays", func() {
			from, to := w.leader(), w.replica()
			held := w.open(from, clients, "secret", "app")
			defer func() { _ = held.Close() }()
			session, err := held.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if err := w.server(from).Move(t.Context(), to, true); err != nil {
				t.Fatal(err)
			}
			if at, unmarked := w.handed(); at.Sub(began) < instance.SettleFor || !unmarked {
				t.Errorf("the primary moves: want a hand-over after %s, to a pod without a mark, got %s, %t", instance.SettleFor, at.Sub(began), unmarked)
			}
			w.until("the session of a client to end", 3*period, func() bool { return session.PingContext(t.Context()) != nil })
			ended := time.Now()
			w.until("clients to be let in again", 2*refuseFor, func() bool { return held.PingContext(t.Context()) == nil })
			if took := time.Since(ended); took < refuseFor-3*period {
				t.Errorf("the primary moves: want it to refuse clients for %s, got %s", refuseFor, took)
			}
		}},
		{"replica leaves and joins again", func() {
			n := ordinal(w.replica())
			w.leave(n)
			w.start(n)
		}},
		{"primary is frozen for 15 s", func() {
			frozen := w.leader()
			w.signal(frozen, syscall.SIGSTOP)
			time.Sleep(15 * time.Second)
			w.signal(frozen, syscall.SIGCONT)
		}},
		{"replica is deaf", func() {
			w.deafen(w.replica())
			w.until("a view without it", joinWithin, func() bool { return w.online() < 3 })
		}},
		{"primary is deaf", func() {
			w.deafen(w.leader())
			w.until("a view without it", joinWithin, func() bool { return w.online() < 3 })
		}},
		{"primary is killed beside a deaf replica", func() {
			w.deafen(w.replica())
			w.signal(w.leader(), syscall.SIGKILL)
		}},
		{"primary is killed beside deaf replicas", func() {
			n := ordinal(w.leader())
			w.deafen(pod((n + 1) % 3))
			w.deafen(pod((n + 2) % 3))
			w.signal(pod(n), syscall.SIGKILL)
		}},
		{"all are killed", func() {
			for n := range 3 {
				w.signal(pod(n), syscall.SIGKILL)
			}
		}},
	} {
		was := time.Now()
		fault.do()
		w.until("another primary", joinWithin, func() bool { return w.ledSince(was) })
		w.until("three members", joinWithin, func() bool { return w.online() == 3 })
		// It is before a replica without a mark would be found.
		w.until("marks", replicaPeriod/2, func() bool {
			return maps.Equal(w.marks(), map[string]int{instance.RolePrimary: 1, instance.RoleReplica: 2})
		})
		time.Sleep(time.Second)
		t.Logf("%s: no write for %s, three members again after %s", fault.name, l.longest(), time.Since(was))
	}
	l.check()
}

// replica returns a pod that is not marked as the primary.
func (w *world) replica() string { return pod((ordinal(w.leader()) + 1) % 3) }

// deafen has a server communicate no more with its group, which it does not notice.
func (w *world) deafen(name string) {
	w.t.Helper()
	pid, err := w.server(name).pid()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := mysqltest.Deafen(pid); err != nil {
		w.t.Fatal(err)
	}
}

// signal sends a signal to a server's program.
func (w *world) signal(name string, s syscall.Signal) {
	w.t.Helper()
	if err := w.server(name).signal(s); err != nil {
		w.t.Fatal(err)
	}
}
