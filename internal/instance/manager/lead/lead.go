package lead

import (
	"fmt"
	"slices"
	"strings"

	"github.com/storeplane/storeplane/internal/instance"
)

// Volume that is older than the cluster.
type Volume struct {
	// Claim is its volume claim, and Pod the server that it belongs to.
	Claim, Pod string

	// Data on it, or nil while that is not known.
	Data *instance.Data
}

// Cluster as the server that asks knows it.
type Cluster struct {
	// Pod that asks whether it may start, and its volume claim.
	Pod, Claim string

	// Primary says that a server takes writes.
	Primary bool

	// Members of the cluster when it ran last, the primary among them and each
	// standby that had followed it. There are none of a cluster that never had a
	// primary.
	Members []string

	// Begun says that the volume's data is on a timeline that was begun for its server to
	// lead on, which it never did.
	Begun bool

	// Kept volumes are all that are older than a cluster without Members.
	Kept []Volume

	// Named is the volume claim that the DatabaseCluster's annotation names, or
	// "", and Annotation how to name one. Of a cluster with Members it is one of a
	// server that there shall be.
	Named      string
	Annotation string
}

// Verdict on a server.
type Verdict struct {
	// Start it.
	Start bool

	// First says that it is started before all others, since its volume leads.
	First bool

	// Unknown says that what is on a volume has to be known first.
	Unknown bool

	// Held says why it is not started.
	Held instance.Held
}

// Decide whether a server may start. What it takes to follow a primary is
// Patroni's to find out.
func Decide(c Cluster) Verdict {
	switch {
	case c.Primary:
		return Verdict{Start: true}
	case len(c.Members) > 0 && c.Named == c.Claim:
		return Verdict{Start: true, First: true}
	case len(c.Members) > 0 && c.Named != "":
		// A member, too, may go on only as its standby.
		return hold("Waiting for volume claim " + c.Named + ", which the annotation names, to lead")
	case slices.Contains(c.Members, c.Pod) && c.Begun:
		// By its timeline Patroni would take it for the newest.
		return hold("Waiting for a primary: " + c.Pod + " was to lead by an annotation that has been removed" + c.hint())
	case slices.Contains(c.Members, c.Pod):
		// It was there to the last: which member may lead Patroni knows.
		return Verdict{Start: true}
	case len(c.Members) > 0:
		// Its volume is new, or older than the others' are.
		return hold("Waiting for a primary: " + c.Pod + " was not there when the cluster ran last" + c.hint())
	case len(c.Kept) == 0:
		return Verdict{Start: true}
	}
	leader, problem := choose(c.Kept)
	if problem != nil {
		leader = c.named()
	}
	switch {
	case leader != nil && leader.Pod == c.Pod:
		return Verdict{Start: true, First: true}
	case leader != nil:
		return hold("Waiting for " + leader.Pod + " to lead with volume claim " + leader.Claim)
	case problem != nil:
		problem.Message += c.ways()
		return Verdict{Held: *problem, Unknown: !problem.Undecided}
	}
	// There is no data anywhere.
	return Verdict{Start: true}
}

func hold(message string) Verdict { return Verdict{Held: instance.Held{Message: message}} }

// hint at the annotation.
func (c Cluster) hint() string {
	return ". To lead with a volume of your choice, annotate the DatabaseCluster with " + c.Annotation
}

// ways to decide which volume leads.
func (c Cluster) ways() string {
	switch {
	case len(of(c.Kept, func(v *Volume) bool { return v.leads() })) == 0:
		return ""
	case c.Named == "":
		return c.hint()
	}
	return ". Volume claim " + c.Named + ", which the annotation names, is not known to hold a database" + c.hint()
}

// named is the volume to lead by the annotation, if it can.
func (c Cluster) named() *Volume {
	i := slices.IndexFunc(c.Kept, func(v Volume) bool { return v.Claim == c.Named && v.leads() })
	if i < 0 {
		return nil
	}
	return &c.Kept[i]
}

func (v *Volume) leads() bool { return v.Data != nil && v.Data.State == instance.DataWhole }

