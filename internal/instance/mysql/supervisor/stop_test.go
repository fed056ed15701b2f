package supervisor

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

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

// TestSettle: a primary takes writes a little longer if its pod is deleted, which proxies have just written.
func TestSettle(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		grace  time.Duration
		want   time.Duration
	}{
		"Evicted": {reason: "There is time.", grace: 120 * time.Second, want: settleFor},
		"Enough":  {reason: "There is just enough time.", grace: settleIn, want: settleFor},
		"Hurried": {reason: "A server that is killed in a moment hands over at once.", grace: 9 * time.Second},
		"Stays":   {reason: "Proxies have written nothing of a pod that stays, and one that is gone is out of time.", grace: 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				s := &Supervisor{outside: &heirs{grace: c.grace}}
				waited := s.settle(t.Context())
				if took := time.Since(began); took != c.want || waited != (c.want > 0) {
					t.Errorf("%s\nsettle(): got %t after %s, want %s", c.reason, waited, took, c.want)
				}
			})
		})
	}
}

// TestSettleEnds: a supervisor that ends does not wait.
func TestSettleEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), settleFor/2)
		defer cancel()
		(&Supervisor{outside: &heirs{grace: time.Minute}}).settle(ctx)
		if took := time.Since(began); took != settleFor/2 {
			t.Errorf("settle(): got an end after %s, want %s", took, settleFor/2)
		}
	})
}

// heirs is a cluster whose primary stops.
type heirs struct {
	Outside

	size    int
	away    bool
	leaving map[string]bool
	reports map[string]group.Report
	grace   time.Duration
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
