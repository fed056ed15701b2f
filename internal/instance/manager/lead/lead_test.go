package lead

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/instance"
)

// whole returns a complete database at a position on a timeline.
func whole(timeline int64, position instance.LSN, history ...instance.Ancestor) *instance.Data {
	return &instance.Data{State: instance.DataWhole, System: "1", Timeline: timeline, Position: position, History: history}
}

func of1(system string) *instance.Data {
	d := whole(1, 100)
	d.System = system
	return d
}

func only(state instance.DataState) *instance.Data {
	return &instance.Data{State: state, Problem: "why"}
}

func volumes(data ...*instance.Data) []Volume {
	var out []Volume
	for i, d := range data {
		pod := instance.Pod("db", int32(i))
		out = append(out, Volume{Claim: "data-" + pod, Pod: pod, Data: d})
	}
	return out
}

func begun(timeline int64, position instance.LSN, history ...instance.Ancestor) *instance.Data {
	d := whole(timeline, position, history...)
	d.Begun = true
	return d
}

func TestDecide(t *testing.T) {
	const start, first = "start", "first"
	const choose = ". To lead with a volume of your choice, annotate the DatabaseCluster with lead-with"
	const undecided = "The leading volume is undecided: "
	empty := only(instance.DataEmpty)
	second := []instance.Ancestor{{Timeline: 1, End: 50}}
	cases := map[string]struct {
		reason  string
		cluster Cluster
		want    []string // one per server, from db-0 on
	}{
		"New":          {reason: "Where no volume was there is nothing to wait for.", want: []string{start, start}},
		"Empty":        {reason: "Nor where nothing is on them.", cluster: Cluster{Kept: volumes(empty, empty)}, want: []string{start, start}},
		"Larger":       {reason: "A new volume waits for the one with data.", cluster: Cluster{Kept: volumes(whole(1, 100))}, want: []string{first, "Waiting for db-0 to lead with volume claim data-db-0"}},
		"Unknown":      {reason: "What has not been read yet may have more.", cluster: Cluster{Kept: volumes(whole(1, 100), nil)}, want: []string{"Waiting for the contents of volume claim data-db-1, to compare them with the other volumes of this name" + choose, "Waiting for the contents of volume claim data-db-1, to compare them with the other volumes of this name" + choose}},
		"UnknownNamed": {reason: "The annotation goes without it.", cluster: Cluster{Kept: volumes(whole(1, 100), nil), Named: "data-db-0"}, want: []string{first, "Waiting for db-0 to lead with volume claim data-db-0"}},
		"Position":     {reason: "Further on one timeline is newer.", cluster: Cluster{Kept: volumes(whole(1, 99), whole(1, 100))}, want: []string{"Waiting for db-1 to lead with volume claim data-db-1", first}},
		"Same":         {reason: "Of two that have the same the first leads.", cluster: Cluster{Kept: volumes(whole(1, 100), whole(1, 100))}, want: []string{first, "Waiting for db-0 to lead with volume claim data-db-0"}},
		"Timeline":     {reason: "A later timeline is newer, also than what was left behind.", cluster: Cluster{Kept: volumes(whole(1, 100), whole(2, 60, second...))}, want: []string{"Waiting for db-1 to lead with volume claim data-db-1", first}},
		"NamedStale":   {reason: "Where it is clear which is the newest the annotation decides nothing.", cluster: Cluster{Kept: volumes(whole(1, 100), whole(2, 60, second...)), Named: "data-db-0"}, want: []string{"Waiting for db-1 to lead with volume claim data-db-1", first}},
		"Diverged":     {reason: "Two servers went on from one place.", cluster: Cluster{Kept: volumes(whole(2, 70, instance.Ancestor{Timeline: 1, End: 60}), whole(2, 60, second...))}, want: []string{undecided + "volume claims data-db-0, data-db-1 hold one database that two servers went on with, on timelines 2 and 2" + choose, undecided + "volume claims data-db-0, data-db-1 hold one database that two servers went on with, on timelines 2 and 2" + choose}},
		"Parted":       {reason: "The newest did not come from the other.", cluster: Cluster{Kept: volumes(whole(3, 70, instance.Ancestor{Timeline: 1, End: 60}), whole(2, 60, second...)), Named: "data-db-1"}, want: []string{"Waiting for db-1 to lead with volume claim data-db-1", first}},
		"Foreign":      {reason: "Two databases cannot be compared.", cluster: Cluster{Kept: volumes(of1("1"), of1("2"))}, want: []string{undecided + "volume claims data-db-0, data-db-1 hold different databases, with system identifiers 1 and 2" + choose, undecided + "volume claims data-db-0, data-db-1 hold different databases, with system identifiers 1 and 2" + choose}},
		"ForeignNamed": {reason: "The annotation decides.", cluster: Cluster{Kept: volumes(of1("1"), of1("2")), Named: "data-db-1"}, want: []string{"Waiting for db-1 to lead with volume claim data-db-1", first}},
		"NamedEmpty":   {reason: "It can name only one with data.", cluster: Cluster{Kept: volumes(of1("1"), of1("2"), empty), Named: "data-db-2"}, want: []string{undecided + "volume claims data-db-0, data-db-1 hold different databases, with system identifiers 1 and 2. Volume claim data-db-2, which the annotation names, is not known to hold a database" + choose}},
		"Begun":        {reason: "The number of a timeline that no server led on says nothing.", cluster: Cluster{Kept: volumes(begun(5, 100, second...), whole(2, 200, second...))}, want: []string{undecided + "volume claim data-db-0 was to lead by an annotation that has been removed, and began a timeline, so that its number does not show whether it is the newest" + choose}},
		"BegunAlone":   {reason: "There is nothing else.", cluster: Cluster{Kept: volumes(begun(5, 100, second...), empty)}, want: []string{first, "Waiting for db-0 to lead with volume claim data-db-0"}},
		"BegunNamed":   {reason: "Named again it leads.", cluster: Cluster{Kept: volumes(begun(5, 100, second...), whole(2, 200, second...)), Named: "data-db-0"}, want: []string{first, "Waiting for db-0 to lead with volume claim data-db-0"}},
		"Unreadable":   {reason: "What cannot be read may be the newest.", cluster: Cluster{Kept: volumes(whole(1, 100), only(instance.DataUnreadable))}, want: []string{undecided + "volume claim data-db-1 cannot be read: why" + choose}},
		"HalfCopied":   {reason: "A copy that was never finished has nothing of its own.", cluster: Cluster{Kept: volumes(only(instance.DataCopy), whole(1, 100))}, want: []string{"Waiting for db-1 to lead with volume claim data-db-1", first}},
		"CopyAlone":    {reason: "What it was copied from may come back.", cluster: Cluster{Kept: volumes(only(instance.DataCopy), empty)}, want: []string{undecided + "volume claim data-db-0 holds an unfinished copy whose source does not exist: delete it to start with an empty database"}},
		"Primary":      {reason: "Once one leads all follow.", cluster: Cluster{Primary: true, Kept: volumes(whole(1, 100), nil)}, want: []string{start, start}},
		"Members":      {reason: "Members of a cluster that ran wait for nothing.", cluster: Cluster{Members: []string{"db-1", "db-0"}}, want: []string{start, start}},
		"Outsider":     {reason: "One that was not there waits for those that were.", cluster: Cluster{Members: []string{"db-0"}}, want: []string{start, "Waiting for a primary: db-1 was not there when the cluster ran last" + choose}},
		"OutsiderNow":  {reason: "It follows.", cluster: Cluster{Members: []string{"db-0"}, Primary: true}, want: []string{start, start}},
		"OutsiderThen": {reason: "The others may be gone for good.", cluster: Cluster{Members: []string{"db-0"}, Named: "data-db-1"}, want: []string{"Waiting for volume claim data-db-1, which the annotation names, to lead", first}},
		"MemberThen":   {reason: "So may those whose votes a member needs.", cluster: Cluster{Members: []string{"db-0", "db-1"}, Named: "data-db-0"}, want: []string{first, "Waiting for volume claim data-db-0, which the annotation names, to lead"}},
		"NamedLeads":   {reason: "Once it leads all follow.", cluster: Cluster{Members: []string{"db-0"}, Named: "data-db-1", Primary: true}, want: []string{start, start}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for i, want := range tc.want {
				tc.cluster.Pod, tc.cluster.Annotation = instance.Pod("db", int32(i)), "lead-with"
				tc.cluster.Claim = "data-" + tc.cluster.Pod
				v := Decide(tc.cluster)
				got := map[Verdict]string{{Start: true}: start, {Start: true, First: true}: first}[v]
				if got == "" {
					got = v.Held.Message
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s\nDecide(...) of %s: -want, +got:\n%s", tc.reason, tc.cluster.Pod, diff)
				}
			}
		})
	}
}

