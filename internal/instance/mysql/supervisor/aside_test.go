package supervisor

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/instance/mysql/group"
	"github.com/storeplane/storeplane/internal/instance/mysql/mysqld"
)

// TestSetAside: data that may have been acknowledged is set aside, or stays where it is until a user decides.
func TestSetAside(t *testing.T) {
	for name, c := range map[string]struct {
		reason  string
		room    bool
		members []int
		held    string
		warning string
	}{
		"Room": {
			reason: "An event names where the data is.", room: true, members: []int{1},
			warning: "DataSetAside: orders-mysql-0 copies a member: volume claim data-orders-mysql-0 has transactions that the group does not have, 1 in all: x:10. That data is set aside in folder data-aside-",
		},
		"NoRoom": {
			reason: "It is not overwritten.", members: []int{0, 1},
			held: "volume claim data-orders-mysql-0 has transactions that the group does not have, 1 in all: x:10, and has no room to set that data aside for a copy of a member: enlarge the volume claim, or delete it and pod orders-mysql-0 if those transactions are not needed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			recorded := map[string]string{pod(0): "uid-" + pod(0), pod(1): "uid-" + pod(1)}
			o := &shrinking{record: group.Record{Members: recorded}}
			var warning string
			s := New(Config{
				Pod: pod(0), Claim: "uid-" + pod(0),
				Files: mysqld.Files{Volume: t.TempDir(), Room: func(string) (bool, error) { return c.room, nil }},
				Warn:  func(_ context.Context, reason, message string) { warning = reason + ": " + message },
			}, o, slog.New(slog.DiscardHandler), io.Discard)
			if err := os.Mkdir(s.Files.DataDir(), 0o700); err != nil {
				t.Fatal(err)
			}
			action := group.Action{Verb: group.SetAside, Message: "has transactions that the group does not have, 1 in all: x:10"}
			if err := s.act(t.Context(), action, &group.Cluster{Record: o.record}); err != nil {
				t.Fatal(err)
			}
			held, _ := s.Held()
			if held.Message != c.held || !strings.HasPrefix(warning, c.warning) || (warning == "") != (c.warning == "") {
				t.Errorf("%s\nheld: %q\nevent: %q", c.reason, held.Message, warning)
			}
			want := map[string]string{}
			for _, n := range c.members {
				want[pod(n)] = "uid-" + pod(n)
			}
			if diff := cmp.Diff(want, o.record.Members); diff != "" {
				t.Errorf("%s members: -want, +got:\n%s", c.reason, diff)
			}
			if _, err := os.Stat(filepath.Join(s.Files.Volume, "data")); (err == nil) == c.room {
				t.Errorf("%s its data: %v", c.reason, err)
			}
		})
	}
}
