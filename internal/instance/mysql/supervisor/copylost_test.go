package supervisor

import (
	"testing"
	"time"

	"github.com/storeplane/storeplane/internal/instance/mysql/group"
)

// TestCopyLost: a server that has only begun to copy the other one is lost, and with it the majority of the two. The other one
// has all that was acknowledged, and leads without it.
func TestCopyLost(t *testing.T) {
	w := newWorld(t, 1)
	w.start(0)
	w.until("a primary", upWithin, func() bool { return w.leader() != "" })
	w.prepare()
	l := w.write(2)
	defer l.stop()
	w.resize(3)
	w.start(1)
	w.until("a member that copies the other", joinWithin, func() bool {
		first, _ := w.server(pod(0)).Last()
		second, _ := w.server(pod(1)).Last()
		return len(first.Members) == 2 && second.Data == group.Copy && second.State == group.Recovering
	})
	epoch := func() int64 {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.record.Epoch
	}
	was := epoch()
	w.crash(1)
	w.until("another group of the first", joinWithin, func() bool { return epoch() > was })
	w.until("a write", upWithin, func() bool { return l.since() < time.Second })
	t.Logf("no write for %s", l.longest())
	w.start(1)
	w.start(2)
	w.until("three members", joinWithin, func() bool { return w.online() == 3 })
	l.check()
}