func TestDiverged(t *testing.T) {
	at := func(timeline int64, end instance.LSN) instance.Ancestor {
		return instance.Ancestor{Timeline: timeline, End: end}
	}
	cases := map[string]struct {
		reason   string
		data     *instance.Data
		timeline int64
		history  []instance.Ancestor
		want     bool
	}{
		"Same":       {reason: "It is on the primary's timeline.", data: whole(1, 100), timeline: 1},
		"Behind":     {reason: "The primary was promoted after it.", data: whole(1, 50), timeline: 2, history: []instance.Ancestor{at(1, 60)}},
		"Ahead":      {reason: "It has writes that the primary was promoted without.", data: whole(1, 70), timeline: 2, history: []instance.Ancestor{at(1, 60)}, want: true},
		"One":        {reason: "It has one write that the primary was promoted without.", data: whole(1, 60), timeline: 2, history: []instance.Ancestor{at(1, 60)}, want: true},
		"Ancestor":   {reason: "It left with the primary's ancestor.", data: whole(2, 70, at(1, 60)), timeline: 3, history: []instance.Ancestor{at(1, 60), at(2, 80)}},
		"Branch":     {reason: "Both were promoted from one place, and have one number.", data: whole(2, 70, at(1, 60)), timeline: 2, history: []instance.Ancestor{at(1, 50)}, want: true},
		"Later":      {reason: "Its own timeline is later.", data: whole(3, 70, at(1, 60)), timeline: 2, history: []instance.Ancestor{at(1, 50)}, want: true},
		"Elsewhere":  {reason: "Its timeline is none of the primary's.", data: whole(2, 70, at(1, 60)), timeline: 4, history: []instance.Ancestor{at(1, 65), at(3, 80)}, want: true},
		"SameNumber": {reason: "A timeline of the primary's number came from elsewhere.", data: whole(2, 70, at(1, 60)), timeline: 3, history: []instance.Ancestor{at(1, 50), at(2, 80)}, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Diverged(tc.data, tc.timeline, tc.history); got != tc.want {
				t.Errorf("%s\nDiverged(...): got %t", tc.reason, got)
			}
		})
	}
}
