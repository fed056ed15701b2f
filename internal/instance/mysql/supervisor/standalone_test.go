package supervisor

import (
	"io"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/storeplane/storeplane/internal/gtid"
	"github.com/storeplane/storeplane/internal/instance/mysql/group"
)

// members is the number of members that a server shows, itself among them.
const members = "SELECT count(*) FROM performance_schema.replication_group_members WHERE member_state = 'ONLINE'"

// TestStandalone: a cluster of one runs without a group, and forms one when it is to have more servers. It loses no
// acknowledged row, and gives no transaction the number of another one.
func TestStandalone(t *testing.T) {
	w := newWorld(t, 1)
	w.start(0)
	w.until("a primary", upWithin, func() bool { return w.leader() != "" })
	if n := w.query(pod(0), members); n != "0" {
		t.Errorf("a cluster of one is a group of %s, want none", n)
	}
	// That the server is writable is no sign for a supervisor that has not had it be so.
	other := New(w.config(0), &around{w, pod(0)}, slog.New(slog.DiscardHandler), io.Discard)
	if report, err := other.Report(t.Context()); err != nil || report.Standalone || report.Primary || report.State != group.Offline {
		t.Errorf("Report(): got %+v, %v, want a server that is offline", report, err)
	}
	w.prepare()
	l := w.write(4)
	defer l.stop()
	time.Sleep(time.Second)

	first := w.query(pod(0), "SELECT @@server_uuid")
	was := time.Now()
	w.signal(pod(0), syscall.SIGKILL)
	w.until("the primary again", upWithin, func() bool { return w.ledSince(was) })
	w.until("a write", upWithin, func() bool { return l.since() < time.Second })
	l.longest()
	second := w.query(pod(0), "SELECT @@server_uuid")
	if second == first {
		t.Errorf("the server that was started again has UUID %s of before: data that an older volume has again would go on with the same numbers", first)
	}
	if executed := w.query(pod(0), "SELECT @@gtid_executed"); !strings.Contains(executed, first+":") || !strings.Contains(executed, second+":") {
		t.Errorf("transactions %s, want some of %s and %s", executed, first, second)
	}

	// A statement that writes for long holds up the group, and no other statement.
	if err := w.execute(pod(0), "CREATE TABLE app.long_write (n INT PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	release := w.hold(pod(0), "LOCK TABLES app.long_write WRITE")
	w.resize(3)
	w.start(1)
	w.start(2)
	w.until("the reason why there is no group", upWithin, func() bool {
		held, _ := w.server(pod(0)).Held()
		return held.Message == "Waiting for a statement that writes to end, before this server forms a group for the others to join"
	})
	time.Sleep(5 * time.Second)
	if since := l.since(); since > time.Second {
		t.Errorf("no write for %s while a statement holds up the group", since)
	}
	if n := w.query(pod(0), members); n != "0" {
		t.Errorf("server 0 is a member of a group of %s while a statement holds that up", n)
	}
	if on := w.query(pod(0), "SELECT @@read_only"); on != "0" {
		t.Errorf("read_only is %s while a statement holds up the group, want 0", on)
	}
	// The first attempt is lost: another server has changed the record meanwhile.
	lost := false
	w.mu.Lock()
	w.confirms = func(string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !lost {
			w.record.Name, lost = "11111111-1111-4111-8111-111111111111", true
		}
	}
	w.mu.Unlock()
	l.longest()
	release()
	w.until("three members", joinWithin, func() bool { return w.online() == 3 })
	gap := l.longest()
	t.Logf("no write for %s while the group was formed", gap)
	if gap > 30*time.Second || !lost {
		t.Errorf("the first attempt was lost: %t, and no write for %s is too long on any machine", lost, gap)
	}
	if n := w.query(pod(0), members); n != "3" {
		t.Errorf("server 0 shows %s members, want 3", n)
	}
	if report, _ := w.server(pod(0)).Last(); report.Standalone || !report.Primary {
		t.Errorf("server 0 reports that it is standalone %t and the primary %t, want false and true", report.Standalone, report.Primary)
	}
	if held, _ := w.server(pod(0)).Held(); held.Message != "" {
		t.Errorf("server 0 waits for %q", held.Message)
	}

	// One that is writable without a group, and was not meant to be, is no cluster of its own.
	if err := w.execute(pod(2), "STOP GROUP_REPLICATION", "SET GLOBAL read_only = OFF"); err != nil {
		t.Fatal(err)
	}
	w.until("it to be a member again", joinWithin, func() bool {
		if w.leader() != pod(0) {
			t.Errorf("%s leads", w.leader())
		}
		report, _ := w.server(pod(2)).Last()
		return report.State == group.Online && len(report.Members) == 3
	})
	time.Sleep(time.Second)
	l.check()
}

// TestStandaloneAppliesWhatItReceived: a server that is the only one from now on, and has received what it has not
// applied, applies that first. A group that had it has acknowledged it.
func TestStandaloneAppliesWhatItReceived(t *testing.T) {
	t.Run("Staging", func(t *testing.T) { appliesWhatItReceived(t, "") })
	// A single server for development has no performance schema.
	t.Run("Development", func(t *testing.T) { appliesWhatItReceived(t, "performance_schema=OFF\n") })
}

// appliesWhatItReceived has a server that is behind be the only one, with options from then on.
func appliesWhatItReceived(t *testing.T, options string) {
	t.Helper()
	w := newWorld(t, 3)
	for n := range 3 {
		w.start(n)
	}
	w.until("three members", joinWithin, func() bool { return w.online() == 3 })
	w.prepare()
	if w.leader() == pod(0) {
		w.leave(0)
		w.start(0)
		w.until("another primary", joinWithin, func() bool { return w.online() == 3 && w.leader() != pod(0) })
	}
	w.hold(pod(0), "LOCK TABLES app.ledger READ")
	if err := w.execute(w.leader(), "INSERT INTO app.ledger (id) VALUES (1), (2)", "INSERT INTO app.ledger (id) VALUES (3)"); err != nil {
		t.Fatal(err)
	}
	all, err := gtid.Parse(w.query(w.leader(), "SELECT @@gtid_executed"))
	if err != nil {
		t.Fatal(err)
	}
	w.until("a server that has received what it has not applied", upWithin, func() bool {
		own, _ := w.server(pod(0)).Last()
		return own.Transactions.Contains(all) && w.query(pod(0), "SELECT count(*) FROM app.ledger") == "0"
	})
	w.resize(0)
	for n := range 3 {
		w.signal(pod(n), syscall.SIGKILL)
	}
	for n := range 3 {
		w.leave(n)
	}
	w.resize(1)
	w.options = options
	w.name(0)
	w.start(0)
	w.until("a primary", upWithin, func() bool { return w.leader() == pod(0) })
	if n := w.query(pod(0), members); n != "1" {
		t.Errorf("a server that has not applied all is a member of a group of %s, want 1", n)
	}
	w.until("the rows that were received", upWithin, func() bool { return w.query(pod(0), "SELECT count(*) FROM app.ledger") == "3" })
	w.name(-1)

	// Once all is applied, its next start needs no group.
	was := time.Now()
	w.leave(0)
	w.start(0)
	w.until("a primary again", upWithin, func() bool { return w.ledSince(was) })
	if n := w.query(pod(0), members); n != "0" {
		t.Errorf("a cluster of one is a group of %s, want none", n)
	}

	// One that takes no writes any more, and is to have others, founds a group, and is not standalone from then on.
	w.resize(3)
	if err := w.execute(pod(0), "SET GLOBAL super_read_only = ON"); err != nil {
		t.Fatal(err)
	}
	w.until("a group", upWithin, func() bool { return w.query(pod(0), members) == "1" })
	w.until("it to lead", upWithin, func() bool { return w.server(pod(0)).Leads() })
	if w.server(pod(0)).isAlone() {
		t.Error("the supervisor takes the member of a group for a standalone server")
	}
}

// TestReadyWhileForming: a server that founds a group for others stays ready, and clients find it again at once.
func TestReadyWhileForming(t *testing.T) {
	now := time.Now()
	s := &Supervisor{at: now, report: group.Report{Running: true, State: group.Offline}}
	if err := s.ready(now); err == nil {
		t.Error("ready(): got no error of a server that is offline")
	}
	s.setForming(true)
	if err := s.ready(now); err != nil {
		t.Errorf("ready(): got %v while the server forms its group", err)
	}
	if err := s.ready(now.Add(time.Minute)); err == nil {
		t.Error("ready(): got no error of a server that was not observed for a minute")
	}
}
