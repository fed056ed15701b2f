package lead

import (
	"fmt"
	"slices"
	"strings"

	"github.com/storeplane/storeplane/internal/instance"
)

// Volume is a volume that is older than the cluster.
type Volume struct {
	// Claim is its volume claim, and Pod the server that it belongs to.
	Claim, Pod string

	// Data is what the volume holds, or nil while that is not known.
	Data *instance.Data
}

// Cluster is the cluster as observed by a server that is about to start.
type Cluster struct {
	// Pod is the server for which Decide decides, and Claim its volume claim.
	Pod, Claim string

	// Primary is true if another server takes writes.
	Primary bool

	// Members are those of the cluster when it ran last: the primary and each standby that had
	// followed it. A cluster that never had a primary has none.
	Members []string

	// Begun is true if the volume's data is on a timeline that was begun for its server to
	// lead on, and the server never led on it.
	Begun bool

	// Kept are all volumes that are older than a cluster without Members.
	Kept []Volume

	// Named is the volume claim that the DatabaseCluster's annotation names, or "". If the
	// cluster has Members, it belongs to a server within the desired size. Annotation is how
	// to write the annotation.
	Named      string
	Annotation string
}

// Verdict is the decision about a server.
type Verdict struct {
	// Start is true if the server may start.
	Start bool

	// First is true if the server starts before all others, since its volume leads.
	First bool

	// Unknown is true if it has to be known first what a volume holds.
	Unknown bool

	// Held is why the server is not started.
	Held instance.Held
}

// Decide decides whether a server may start. Patroni finds out what the server needs to follow
// a primary.
func Decide(c Cluster) Verdict {
	switch {
	case c.Primary:
		return Verdict{Start: true}
	case len(c.Members) > 0 && c.Named == c.Claim:
		return Verdict{Start: true, First: true}
	case len(c.Members) > 0 && c.Named != "":
		// A member, too, may start only as a standby of that server.
		return hold("Waiting for volume claim " + c.Named + ", which the annotation names, to lead")
	case slices.Contains(c.Members, c.Pod) && c.Begun:
		// Its timeline would make Patroni take it for the newest.
		return hold("Waiting for a primary: " + c.Pod + " was to lead by an annotation that has been removed" + c.hint())
	case slices.Contains(c.Members, c.Pod):
		// The server was a member to the last. Patroni finds out which member may lead.
		return Verdict{Start: true}
	case len(c.Members) > 0:
		// Its volume is new, or older than those of the members.
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
	// There is no data on any volume.
	return Verdict{Start: true}
}

func hold(message string) Verdict { return Verdict{Held: instance.Held{Message: message}} }

// hint returns the advice to use the annotation.
func (c Cluster) hint() string {
	return ". To lead with a volume of your choice, annotate the DatabaseCluster with " + c.Annotation
}

// ways returns how a user can decide which volume leads.
func (c Cluster) ways() string {
	switch {
	case len(of(c.Kept, func(v *Volume) bool { return v.leads() })) == 0:
		return ""
	case c.Named == "":
		return c.hint()
	}
	return ". Volume claim " + c.Named + ", which the annotation names, is not known to hold a database" + c.hint()
}

// named returns the volume that the annotation names, or nil if it cannot lead.
func (c Cluster) named() *Volume {
	i := slices.IndexFunc(c.Kept, func(v Volume) bool { return v.Claim == c.Named && v.leads() })
	if i < 0 {
		return nil
	}
	return &c.Kept[i]
}

func (v *Volume) leads() bool { return v.Data != nil && v.Data.State == instance.DataWhole }

// choose returns the volume that leads: the one with the newest data. It returns nil if there
// is no data, and nil and why if it cannot be found out which data is the newest.
func choose(volumes []Volume) (*Volume, *instance.Held) {
	if missing := of(volumes, func(v *Volume) bool { return v.Data == nil }); len(missing) > 0 {
		return nil, &instance.Held{Message: "Waiting for the contents of " + claims(missing) + ", to compare them with the other volumes of this name"}
	}
	if bad := of(volumes, state(instance.DataUnreadable)); len(bad) > 0 {
		return nil, undecided("%s cannot be read: %s", claims(bad[:1]), bad[0].Data.Problem)
	}
	whole := of(volumes, state(instance.DataWhole))
	if len(whole) == 0 {
		if copies := of(volumes, state(instance.DataCopy)); len(copies) > 0 {
			return nil, undecided("%s holds an unfinished copy whose source does not exist: delete it to start with an empty database", claims(copies[:1]))
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
	return &instance.Held{Message: "The leading volume is undecided: " + fmt.Sprintf(format, args...), Undecided: true}
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

// claims lists volume claims by name for a message.
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

// later reports whether a goes further than b.
func later(a, b *instance.Data) bool {
	if a.Timeline != b.Timeline {
		return a.Timeline > b.Timeline
	}
	return a.Position > b.Position
}

// descends reports whether the newest data branched off the other data. An ancestor that went
// on alone, as a primary does after a failover, was left behind then: what it has beyond that
// point is lost, as at any failover.
func descends(newest, other *instance.Data) bool {
	if newest.Timeline == other.Timeline {
		return slices.Equal(newest.History, other.History)
	}
	i := slices.IndexFunc(newest.History, func(a instance.Ancestor) bool { return a.Timeline == other.Timeline })
	return i >= 0 && slices.Equal(newest.History[:i], other.History)
}

// Diverged reports whether data goes on where a primary's did not, given the primary's
// timeline and its history. A timeline ends where the last record ends that both have, and the
// position of data is where its last record begins.
func Diverged(data *instance.Data, timeline int64, history []instance.Ancestor) bool {
	if data.Timeline == timeline {
		return !slices.Equal(history, data.History)
	}
	i := slices.IndexFunc(history, func(a instance.Ancestor) bool { return a.Timeline == data.Timeline })
	return i < 0 || data.Position >= history[i].End || !slices.Equal(history[:i], data.History)
}
