package archive

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/control"
	"github.com/storeplane/storeplane/internal/instance/control/controltest"
	"github.com/storeplane/storeplane/internal/pgbackrest"
	"github.com/storeplane/storeplane/internal/pgbackrest/wal"
)

// TestNewTimeline: a server becomes primary on an old timeline, after another server has begun and
// archived the next one. It begins a timeline that the archive does not contain, and no history or
// WAL in the archive is lost.
func TestNewTimeline(t *testing.T) {
	cases := map[string]struct {
		reason string

		// mode is how the server that is to lead was stopped, and behind whether it lacks WAL.
		mode   string
		behind bool
	}{
		"Stopped": {reason: "It had received all of its timeline.", mode: "fast"},
		"Killed":  {reason: "It has to recover first.", mode: "immediate"},
		"Behind":  {reason: "Its data ends before the next timeline began.", mode: "fast", behind: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			old := p.primary("old")
			old.exec("CREATE TABLE t (who text)")
			old.backUp()
			stale, next := old.standby("stale"), old.standby("next")
			stale.keep()
			old.exec("INSERT INTO t VALUES ('all')")
			stale.follow(old)
			if tc.behind {
				stale.run("pg_ctl", "-D", stale.DataDir(), "-w", "-m", tc.mode, "stop")
				old.write()
			}
			next.follow(old)
			old.archived()
			old.stop()
			if !tc.behind {
				stale.run("pg_ctl", "-D", stale.DataDir(), "-w", "-m", tc.mode, "stop")
			}
			next.promote()
			next.exec("INSERT INTO t VALUES ('next')")
			next.write()
			next.archived()
			next.backUp()
			tool, stanza := next.tool()
			sets, err := tool.Sets(t.Context())
			p.must(err)
			taken := next.history(2)
			next.stop()

			for range 2 { // the second time there is nothing to do
				p.must(stale.AskTimeline(0, false))
				p.must(Prepare(t.Context(), stale.Config, "127.0.0.1:0", control.TLS{}, testLog{t}))
				if s := stale.TimelineState(); s != nil {
					t.Errorf("%s\nit is prepared, and yet has state %+v", tc.reason, s)
				}
			}
			// Patroni starts it as a standby, and promotes it.
			p.must(os.WriteFile(filepath.Join(stale.DataDir(), "standby.signal"), nil, 0o600))
			stale.start("primary_conninfo=")
			stale.promote()
			if at := stale.current()[:8]; at != "00000004" {
				t.Errorf("%s\nit leads on timeline %s, want one after that it took", tc.reason, at)
			}
			stale.exec("INSERT INTO t VALUES ('stale')")
			stale.write()
			stale.eventually("all is archived, or cannot be", func() bool { return stale.waiting() == 0 || stale.Failure() != "" })
			if failure := stale.Failure(); failure != "" {
				t.Fatalf("%s\nit does not archive: %s", tc.reason, failure)
			}
			if got := stale.history(2); got != taken {
				t.Errorf("%s\nthe archive's history of the timeline that was taken was overwritten: got %q, want %q", tc.reason, got, taken)
			}

			// The existing backups continue on another branch, so what is written now can be
			// restored only from a new backup, which does not exist yet.
			got, err := Complete(t.Context(), stale.Config, stale.current(), testLog{t})
			p.must(err)
			if len(got.Sets) != 1 || len(got.Lost) != 0 {
				t.Errorf("%s\nComplete(): got %+v, want the backup that this server goes on from, and nothing lost", tc.reason, got)
			}
			after, err := tool.Sets(t.Context())
			p.must(err)
			for range 2 {
				set, err := latest(t.Context(), tool, stanza, after)
				if err != nil || len(pgbackrest.On(lineage(t, stale), []pgbackrest.Set{set})) != 1 {
					t.Errorf("%s\nlatest(...): got %s, %v, want a backup from which a restore gets to this server's data", tc.reason, set.Label, err)
				}
				if len(after) == len(sets) {
					stale.backUp()
					after, err = tool.Sets(t.Context())
					p.must(err)
				}
			}
			if _, err := latest(t.Context(), tool, stanza, sets[1:]); err == nil || !strings.Contains(err.Error(), "set restoreFrom.time") {
				t.Errorf("%s\nlatest(...) of the other branch: got %v", tc.reason, err)
			}

			// Both branches can be restored.
			for at, want := range map[string]string{"": "all stale", "branch": "all next"} {
				restored := p.server("restored" + at)
				set := sets[len(sets)-1]
				if at == "" {
					set = after[len(after)-1]
				}
				restored.restoreSet(tool, set)
				restored.start()
				var who string
				restored.ask("SELECT string_agg(who, ' ') FROM t", &who)
				if who != want {
					t.Errorf("%s\na restore of %s: got %q, want %q", tc.reason, set.Label, who, want)
				}
				restored.stop()
			}
		})
	}
}

