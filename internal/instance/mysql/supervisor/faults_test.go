package supervisor

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestVolumes: what happens to servers by what is on their volumes.
func TestVolumes(t *testing.T) {
	w := newWorld(t, 3)
	for n := range 3 {
		w.start(n)
	}
	w.until("three members", upWithin+joinWithin, func() bool { return w.online() == 3 })
	w.prepare()
	l := w.write(2)

	other := func() int { return (ordinal(w.leader()) + 1) % 3 }
	t.Run("a volume is lost", func(t *testing.T) {
		n := other()
		w.crash(n)
		if err := os.RemoveAll(filepath.Join(w.dir, pod(n))); err != nil {
			t.Fatal(err)
		}
		w.start(n)
		w.until("three members", joinWithin, func() bool { return w.online() == 3 })
	})
	t.Run("a server has transactions of its own", func(t *testing.T) {
		n := other()
		w.leave(n)
		w.alone(n, "CREATE DATABASE errant")
		w.start(n)
		w.until("three members", joinWithin, func() bool { return w.online() == 3 })
		if aside, _ := filepath.Glob(filepath.Join(w.dir, pod(n), "data-aside-*")); len(aside) != 1 {
			t.Errorf("folders with what was set aside: got %q, want one", aside)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.warnings) != 1 || !strings.HasPrefix(w.warnings[0], "DataSetAside: "+pod(n)+" copies a member: volume claim data-"+pod(n)+" has transactions that the group does not have, 1 in all: ") {
			t.Errorf("events: got %q", w.warnings)
		}
	})
	t.Run("all stop one after another", func(*testing.T) {
		last := ordinal(w.leader())
		order := []int{(last + 1) % 3, (last + 2) % 3, last}
		for _, n := range order {
			w.leave(n)
		}
		// The first that stopped lacks what the last has acknowledged, and starts first.
		for _, n := range order {
			w.start(n)
			time.Sleep(2 * time.Second)
		}
		w.until("three members", joinWithin, func() bool { return w.online() == 3 })
	})
	l.check()

	t.Run("a volume that parted leads by the annotation alone", func(t *testing.T) {
		if err := w.server(w.leader()).server.Dumper(t.Context(), "dumps"); err != nil {
			t.Fatal(err)
		}
		before := w.query(w.leader(), systemQuery)
		lost := other()
		for n := range 3 {
			w.leave(n)
		}
		w.alone(lost, "CREATE DATABASE parted")
		w.alone((lost+1)%3, "CREATE DATABASE parted_too")
		began := time.Now()
		for n := range 3 {
			w.start(n)
		}
		w.until("all servers to answer", upWithin, func() bool { return w.answering() == 3 })
		time.Sleep(3 * time.Second)
		if w.ledSince(began) {
			t.Fatalf("%s leads, and no annotation has decided that", w.leader())
		}
		w.mu.Lock()
		w.named = "data-" + pod(lost)
		w.mu.Unlock()
		w.until("the named one to lead", upWithin, func() bool { return w.leader() == pod(lost) })
		w.mu.Lock()
		w.named = ""
		w.mu.Unlock()
		w.until("three members", joinWithin, func() bool { return w.online() == 3 })
		// An archive has what the others had, and must not go on with it.
		after := w.query(w.leader(), systemQuery)
		if before == "" || after == before {
			t.Errorf("identifier of the data: %q before, %q after", before, after)
		}
		for n := range 3 {
			if got := w.query(pod(n), systemQuery); got != after {
				t.Errorf("identifier of the data at %s: got %q, want %q", pod(n), got, after)
			}
		}
	})
}

// TestLastServer: the only server that is left leads again after a start, although the volumes of others stay.
func TestLastServer(t *testing.T) {
	w := newWorld(t, 1)
	w.nameless = map[string]bool{pod(1): true, pod(2): true}
	for name := range w.nameless {
		if err := os.Mkdir(filepath.Join(w.dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.start(0)
	w.until("a primary", upWithin, func() bool { return w.leader() == pod(0) })
	w.leave(0)
	w.start(0)
	began := time.Now()
	w.until("a primary again", upWithin, func() bool { return w.ledSince(began) })
}

// crash ends a server and its supervisor at once.
func (w *world) crash(n int) {
	w.t.Helper()
	w.mu.Lock()
	r := w.servers[pod(n)]
	delete(w.servers, pod(n))
	w.mu.Unlock()
	r.stop()
	if err := r.signal(syscall.SIGKILL); err != nil {
		w.t.Fatal(err)
	}
	if err := <-r.done; err != nil {
		w.t.Logf("stop %s: %v", r.Pod, err)
	}
	_ = r.log.Close()
}
