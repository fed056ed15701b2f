package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/instance"
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
		record  map[string]string
		want    string
		spare   bool
		waits   bool
	}{
		"First":      {reason: "The first that stays.", size: 3, states: []group.State{online, online, online}, want: pod(1), spare: true},
		"Leaving":    {reason: "Not to one that is deleted.", size: 3, states: []group.State{online, online, online}, leaving: map[string]bool{pod(1): true}, want: pod(2)},
		"Undesired":  {reason: "Not to one that is to be removed.", size: 1, states: []group.State{online, online, online}},
		"Recovering": {reason: "One on its way into the group is waited for.", size: 3, states: []group.State{online, recovering}, waits: true},
		"Full":       {reason: "One whose volume is full would take no writes.", size: 3, states: []group.State{online, online, online}, full: map[string]bool{pod(1): true}, want: pod(2), spare: true},
		"AllFull":    {reason: "If all are, one of them leads all the same.", size: 3, states: []group.State{online, online, online}, full: map[string]bool{pod(1): true, pod(2): true}, want: pod(1), spare: true},
		"Silent":     {reason: "One that answers is preferred.", size: 3, states: []group.State{online, online, online}, silent: map[string]bool{pod(1): true}, want: pod(2), spare: true},
		"AllSilent":  {reason: "None has to: MySQL knows its members by itself.", size: 3, states: []group.State{online, online, online}, silent: map[string]bool{pod(1): true, pod(2): true}, want: pod(1), spare: true},
		"SilentFull": {reason: "Nothing is known of one that does not answer.", size: 3, states: []group.State{online, online, online}, full: map[string]bool{pod(1): true}, silent: map[string]bool{pod(2): true}, want: pod(2), spare: true},
		"Away":       {reason: "Without the API server one of them leads.", size: 3, away: true, states: []group.State{online, online, online}, full: map[string]bool{pod(1): true}, want: pod(2), spare: true},
		"Recorded":   {reason: "One that is recorded.", size: 3, states: []group.State{online, online, online}, record: map[string]string{pod(0): "0", pod(2): "2"}, want: pod(2), waits: true},
		"Unrecorded": {reason: "If one that is not led and was lost, what it acknowledges would be lost too: it records itself first.", size: 3, states: []group.State{online, online}, record: map[string]string{pod(0): "0"}, waits: true},
		"OnlyOne":    {reason: "The last one does, too.", size: 3, states: []group.State{online, online}, full: map[string]bool{pod(1): true}, want: pod(1)},
	} {
		t.Run(name, func(t *testing.T) {
			own := group.Report{}
			o := &heirs{size: c.size, record: c.record, away: c.away, leaving: c.leaving, reports: map[string]group.Report{}}
			for n, state := range c.states {
				own.Members = append(own.Members, group.Member{Address: pod(n), State: state})
				if !c.silent[pod(n)] {
					o.reports[pod(n)] = group.Report{Pod: pod(n), Running: true, Full: c.full[pod(n)]}
				}
			}
			s := &Supervisor{Config: Config{Pod: pod(0)}, outside: o}
			to, spare, waits := s.candidate(t.Context(), &own)
			got := ""
			if to != nil {
				got = to.Address
			}
			if got != c.want || spare != c.spare || waits != c.waits {
				t.Errorf("%s\ncandidate(): got %q, %t, %t, want %q, %t, %t", c.reason, got, spare, waits, c.want, c.spare, c.waits)
			}
		})
	}
}

// TestSettle: before a hand-over, clients that read are led away from the next primary, if another server can serve them,
// and proxies get time.
func TestSettle(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		next   string
		away   bool
		want   []string
	}{
		"Spare": {reason: "Another replica serves clients that read.", next: pod(1), want: []string{`orders-mysql-1: "replica" to ""`}},
		"Away":  {reason: "Without the API server nothing can be done about it.", next: pod(1), away: true, want: []string{`orders-mysql-1: "replica" to ""`}},
		"Only":  {reason: "Clients that read would have no server."},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, began := &heirs{away: c.away}, time.Now()
				s := &Supervisor{Config: Config{Pod: pod(0)}, outside: o, log: slog.New(slog.DiscardHandler)}
				s.settle(t.Context(), c.next)
				if took := time.Since(began); took != instance.SettleFor {
					t.Errorf("%s\nsettle(): got %s, want %s", c.reason, took, instance.SettleFor)
				}
				if diff := cmp.Diff(c.want, o.remarked); diff != "" {
					t.Errorf("%s\nsettle(): changed marks: -want, +got:\n%s", c.reason, diff)
				}
			})
		})
	}
}

// TestLeft: how much time a server that stops has left.
func TestLeft(t *testing.T) {
	for name, c := range map[string]struct {
		reason       string
		grace, since time.Duration
		want         time.Duration
	}{
		"Began": {reason: "All of the grace period.", grace: 2 * time.Minute, want: 2 * time.Minute},
		"Later": {reason: "What is left of it.", grace: 2 * time.Minute, since: 90 * time.Second, want: 30 * time.Second},
		"Stays": {reason: "A pod that is not deleted has none.", since: time.Second, want: -time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &Supervisor{outside: &heirs{grace: c.grace}, stopping: time.Now().Add(-c.since)}
				if got := s.left(t.Context()); got != c.want {
					t.Errorf("%s\nleft(): got %s, want %s", c.reason, got, c.want)
				}
			})
		})
	}
}

// heirs is a cluster whose primary stops.
type heirs struct {
	Outside

	size    int
	record  map[string]string
	away    bool
	leaving map[string]bool
	reports map[string]group.Report
	grace   time.Duration

	// remarked are the changes of marks.
	remarked []string
}

func (o *heirs) Remark(_ context.Context, pod, from, to string) error {
	o.remarked = append(o.remarked, fmt.Sprintf("%s: %q to %q", pod, from, to))
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
	return group.Cluster{Size: o.size, Ordinal: ordinal, Record: group.Record{Members: o.record}}, nil
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