// TestNewTimelineLater: a standby has followed its primary to another timeline and was killed
// before its control file recorded that.
func TestNewTimelineLater(t *testing.T) {
	p := newPlace(t)
	old := p.primary("old")
	old.exec("CREATE TABLE t (who text)")
	stale, next := old.standby("stale"), old.standby("next")
	next.keep()
	next.follow(old)
	stale.follow(old)
	next.promote()
	stale.exec("ALTER SYSTEM SET primary_conninfo TO 'host=" + next.Socket + " user=postgres'")
	stale.ask("SELECT pg_reload_conf()::text", new(string))
	next.exec("INSERT INTO t VALUES ('second')")
	stale.follow(next)
	last := next.standby("last")
	last.follow(next)
	stale.run("pg_ctl", "-D", stale.DataDir(), "-w", "-m", "immediate", "stop")
	next.archived()
	old.stop()
	next.stop()
	last.promote()
	last.write()
	last.archived()
	taken := last.history(3)
	last.stop()

	p.must(stale.AskTimeline(0, false))
	p.must(Prepare(t.Context(), stale.Config, "127.0.0.1:0", control.TLS{}, testLog{t}))
	p.must(os.WriteFile(filepath.Join(stale.DataDir(), "standby.signal"), nil, 0o600))
	stale.start("primary_conninfo=")
	stale.exec("ALTER SYSTEM RESET primary_conninfo")
	stale.ask("SELECT pg_reload_conf()::text", new(string))
	stale.promote()
	if at := stale.current()[:8]; at != "00000005" {
		t.Errorf("it leads on timeline %s, want one after that it took", at)
	}
	var who string
	if stale.ask("SELECT string_agg(who, ' ') FROM t", &who); who != "second" {
		t.Errorf("it has %q, want what its volume had", who)
	}
	stale.write()
	stale.eventually("all is archived, or cannot be", func() bool { return stale.waiting() == 0 || stale.Failure() != "" })
	if failure := stale.Failure(); failure != "" {
		t.Fatalf("it does not archive: %s", failure)
	}
	if got := stale.history(3); got != taken {
		t.Errorf("the archive's history was overwritten: got %q, want %q", got, taken)
	}
}

// TestNewTimelineFollowed: a standby whose data ends where the new timeline begins follows its primary.
// The WAL receiver asks the primary for the history of each timeline between the two, also of those
// that were taken by another server.
func TestNewTimelineFollowed(t *testing.T) {
	p := newPlace(t)
	old := p.primary("old")
	old.exec("CREATE TABLE t (who text)")
	stale, other, next := old.standby("stale"), old.standby("other"), old.standby("next")
	old.exec("INSERT INTO t VALUES ('all')")
	for _, s := range []*server{stale, other, next} {
		s.follow(old)
	}
	old.stop()
	stale.stop()
	other.stop()
	next.promote()
	next.write()
	next.archived()
	next.stop()

	p.must(stale.AskTimeline(0, false))
	p.must(Prepare(t.Context(), stale.Config, "127.0.0.1:0", control.TLS{}, testLog{t}))
	p.must(os.WriteFile(filepath.Join(stale.DataDir(), "standby.signal"), nil, 0o600))
	stale.start("primary_conninfo=")
	stale.promote()
	stale.exec("INSERT INTO t VALUES ('stale')")
	other.start()
	other.exec("ALTER SYSTEM SET primary_conninfo TO 'host=" + stale.Socket + " user=postgres'")
	other.ask("SELECT pg_reload_conf()::text", new(string))
	other.follow(stale)
	var who string
	if other.ask("SELECT string_agg(who, ' ') FROM t", &who); who != "all stale" {
		t.Errorf("the standby has %q, want what its primary has", who)
	}
	stale.write()
	stale.archived()
	other.stop()
}

// TestNewTimelineAlone: also without an archive, a new primary begins a timeline after the last one
// that the cluster is known to have had.
func TestNewTimelineAlone(t *testing.T) {
	p := newPlace(t)
	old := p.primary("old")
	old.exec("CREATE TABLE t (who text)")
	old.stop()
	p.away(true)
	for range 2 { // the second time there is nothing to do
		p.must(old.AskTimeline(3, true))
		p.must(Prepare(t.Context(), old.Config, "127.0.0.1:0", control.TLS{}, testLog{t}))
		if got := old.Begun(); got != 4 {
			t.Errorf("timeline %d was begun, and no server led on it yet: got %d", 4, got)
		}
	}
	p.must(os.WriteFile(filepath.Join(old.DataDir(), "standby.signal"), nil, 0o600))
	old.start("primary_conninfo=")
	old.promote()
	if at := old.current()[:8]; at != "00000005" {
		t.Errorf("it leads on timeline %s, want one after that it took", at)
	}
}