// choose the volume that leads: the one with the newest data. There is none
// where there is no data, and where it cannot be found out which is the newest.
func choose(volumes []Volume) (*Volume, *instance.Held) {
	if missing := of(volumes, func(v *Volume) bool { return v.Data == nil }); len(missing) > 0 {
		return nil, &instance.Held{Message: "Waiting to know what is on " + claims(missing) + ", to compare it with the other volumes of this name"}
	}
	if bad := of(volumes, state(instance.DataUnreadable)); len(bad) > 0 {
		return nil, undecided("%s cannot be read: %s", claims(bad[:1]), bad[0].Data.Problem)
	}
	whole := of(volumes, state(instance.DataWhole))
	if len(whole) == 0 {
		if copies := of(volumes, state(instance.DataCopy)); len(copies) > 0 {
			return nil, undecided("%s began to be copied from a volume that is not there. Delete what is not needed to begin with an empty database", claims(copies))
		}
		return nil, nil
	}
	if begun := of(volumes, func(v *Volume) bool { return v.leads() && v.Data.Begun }); len(begun) > 0 && len(whole) > 1 {
		return nil, undecided("%s was to lead by an annotation that has been removed, and began a timeline, so that its number does not show whether it is the newest", claims(begun))
	}
	newest := whole[0]
	for _, v := range whole[1:] {
		if later(v.Data, newest.Data) {
			newest = v
		}
	}
	for _, v := range whole {
		if v.Data.System != newest.Data.System {
			return nil, undecided("%s hold different databases, with system identifiers %s and %s", claims([]*Volume{newest, v}), newest.Data.System, v.Data.System)
		}
		if !descends(newest.Data, v.Data) {
			return nil, undecided("%s hold one database that two servers went on with, on timelines %d and %d", claims([]*Volume{newest, v}), newest.Data.Timeline, v.Data.Timeline)
		}
	}
	return newest, nil
}

func undecided(format string, args ...any) *instance.Held {
	return &instance.Held{Message: "It is not decided which volume leads: " + fmt.Sprintf(format, args...), Undecided: true}
}

func state(is instance.DataState) func(*Volume) bool {
	return func(v *Volume) bool { return v.Data.State == is }
}

func of(volumes []Volume, is func(*Volume) bool) []*Volume {
	var out []*Volume
	for i := range volumes {
		if is(&volumes[i]) {
			out = append(out, &volumes[i])
		}
	}
	return out
}

// claims by name.
func claims(volumes []*Volume) string {
	var names []string
	for _, v := range volumes {
		names = append(names, v.Claim)
	}
	slices.Sort(names)
	if len(names) == 1 {
		return "volume claim " + names[0]
	}
	return "volume claims " + strings.Join(names, ", ")
}

// later says whether data goes further than other data.
func later(a, b *instance.Data) bool {
	if a.Timeline != b.Timeline {
		return a.Timeline > b.Timeline
	}
	return a.Position > b.Position
}

// descends says whether the newest data came from where other data is. An
// ancestor that went on alone, as a primary does that others took over from, was
// left behind then: what it has beyond is lost, as at any failover.
func descends(newest, other *instance.Data) bool {
	if newest.Timeline == other.Timeline {
		return slices.Equal(newest.History, other.History)
	}
	i := slices.IndexFunc(newest.History, func(a instance.Ancestor) bool { return a.Timeline == other.Timeline })
	return i >= 0 && slices.Equal(newest.History[:i], other.History)
}

// Diverged says whether data goes on where that of a primary did not, given its timeline
// and those that this came from. A timeline ends where the last record ends that both
// have, and the position of data is where its last record begins.
func Diverged(data *instance.Data, timeline int64, history []instance.Ancestor) bool {
	if data.Timeline == timeline {
		return !slices.Equal(history, data.History)
	}
	i := slices.IndexFunc(history, func(a instance.Ancestor) bool { return a.Timeline == data.Timeline })
	return i < 0 || data.Position >= history[i].End || !slices.Equal(history[:i], data.History)
}
