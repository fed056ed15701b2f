package supervisor

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/instance/mysql/group"
)

// TestCandidate: to which member a primary that stops hands over.
func TestCandidate(t *testing.T) {
	const online, recovering = group.Online, group.Recovering
	for name, c := range map[string]struct {
		reason  string
		size    int
		states  []group.State
		full    map[string]bool
		silent  map[string]bool
		leaving map[string]bool
		away    bool
		want    string
		waits   bool
	}{
		"First":      {reason: "The first that stays.", size: 3, states: []group.State{online, online, online}, want: pod(1)},
		"Leaving":    {reason: "Not to one that is deleted.", size: 3, states: []group.State{online, online, online}, leaving: map[string]bool{pod(1): true}, want: pod(2)},
		"Undesired":  {reason: "Not to one that is to be removed.", size: 1, states: []group.State{online, online, online}},
		"Recovering": {reason: "One on its way into the group is waited for.", size: 3, states: []group.State{online, recovering}, waits: true},
		"Full":       {reason: "One whose volume is full would take no writes.", size: 3, states: []group.State{online, online, online}, full: map[string]bool{pod(1): true}, want: pod(2)},
		"AllFull":    {reason: "If all are, one of them leads all the same.", size: 3, states: []group.State{online, online, online}, full: map[string]bool{pod(1): true, pod(2): true}, want: pod(1)},
		"Silent":     {reason: "One that answers is preferred.", size: 3, states: []group.State{online, online, online}, silent: map[string]bool{pod(1): true}, want: pod(2)},
		"AllSilent":  {reason: "None has to: MySQL knows its members by itself.", size: 3, states: []group.State{online, online, online}, silent: map[string]bool{pod(1): true, pod(2): true}, want: pod(1)},
		"SilentFull": {reason: "Nothing is known of one that does not answer.", size: 3, states: []group.State{online, online, online}, full: map[string]bool{pod(1): true}, silent: map[string]bool{pod(2): true}, want: pod(2)},
		"Away":       {reason: "Without the API server one of them leads.", size: 3, away: true, states: []group.State{online, online, online}, full: map[string]bool{pod(1): true}, want: pod(2)},
		"OnlyOne":    {reason: "The last one does, too.", size: 3, states: []group.State{online, online}, full: map[string]bool{pod(1): true}, want: pod(1)},
	} {
		t.Run(name, func(t *testing.T) {
			own := group.Report{}
			o := &heirs{size: c.size, away: c.away, leaving: c.leaving, reports: map[string]group.Report{}}
			for n, state := range c.states {
				own.Members = append(own.Members, group.Member{Address: pod(n), State: state})
				if !c.silent[pod(n)] {
					o.reports[pod(n)] = group.Report{Pod: pod(n), Running: true, Full: c.full[pod(n)]}
				}
			}
			s := &Supervisor{Config: Config{Pod: pod(0)}, outside: o}
			to, waits := s.candidate(t.Context(), &own)
			got := ""
			if to != nil {
				got = to.Address
			}
			if got != c.want || waits != c.waits {
				t.Errorf("%s\ncandidate(): got %q, %t, want %q, %t", c.reason, got, waits, c.want, c.waits)
			}
		})
	}
}

// TestSettle: before a hand-over, clients that read are led away from the next primary, if they can be, and proxies get
// time.
func TestSettle(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		others []group.State
		away   bool
		want   []string
	}{
		"Others": {reason: "Another replica serves clients that read.", others: []group.State{group.Online}, want: []string{pod(1)}},
		"Away":   {reason: "Without the API server nothing can be done about it.", others: []group.State{group.Online}, away: true, want: []string{pod(1)}},
		"None":   {reason: "No other one does yet.", others: []group.State{group.Recovering}},
		"Only":   {reason: "Clients that read would have no server."},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				own := &group.Report{}
				for n, state := range append([]group.State{group.Online, group.Online}, c.others...) {
					own.Members = append(own.Members, group.Member{Address: pod(n), State: state})
				}
				o, began := &heirs{away: c.away}, time.Now()
				s := &Supervisor{Config: Config{Pod: pod(0)}, outside: o, log: slog.New(slog.DiscardHandler)}
				s.settle(t.Context(), own, pod(1))
				if took := time.Since(began); took != settleFor {
					t.Errorf("%s\nsettle(): got %s, want %s", c.reason, took, settleFor)
				}
				if diff := cmp.Diff(c.want, o.unmarked); diff != "" {
					t.Errorf("%s\nsettle(): pods without a mark: -want, +got:\n%s", c.reason, diff)
				}
			})
		})
	}
}

// TestUnhurried: a primary hands over at once if it is killed in a moment, or its pod stays.
func TestUnhurried(t *testing.T) {
	for grace, want := range map[time.Duration]bool{0: false, unhurriedIn - time.Second: false, unhurriedIn: true, 2 * time.Minute: true} {
		if got := (&Supervisor{outside: &heirs{grace: grace}}).unhurried(t.Context()); got != want {
			t.Errorf("unhurried() with %s: got %t, want %t", grace, got, want)
		}
	}
}

// heirs is a cluster whose primary stops.
type heirs struct {
	Outside

	size    int
	away    bool
	leaving map[string]bool
	reports map[string]group.Report
	grace   time.Duration

	unmarked []string
}

func (o *heirs) Unmark(_ context.Context, pod string) error {
	o.unmarked = append(o.unmarked, pod)
	if o.away {
		return errors.New("the API server does not answer")
	}
	return nil
}

func (o *heirs) Grace(context.Context) time.Duration { return o.grace }

func (o *heirs) Cluster(context.Context) (group.Cluster, error) {
	if o.away {
		return group.Cluster{}, errors.New("the API server does not answer")
	}
	return group.Cluster{Size: o.size, Ordinal: ordinal}, nil
}

func (o *heirs) Leaving(_ context.Context, pod string) bool { return o.leaving[pod] }

func (o *heirs) PodOf(address string) string { return address }

func (o *heirs) Peers(_ context.Context, pods ...string) map[string]group.Report {
	out := map[string]group.Report{}
	for _, pod := range pods {
		if r, answers := o.reports[pod]; answers {
			out[pod] = r
		}
	}
	return out
}
