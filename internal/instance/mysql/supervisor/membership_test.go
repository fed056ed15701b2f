package supervisor

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/instance/mysql/group"
)

// TestMembers: which members the record has, given those in the primary's view.
func TestMembers(t *testing.T) {
	uid := func(pods ...string) map[string]string {
		out := map[string]string{}
		for _, pod := range pods {
			out[pod] = "uid-" + pod
		}
		return out
	}
	for name, c := range map[string]struct {
		reason   string
		recorded map[string]string
		in       []string
		recovers []string
		away     map[string]time.Time
		want     map[string]string
	}{
		"All":      {reason: "Members stay.", recorded: uid(pod(0), pod(1), pod(2)), in: []string{pod(0), pod(1), pod(2)}, want: uid(pod(0), pod(1), pod(2))},
		"Joined":   {reason: "A new one is added.", recorded: uid(pod(0), pod(1)), in: []string{pod(0), pod(1), pod(2)}, want: uid(pod(0), pod(1), pod(2))},
		"Copies":   {reason: "One that copies a member has nothing that the primary lacks, and is not waited for if it is lost.", recovers: []string{pod(1)}, recorded: uid(pod(0)), in: []string{pod(0)}, want: uid(pod(0))},
		"Recovers": {reason: "One that recovers with data of its own has recorded itself, and stays.", recovers: []string{pod(1)}, recorded: uid(pod(0), pod(1)), in: []string{pod(0)}, want: uid(pod(0), pod(1)), away: map[string]time.Time{pod(1): time.Now().Add(-awayFor)}},
		"Away":     {reason: "One that is away for a moment is not removed and added again.", recorded: uid(pod(0), pod(1), pod(2)), in: []string{pod(0), pod(1)}, want: uid(pod(0), pod(1), pod(2))},
		"AwayLong": {reason: "After a while it is removed.", recorded: uid(pod(0), pod(1), pod(2)), in: []string{pod(0), pod(1)}, away: map[string]time.Time{pod(2): time.Now().Add(-awayFor)}, want: uid(pod(0), pod(1))},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Supervisor{Config: Config{Pod: pod(0), Claim: "uid-" + pod(0)}, away: c.away}
			cluster := group.Cluster{Record: group.Record{Members: maps.Clone(c.recorded)}}
			for n := range 3 {
				cluster.Volumes = append(cluster.Volumes, group.Volume{Pod: pod(n), UID: "uid-" + pod(n)})
			}
			in := map[string]group.State{}
			for _, pod := range c.in {
				in[pod] = group.Online
			}
			for _, pod := range c.recovers {
				in[pod] = group.Recovering
			}
			if diff := cmp.Diff(c.want, s.members(in, &cluster)); diff != "" {
				t.Errorf("%s -want, +got:\n%s", c.reason, diff)
			}
			for pod := range s.away {
				if c.want[pod] == "" {
					t.Errorf("%s\n%s counts as away after it was removed: it would be removed again as soon as it records itself", c.reason, pod)
				}
			}
		})
	}
}

// TestEnrollSelf: which member records itself.
func TestEnrollSelf(t *testing.T) {
	member := group.Report{Data: group.Whole, Running: true, Group: partedGroup, State: group.Recovering}
	for name, c := range map[string]struct {
		reason string
		own    func(*group.Report)
		record func(*group.Record)
		want   bool
	}{
		"Removed":    {reason: "It was away for so long that the primary has removed it, as it joined.", want: true},
		"Copies":     {reason: "What it has is not complete.", own: func(r *group.Report) { r.Data = group.Copy }},
		"Founding":   {reason: "The group is not confirmed.", record: func(r *group.Record) { r.Confirmed = false }},
		"Another":    {reason: "It is in another group, which it leaves.", own: func(r *group.Report) { r.Group = "another" }},
		"Standalone": {reason: "It is recorded before it takes writes.", own: func(r *group.Report) { r.Standalone = true }},
	} {
		t.Run(name, func(t *testing.T) {
			own, o := member, &parted{record: group.Record{Name: partedGroup, Epoch: 1, Confirmed: true, Members: map[string]string{pod(1): "uid-1"}}}
			if c.own != nil {
				c.own(&own)
			}
			if c.record != nil {
				c.record(&o.record)
			}
			s, record := &Supervisor{Config: Config{Pod: pod(0), Claim: "uid-0"}, outside: o}, o.record
			if err := s.enrollSelf(t.Context(), &own, &record); err != nil {
				t.Fatal(err)
			}
			if _, got := o.record.Members[pod(0)]; got != c.want || (record.Members[pod(0)] != "") != c.want {
				t.Errorf("%s\nenrollSelf(): recorded %t, want %t", c.reason, got, c.want)
			}
		})
	}
}

// TestDismiss: which members the primary removes from the record at once.
func TestDismiss(t *testing.T) {
	for name, c := range map[string]struct {
		reason  string
		size    int
		in      []int
		leaving bool
		fails   bool
		want    []int
	}{
		"Removed": {reason: "Those that are not desired any more are not waited for.", size: 1, in: []int{0}, leaving: true, want: []int{0}},
		"In":      {reason: "Until it has left one is a member.", size: 1, in: []int{0, 2}, leaving: true, want: []int{0, 2}},
		"Desired": {reason: "One that is desired comes back.", size: 3, in: []int{0}, leaving: true, want: []int{0, 1, 2}},
		"Stays":   {reason: "One whose pod stays may be a primary that was lost.", size: 1, in: []int{0}, want: []int{0, 1, 2}},
		"Fails":   {reason: "Nothing is removed while it is not known what is desired.", size: 1, in: []int{0}, leaving: true, fails: true, want: []int{0, 1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			of := func(pods []int) map[string]string {
				out := map[string]string{}
				for _, n := range pods {
					out[pod(n)] = "uid-" + pod(n)
				}
				return out
			}
			o := &shrinking{size: c.size, leaving: c.leaving, fails: c.fails, record: group.Record{Name: "g", Members: of([]int{0, 1, 2})}}
			s := &Supervisor{Config: Config{Pod: pod(0)}, outside: o, away: map[string]time.Time{pod(1): time.Now()}}
			own := group.Report{Group: "g"}
			for _, n := range c.in {
				own.Members = append(own.Members, group.Member{Address: pod(n)})
			}
			s.dismiss(t.Context(), &own)
			if diff := cmp.Diff(of(c.want), o.record.Members); diff != "" {
				t.Errorf("%s -want, +got:\n%s", c.reason, diff)
			}
		})
	}
}

// shrinking is a cluster from which servers are removed.
type shrinking struct {
	Outside

	size           int
	leaving, fails bool
	record         group.Record
}

func (o *shrinking) Cluster(context.Context) (group.Cluster, error) {
	if o.fails {
		return group.Cluster{}, errors.New("the API server does not answer")
	}
	return group.Cluster{Size: o.size, Ordinal: ordinal, Record: o.record}, nil
}

func (o *shrinking) Change(_ context.Context, _, to group.Record) error {
	o.record = to
	return nil
}

func (o *shrinking) Leaving(context.Context, string) bool { return o.leaving }

func (o *shrinking) PodOf(address string) string { return address }