// TestSettle: the outcome of an attempt to begin a timeline counts only if the decision has not
// changed in the meantime.
func TestSettle(t *testing.T) {
	asked := instance.TimelineState{After: 3}
	failed := errors.New("the store does not answer")
	withdrawn := instance.TimelineState{Withdrawn: true, Message: "withdrawn"}
	cases := map[string]struct {
		reason string
		now    *instance.TimelineState
		err    error
		want   *instance.TimelineState
		done   bool
	}{
		"Done":           {reason: "The server may start.", now: &asked, done: true},
		"Failed":         {reason: "Why is noted, and what was asked for stays.", now: &asked, err: failed, want: &instance.TimelineState{After: 3, Message: failed.Error()}},
		"Withdrawn":      {reason: "A server that was withdrawn does not start.", now: &withdrawn, want: &withdrawn},
		"WithdrawnFails": {reason: "That an attempt failed does not hide that it was withdrawn.", now: &withdrawn, err: failed, want: &withdrawn},
		"Asked":          {reason: "Another timeline is to be begun.", now: &instance.TimelineState{After: 4}, want: &instance.TimelineState{After: 4}},
		"Forgotten":      {reason: "It starts as it is.", err: failed, done: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := Config{Volume: t.TempDir()}
			if tc.now != nil {
				if err := c.noteTimeline(*tc.now); err != nil {
					t.Fatal(err)
				}
			}
			done, err := c.settle(asked, tc.err)
			if err != nil || done != tc.done {
				t.Errorf("%s\nsettle(): want done %t, got %t, %v", tc.reason, tc.done, done, err)
			}
			if diff := cmp.Diff(tc.want, c.TimelineState()); diff != "" {
				t.Errorf("%s\nthe state afterwards: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNewTimelineAway: while the archive is unavailable, its timelines are unknown, and the server
// does not start.
func TestNewTimelineAway(t *testing.T) {
	p := newPlace(t)
	s := p.primary("one")
	s.stop()
	p.must(s.NewTimeline(t.Context(), testLog{t}))
	p.away(true)
	p.must(os.WriteFile(p.path("store"), nil, 0o600))
	if err := s.NewTimeline(t.Context(), testLog{t}); err == nil || !strings.Contains(err.Error(), "cannot ask the archive for its timelines") {
		t.Errorf("NewTimeline() without the store: got %v", err)
	}
	p.must(s.AskTimeline(0, false))
	ctx, cancel := context.WithCancel(t.Context())
	prepared := make(chan error, 1)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	p.must(err)
	address := listener.Addr().String()
	p.must(listener.Close())
	by := controltest.Write(t, t.TempDir(), controltest.Authority(t), "server")
	go func() { prepared <- Prepare(ctx, s.Config, address, by, testLog{t}) }()
	p.eventually("it says what it waits for", func() bool {
		state := s.TimelineState()
		return state != nil && strings.Contains(state.Message, "cannot ask the archive for its timelines")
	})
	kubelet := http.Client{Transport: by.Transport()}
	if res, err := kubelet.Get("https://" + address + "/liveness"); err != nil || res.StatusCode != http.StatusOK { //nolint:noctx,bodyclose // the test's own server
		t.Errorf("the kubelet would end the container: %v, %v", res, err)
	}
	cancel()
	if err := <-prepared; err == nil {
		t.Error("Prepare() that is stopped: got no error, and the server would start")
	}
	p.must(os.Remove(p.path("store")))
	p.away(false)
	if state := s.TimelineState(); state == nil || strings.Contains(state.Message, "canceled") {
		t.Errorf("what is said is %+v, want why the archive does not answer", state)
	}
	p.must(s.WithdrawTimeline())
	if err := s.NewTimeline(t.Context(), testLog{t}); err != nil {
		t.Errorf("NewTimeline() where there is nothing to do: %v", err)
	}
	p.must(s.AskTimeline(0, false))
	p.must(s.ForgetTimeline())
	p.must(s.AskTimeline(0, false))
	p.must(Prepare(t.Context(), s.Config, "127.0.0.1:0", control.TLS{}, testLog{t}))
	s.start()
	if at := s.current()[:8]; at != "00000001" {
		t.Errorf("it is on timeline %s, want the one that it had: the archive knows no other", at)
	}
}

// lineage returns the lineage of the timeline on which a server leads.
func lineage(t *testing.T, s *server) wal.Lineage {
	t.Helper()
	at, _ := wal.Parse(s.current())
	l, err := s.lineage(at.Timeline)
	s.must(err)
	return l
}

// history returns the history file of a timeline from the archive.
func (s *server) history(timeline int) string {
	s.t.Helper()
	name := fmt.Sprintf("%08X.history", timeline)
	tool, stanza := s.tool()
	archive, err := tool.Archive(s.t.Context(), stanza)
	s.must(err)
	out, err := tool.Run(s.t.Context(), "", "repo-get", path.Join(archive.Path(), name))
	s.must(err)
	return string(out)
}
