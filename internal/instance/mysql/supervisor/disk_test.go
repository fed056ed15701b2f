package supervisor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/storeplane/storeplane/internal/instance/mysql/group"
)

// volumeOf gives a server a volume of its own.
func (w *world) volumeOf(n int) {
	w.t.Helper()
	dir := filepath.Join(w.dir, pod(n))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		w.t.Fatal(err)
	}
	switch err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=800m"); {
	case errors.Is(err, syscall.EPERM):
		// Suite mysql fills the disks of servers on a cluster. This test is for developers who are root.
		w.t.Skip("a volume of its own needs the right to mount one")
	case err != nil:
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		w.end()
		w.servers = nil
		if err := syscall.Unmount(dir, 0); err != nil {
			w.t.Error(err)
		}
	})
}

// fill fills the volume of a server, and returns what makes room again.
func (w *world) fill(name string) func() {
	w.t.Helper()
	file := filepath.Join(w.dir, name, "fill")
	f, err := os.Create(file)
	if err != nil {
		w.t.Fatal(err)
	}
	block := make([]byte, 4096)
	for err == nil {
		_, err = f.Write(block)
	}
	if err := errors.Join(f.Close(), isNot(err, syscall.ENOSPC)); err != nil {
		w.t.Fatal(err)
	}
	return func() {
		if err := os.Remove(file); err != nil {
			w.t.Fatal(err)
		}
	}
}

func isNot(err, want error) error {
	if errors.Is(err, want) {
		return nil
	}
	return err
}

// TestFullAtStart: a server whose volume is full is started if it is needed, as where all stop, and not if others serve.
func TestFullAtStart(t *testing.T) {
	cases := map[string]struct {
		reason string
		spare  bool
		full   bool
		ago    time.Duration
		want   bool
	}{
		"Needed":  {reason: "Without it the others cannot decide who leads.", full: true},
		"Spare":   {reason: "Others serve, and it would wait for a minute.", full: true, spare: true, want: true},
		"HasRoom": {reason: "There is room.", spare: true},
		"Anyway":  {reason: "From time to time it is tried: a start may make room.", full: true, spare: true, ago: startAnyway},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := &Supervisor{roomless: true, failed: time.Now().Add(-tc.ago), isFull: tc.full}
			s.Files.Volume = t.TempDir()
			s.free = func(string) (uint64, error) { return leastRoom, nil }
			s.spare(&group.Report{Full: tc.full}, &group.Action{Full: tc.spare && tc.full})
			if got, err := s.waitsForRoom(); err != nil || got != tc.want {
				t.Errorf("%s\nwaitsForRoom(): got %v, %v, want %v", tc.reason, got, err, tc.want)
			}
		})
	}
}

// TestFullVolume: a server whose volume is full leaves its group, so that another one takes writes, or does not have
// to be waited for. It joins again once there is room.
func TestFullVolume(t *testing.T) {
	w := newWorld(t, 3)
	// A replica that falls behind holds up the primary soon.
	w.options = "loose-group-replication-flow-control-applier-threshold=100\nloose-group-replication-flow-control-certifier-threshold=100\n"
	for n := range 3 {
		w.volumeOf(n)
		w.start(n)
	}
	w.until("a primary", upWithin, func() bool { return w.leader() != "" })
	w.until("three members", joinWithin, func() bool { return w.online() == 3 })
	w.prepare()
	l := w.write(4)
	for _, next := range []int{0, 1} {
		began, was := time.Now(), w.leader()
		who := pod((ordinal(was) + next) % 3)
		l.longest()
		free := w.fill(who)
		w.until(who+" to leave the group", joinWithin, func() bool { return w.online() == 2 && w.leader() != who })
		w.until("a write", joinWithin, func() bool { return l.acknowledged() > 0 && l.since() < time.Second })
		t.Logf("%s left after %s, gap %s, primary %s and then %s", who, time.Since(began), l.longest(), was, w.leader())
		time.Sleep(20 * time.Second)
		if gap := l.longest(); gap > time.Second {
			t.Errorf("no write was acknowledged for %s without %s", gap, who)
		}
		if held, _ := w.server(who).Held(); !strings.Contains(held.Message, "raise storageSize") {
			t.Errorf("%s waits for %q", who, held.Message)
		}
		free()
		freed := time.Now()
		w.until("three members again", upWithin, func() bool { return w.online() == 3 })
		t.Logf("%s is back %s after there was room", who, time.Since(freed))
	}
	if got := strings.Join(w.warnings, "\n"); strings.Count(got, "VolumeFull: ") != 2 {
		t.Errorf("events are %s", got)
	}
	l.check()
}
