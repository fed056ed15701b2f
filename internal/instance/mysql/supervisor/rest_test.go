package supervisor

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/storeplane/storeplane/internal/instance/mysql/group"
)

// TestRest: a server that can do nothing asks the API server rarely, and one that can at once.
func TestRest(t *testing.T) {
	waits := &group.Action{Verb: group.Stay, Message: "Waiting"}
	for name, c := range map[string]struct {
		reason string
		action *group.Action
		err    error
		after  time.Duration
		want   time.Duration
	}{
		"Begins":  {reason: "Others answer within seconds after an outage.", action: waits, want: period},
		"Outage":  {reason: "The pause is a small part of the time that has passed.", action: waits, after: 2 * time.Minute, want: 2 * time.Second},
		"Weekend": {reason: "However long it waits, it notices what changes within seconds.", action: waits, after: 48 * time.Hour, want: longestRest},
		"Fails":   {reason: "A step that fails changes nothing either.", action: &group.Action{Verb: group.Join}, err: errors.New("refused"), after: 2 * time.Minute, want: 2 * time.Second},
		"Acts":    {reason: "After a step the next one may be due.", action: &group.Action{Verb: group.Join}, after: time.Hour, want: period},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &Supervisor{log: slog.New(slog.DiscardHandler)}
				s.acted(waits, nil)
				time.Sleep(c.after)
				s.acted(c.action, c.err)
				if got := s.rest(); got != c.want {
					t.Errorf("%s\nrest(): got %s, want %s", c.reason, got, c.want)
				}
			})
		})
	}
}

// TestStepFails: why a step fails is what the server waits for, until it succeeds.
func TestStepFails(t *testing.T) {
	s := &Supervisor{log: slog.New(slog.DiscardHandler)}
	const want = "Cannot join, retrying: cannot execute START GROUP_REPLICATION: refused; cannot execute STOP GROUP_REPLICATION: gone"
	held := func() string {
		h, _ := s.Held()
		return h.Message
	}
	join := &group.Action{Verb: group.Join}
	for _, c := range []struct {
		reason string
		action *group.Action
		err    error
		want   string
	}{
		{reason: "The first attempt.", action: join, err: errors.Join(errors.New("cannot execute START GROUP_REPLICATION: refused"), errors.New("cannot execute STOP GROUP_REPLICATION: gone")), want: want},
		{reason: "Another server was faster.", action: join, err: errChanged, want: want},
		{reason: "It is decided again.", action: &group.Action{Verb: group.Stay}, want: want},
		{reason: "It succeeds.", action: join},
	} {
		s.acted(c.action, c.err)
		if got := held(); got != c.want {
			t.Errorf("%s\nHeld(): got %q, want %q", c.reason, got, c.want)
		}
	}
}
