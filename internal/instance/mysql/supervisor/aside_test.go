package supervisor

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/gtid"
	"github.com/storeplane/storeplane/internal/instance/mysql/group"
	"github.com/storeplane/storeplane/internal/instance/mysql/mysqld"
)

// parted is a cluster of a primary and of a server that has a transaction of its own.
type parted struct {
	Outside

	record group.Record

	// copying is true if a third server copies the primary.
	copying bool
}

func (o *parted) Known(context.Context) bool { return true }

const partedGroup = "3e11fa47-71ca-11e1-9e33-c80aa9429562"

func transactions(t *testing.T, intervals string) gtid.Set {
	t.Helper()
	set, err := gtid.Parse(partedGroup + ":" + intervals)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func (o *parted) Cluster(context.Context) (group.Cluster, error) {
	return group.Cluster{Size: 3, Ordinal: ordinal, Record: o.record}, nil
}

func (o *parted) Change(_ context.Context, _, to group.Record) error {
	o.record = to
	return nil
}

func (o *parted) Address(pod string) string { return pod }

func (o *parted) Peers(context.Context, ...string) map[string]group.Report {
	set, err := gtid.Parse(partedGroup + ":1-9")
	if err != nil {
		return nil
	}
	member := group.Member{Server: "primary", Address: pod(1), State: group.Online, Primary: true}
	out := map[string]group.Report{pod(1): {
		Pod: pod(1), Data: group.Whole, Running: true, Answers: true, Server: "primary", Group: partedGroup, State: group.Online, Primary: true, View: "1", Members: []group.Member{member}, Transactions: set,
	}}
	if o.copying {
		out[pod(2)] = group.Report{Pod: pod(2), Data: group.Copy, Running: true, Answers: true, Server: "third", Group: partedGroup, State: group.Recovering, View: "1"}
	}
	return out
}

// TestSetAside: data that may have been acknowledged is set aside, or stays where it is until a user decides. What the
// server waits for does not change meanwhile, so that it is reported.
func TestSetAside(t *testing.T) {
	const errant = "volume claim data-orders-mysql-0 has transactions that the group does not have, 1 in all: " + partedGroup + ":10"
	for name, c := range map[string]struct {
		reason   string
		room     bool
		failures int
		has      string
		members  []int
		held     string
		copying  bool
		copies   bool
		warning  string
	}{
		"Room": {
			reason: "An event names where the data is.", room: true, has: "1-10", members: []int{1},
			warning: "DataSetAside: orders-mysql-0 copies a member: " + errant + ". That data is set aside in folder data-aside-",
		},
		"NoRoom": {
			reason: "It is not overwritten.", has: "1-10", members: []int{0, 1},
			held: errant + ", and has no room to set that data aside for a copy of a member: enlarge the volume claim, or delete it and pod orders-mysql-0 if those transactions are not needed",
		},
		"NoRoomFailed": {
			reason: "What the members have is not needed, and stays until one of them is copied.", failures: 5, has: "1-8", members: []int{1}, copies: true,
			warning: "DataSetAside: orders-mysql-0 copies a member: volume claim data-orders-mysql-0 could not be brought up to date in 5 attempts. The members have all of that data, which the copy replaces, since there is no room for both",
		},
		"NoRoomQueued": {
			reason: "A member serves one copy at a time.", failures: 5, has: "1-8", members: []int{0, 1}, copying: true,
			held:    "Waiting for orders-mysql-2, which copies a member: one server does at a time",
			warning: "DataSetAside: orders-mysql-0 copies a member: volume claim data-orders-mysql-0 could not be brought up to date in 5 attempts. The members have all of that data, which the copy replaces, since there is no room for both",
		},
	} {
		t.Run(name, func(t *testing.T) {
			recorded := map[string]string{pod(0): "uid-" + pod(0), pod(1): "uid-" + pod(1)}
			o := &parted{record: group.Record{Name: partedGroup, Epoch: 1, Confirmed: true, Members: recorded}, copying: c.copying}
			var warnings []string
			s := New(Config{
				Pod: pod(0), Claim: "uid-" + pod(0),
				Files: mysqld.Files{Volume: t.TempDir(), Room: func(string) (bool, error) { return c.room, nil }},
				Warn:  func(_ context.Context, reason, message string) { warnings = append(warnings, reason+": "+message) },
			}, o, slog.New(slog.DiscardHandler), io.Discard)
			s.failures = c.failures
			if err := os.Mkdir(s.Files.DataDir(), 0o700); err != nil {
				t.Fatal(err)
			}
			var helds []string
			for range 8 {
				own := group.Report{Pod: pod(0), Claim: "uid-" + pod(0), Data: group.Whole, Running: true, Server: "own", State: group.Offline, Transactions: transactions(t, c.has)}
				if data, err := s.Files.Data(); err != nil || data != group.Whole {
					break
				}
				// There is no server that could join by a copy.
				if err := s.decide(t.Context(), &own); err != nil && !c.copies {
					t.Fatal(err)
				}
				held, _ := s.Held()
				helds = append(helds, held.Message)
			}
			for i, held := range helds {
				if i >= 2 && held != c.held {
					t.Errorf("%s\npass %d: waits for %q, want %q", c.reason, i, held, c.held)
				}
			}
			if got := strings.Join(warnings, "\n"); !strings.HasPrefix(got, c.warning) || (got == "") != (c.warning == "") || len(warnings) > 1 {
				t.Errorf("%s\nevents: %q", c.reason, got)
			}
			members := map[string]string{}
			for _, n := range c.members {
				members[pod(n)] = "uid-" + pod(n)
			}
			if diff := cmp.Diff(members, o.record.Members); diff != "" {
				t.Errorf("%s members: -want, +got:\n%s", c.reason, diff)
			}
			want := group.Empty
			switch {
			case c.copies:
				want = group.Copy
			case c.held != "":
				want = group.Whole
			}
			if data, err := s.Files.Data(); err != nil || data != want {
				t.Errorf("%s\nits data: got %s, %v, want %s", c.reason, data, err, want)
			}
			if _, err := os.Stat(s.Files.DataDir()); (err == nil) != (want != group.Empty) {
				t.Errorf("%s\nits folder: %v", c.reason, err)
			}
		})
	}
}

// TestSetAsideFails: what keeps data from being set aside is reported.
func TestSetAsideFails(t *testing.T) {
	o := &parted{record: group.Record{Name: partedGroup, Epoch: 1, Confirmed: true, Members: map[string]string{pod(0): "uid", pod(1): "uid"}}}
	s := New(Config{
		Pod: pod(0), Claim: "uid", Files: mysqld.Files{Volume: t.TempDir(), Room: func(string) (bool, error) { return false, errors.New("input/output error") }},
	}, o, slog.New(slog.DiscardHandler), io.Discard)
	s.failures = 5
	own := group.Report{Pod: pod(0), Claim: "uid", Data: group.Whole, Running: true, Server: "own", State: group.Offline, Transactions: transactions(t, "1-8")}
	if err := s.decide(t.Context(), &own); err == nil {
		t.Error("decide(): no error")
	}
	if held, _ := s.Held(); held.Message != "Cannot set the data aside, retrying: input/output error" {
		t.Errorf("the server waits for %q", held.Message)
	}
}
