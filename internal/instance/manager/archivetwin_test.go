package manager

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/exchange"
	"github.com/storeplane/storeplane/internal/instance/manager/postgres"
)

// TestTwin: a timeline in the archive beyond the primary's is another cluster's, once it is there for
// longer than a failover takes.
func TestTwin(t *testing.T) {
	var last uint32
	var fault error
	asked := 0
	a := &archiving{
		Manager:  &Manager{Exchange: &exchange.Exchange{Notes: exchange.NewNotes(slog.New(slog.DiscardHandler))}, server: &servers{}},
		timeline: func(context.Context) (uint32, error) { asked++; return last, fault },
		failure:  func() string { return "" },
		whole:    whole{known: true, backedUp: true, compared: true},
	}
	now := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	stats := postgres.Archiver{Now: now, LastAt: now, Last: "000000020000000000000008", Current: "000000020000000000000009"}
	step := func(what string, wait time.Duration, wantAsked int, want string) *instance.Archive {
		t.Helper()
		now = now.Add(wait)
		a.lookForTwin(t.Context(), now, stats)
		a.beats = []beat{{segment: "000000020000000000000007", at: now}}
		state := a.judge(stats)
		if state.Failing != want || asked != wantAsked {
			t.Errorf("%s: want %q, asked %d times, got %q, %d", what, want, wantAsked, state.Failing, asked)
		}
		return state
	}
	step("while the repository is not set up", twinPeriod, 0, "")
	a.created, last = true, 2
	step("its own timeline", 0, 1, "")
	last = 3
	step("not asked again yet", twinAgain, 1, "")
	step("perhaps a failover", twinPeriod, 2, "")
	step("not asked again at once", time.Second, 2, "")
	says := "another cluster with this one's system identifier archives to the same place: timeline 3 is in the archive, and this cluster is on 2, so a restore would follow the other one: give the other one another prefix in backup.destination, and this one, too, since that timeline stays here"
	if state := step("still there", twinAgain, 3, says); state.Recoverable != nil {
		t.Errorf("a restore follows the twin, and %v is said to be recoverable", state.Recoverable)
	}
	fault = errors.New("the store does not answer")
	step("an error changes nothing", twinAgain, 4, says)
	fault, last = nil, 2
	if state := step("gone", twinAgain, 5, ""); state.Recoverable == nil {
		t.Error("nothing is recoverable after the twin has gone")
	}
	last = 3
	step("perhaps another failover", twinPeriod, 6, "")
	last = 2
	step("which it was", twinAgain, 7, "")
}
