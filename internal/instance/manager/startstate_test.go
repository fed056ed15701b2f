package manager

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/pgdata/pgdatatest"
)

// TestUnreadable: data that cannot be read is read again at each pass, and a decision follows only
// if that lasts.
func TestUnreadable(t *testing.T) {
	const began = "20260102T030405Z"
	type outcome struct {
		State                    instance.DataState
		Held                     string
		Starts, Undecided, Aside bool
	}
	leads := func(r *reclaimed) { r.leads(1) }
	kept := func(*reclaimed) {}
	own := "volume claim data-" + setName + "-0"
	waits := outcome{Held: "Waiting for the contents of " + own + ", to compare them with the other volumes of this name"}
	starts := outcome{State: instance.DataWhole, Starts: true}
	cases := map[string]struct {
		reason  string
		cluster func(*reclaimed)
		passes  []bool // whether the data can be read at each pass
		lasts   bool   // for unreadableAfter, between the first pass and the second
		want    []outcome
	}{
		"Kept":      {reason: "A kept volume leads once it can be read.", cluster: kept, passes: []bool{false, true}, want: []outcome{waits, starts}},
		"KeptShort": {reason: "The failure has not lasted.", cluster: kept, passes: []bool{false, false}, want: []outcome{waits, waits}},
		"KeptLong": {reason: "A user has to decide, until it can be read.", cluster: kept, passes: []bool{false, false, true}, lasts: true, want: []outcome{
			waits, {State: instance.DataUnreadable, Undecided: true, Held: "The leading volume is undecided: " + own + " cannot be read: cannot find the control file: stat PGDATA/global/pg_control: no such file or directory"}, starts,
		}},
		"Primary":      {reason: "Good data is not set aside for a copy of the primary.", cluster: leads, passes: []bool{false, true}, want: []outcome{{}, starts}},
		"PrimaryShort": {reason: "It is not yet known to be bad.", cluster: leads, passes: []bool{false, false}, want: []outcome{{}, {}}},
		"PrimaryLong":  {reason: "What is damaged is set aside.", cluster: leads, passes: []bool{false, false}, lasts: true, want: []outcome{{}, {State: instance.DataUnreadable, Starts: true, Aside: true}}},
		"Named": {reason: "The volume that the annotation names leads once it can be read.", cluster: func(r *reclaimed) {
			r.api.put("configmaps", &corev1.ConfigMap{ObjectMeta: named(setName + "-status"), Data: map[string]string{instance.ClusterKey: text(r.t, instance.Cluster{Primary: setName + "-1", Began: began, Timeline: 1})}})
			r.desire(func(d *instance.Desired) { d.Size, d.LeadWith = 1, "data-"+setName+"-0@dbc-"+began })
		}, passes: []bool{false, true}, want: []outcome{{}, starts}},
		"Readable": {reason: "What could be read is not read again.", cluster: leads, passes: []bool{true, false}, want: []outcome{starts, starts}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v := pgdatatest.New(t).Begin().Start().Stop("fast")
			r := reclaim(t, 1, 0)
			r.api.put("pods", pod(setName+"-1", "a"))
			tc.cluster(r)
			b := &member{Manager: r.manager(0, v)}
			global, away := filepath.Join(v.Data, "global"), filepath.Join(v.Dir, "away")
			var got []outcome
			for i, readable := range tc.passes {
				if i == 1 && tc.lasts {
					b.unreadable = b.unreadable.Add(-unreadableAfter)
				}
				if !readable {
					if err := os.Rename(global, away); err != nil {
						t.Fatal(err)
					}
				}
				next := instance.Member{}
				b.owned.Store(false)
				b.takeOwnership(t.Context(), &next)
				if !readable {
					// If the data was set aside, its folder is gone.
					_ = os.Rename(away, global)
				}
				o := outcome{Starts: b.owned.Load()}
				if b.data != nil {
					o.State = b.data.State
				}
				if next.Held != nil {
					o.Held, o.Undecided = strings.ReplaceAll(next.Held.Message, v.Data, "PGDATA"), next.Held.Undecided
				}
				if aside, _ := filepath.Glob(filepath.Join(v.Dir, "pgdata-unreadable-*", "PG_VERSION")); len(aside) > 0 {
					o.Aside = true
				}
				got = append(got, o)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\ntakeOwnership(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
