package group

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Record is what the servers of a cluster agree on through the API server. It is changed only by a
// server that has read it, so that of two changes at once one fails.
type Record struct {
	// Name is the name of the group, a UUID. It is empty before the first group. Each bootstrap
	// has a name of its own: a server that still runs an earlier group, or is on its way into one,
	// can never be taken for a member of this one, nor its transactions for those of this one.
	Name string `json:"name,omitempty"`

	// Epoch counts the groups that were confirmed, a standalone server among them. Founder is the pod that may
	// bootstrap, or that restores a backup to do so, and Confirmed is true once it has: no client can connect and
	// no server joins before.
	Epoch     int64  `json:"epoch,omitempty"`
	Founder   string `json:"founder,omitempty"`
	Confirmed bool   `json:"confirmed,omitempty"`

	// Members are the servers that may have acknowledged what no other has: pods, with the UIDs of
	// their volume claims. Each server with data of its own records itself before it joins, and again while it
	// is in the group. One that copies another is added once its copy is complete. The primary removes those
	// that have left. A group that took writes has some.
	Members map[string]string `json:"members,omitempty"`
}

// Ran reports whether there was a group that took writes.
func (r *Record) Ran() bool { return len(r.Members) > 0 }

// Volume is a volume claim that exists.
type Volume struct {
	// Pod is the server that it belongs to, Claim its name and UID its UID.
	Pod, Claim, UID string

	// Kept is true if the volume is older than the cluster: a deleted one has left it.
	Kept bool
}

// Cluster is a cluster as observed by one of its servers.
type Cluster struct {
	// Pod is the server for which Decide decides, and Address that at which members show it.
	Pod, Address string

	// Size is the number of servers that are desired: those whose Ordinal is below it. It is 0 if that is not known.
	Size    int
	Ordinal func(pod string) int

	// Volumes are the volume claims that exist, also those of servers that are not desired.
	Volumes []Volume

	// Reports are the reports of the servers that answer, this one's among them, by pod.
	Reports map[string]Report

	Record Record

	// Serving is another server that the API server shows as a ready primary, or "". It may serve clients
	// although this server cannot reach it.
	Serving string

	// Led is true if a server of this cluster has reported that it led a group, also where Record is empty.
	Led bool

	// Named is the volume claim that the DatabaseCluster's annotation names to lead with, or
	// "". Annotation is how to write the annotation, or "" if that is not known.
	Named      string
	Annotation string

	// Restoring is true if a new database is filled from a backup instead of being empty.
	Restoring bool

	// Impatient is true if this server has waited for its turn to copy a member for long.
	Impatient bool

	// Suspected is how often in a row this server was found to have transactions of its own, and
	// Failures how often in a row it could not recover in its group. InPlace is true if its volume has no room
	// to set aside data that the group has.
	Suspected, Failures int
	InPlace             bool
}

// Verb is what a server does next.
type Verb string

// The verbs.
const (
	// Stay changes nothing: the server is in its group, or has to wait.
	Stay Verb = "stay"

	// Initialize makes an empty database to bootstrap a group with, and Copy one that is
	// replaced by a copy of another server's.
	Initialize     Verb = "initialize"
	InitializeCopy Verb = "initialize to copy"

	// Restore fills the volume from a backup, to bootstrap a group with.
	Restore Verb = "restore"

	// Bootstrap founds a group with what the volume holds.
	Bootstrap Verb = "bootstrap"

	// StandAlone takes writes without a group, with what the volume holds, and Form has such a server found one.
	StandAlone Verb = "stand alone"
	Form       Verb = "form the group"

	// Join joins the group. JoinByCopy copies a member first, whatever the server has.
	Join       Verb = "join"
	JoinByCopy Verb = "join by copy"

	// Leave leaves a group that has failed.
	Leave Verb = "leave"

	// SetAside sets the data aside so that the server copies another one.
	SetAside Verb = "set the data aside"
)

// Action is what a server does next, and why it waits.
type Action struct {
	Verb Verb

	// Message describes what the server waits for, or what its data is set aside for.
	Message string

	// Own is true if the data that is set aside has transactions that the group does not have. It is not
	// removed, then.
	Own bool

	// Full is true if the server waits for room on its volume while others serve.
	Full bool

	// Queued is true if the server waits for its turn to copy a member.
	Queued bool

	// Undecided is true if the server waits until a user decides which volume leads. Suspect is
	// true if the server has transactions that the group may not have.
	Undecided, Suspect bool

	// Servers is the number of servers that are needed to compare all volumes, if that is more
	// than Size, or 0.
	Servers int
}

// confirmations is how often in a row a server is found to have transactions of its own before its
// data is set aside: the primary's report may be older than what the server has received.
const confirmations = 3

// attempts is how often in a row a server tries to recover in its group before it copies a member.
const attempts = 5

// Decide decides what a server does next.
func Decide(c Cluster) Action {
	own := c.Reports[c.Pod]
	switch {
	case own.stranded():
		return Action{Verb: Leave, Message: "Leaving the group: no member is online that this server could recover from"}
	case own.Joined() && c.Record.Confirmed && own.Group != c.Record.Name:
		return Action{Verb: Leave, Message: "Leaving group " + own.Group + ": the group of this cluster is " + c.Record.Name}
	case own.Standalone && c.Size > 1:
		return Action{Verb: Form}
	case own.Joined():
		return Action{Verb: Stay}
	case own.Running && own.State == Failed:
		return Action{Verb: Leave, Message: "Leaving the group: this server is in state ERROR"}
	}
	if p := Live(c.Reports, c.Record.Name); p != nil {
		return c.follow(&own, p)
	}
	if at := c.joined(); len(at) > 0 {
		return wait("Waiting for %s to agree on a primary", list(at))
	}
	return c.lead(&own)
}

// follow decides about a server beside a group that takes writes.
func (c *Cluster) follow(own, primary *Report) Action {
	switch {
	case !c.Record.Confirmed:
		return wait("Waiting for %s to confirm that it leads", primary.Pod)
	case primary.Group == c.Record.Name && c.Record.Members[primary.Pod] == "":
		return wait("Waiting for %s to be recorded as a member of the group", primary.Pod)
	case primary.Group != c.Record.Name:
		return wait("Waiting for %s, which runs group %s: the group of this cluster is %s", primary.Pod, primary.Group, c.Record.Name)
	case own.Data == Empty:
		return Action{Verb: InitializeCopy}
	case own.Data == Whole && own.Full:
		a := wait("Waiting for room on volume claim %s, which is full: raise storageSize", c.claim(c.Pod))
		a.Full = true
		return a
	case !own.Running:
		return own.starting()
	case primary.lists(c.Address):
		// It was killed. By another spelling of its name it would be in the group twice, and of a group of
		// three two failures would be one too many.
		return wait("Waiting for %s to remove this server from the group, in which it was before it started", primary.Pod)
	case primary.Standalone:
		return wait("Waiting for %s, which is standalone, to form a group", primary.Pod)
	case own.Data == Copy:
		return c.copy("")
	case primary.Transactions.Contains(own.Transactions) && c.Failures >= attempts && c.InPlace:
		return c.copy("")
	case primary.Transactions.Contains(own.Transactions) && c.Failures >= attempts:
		return Action{Verb: SetAside, Message: fmt.Sprintf("could not be brought up to date in %d attempts", c.Failures)}
	case primary.Transactions.Contains(own.Transactions) && !c.servable(own):
		// The server would copy a member by itself, without a record that its data is incomplete
		// meanwhile.
		return c.copy("Copying a member: no binary logs go back to what this server has")
	case primary.Transactions.Contains(own.Transactions):
		return Action{Verb: Join}
	case c.Suspected+1 < confirmations:
		return Action{Verb: Stay, Suspect: true, Message: "Waiting for a newer report of " + primary.Pod}
	}
	extra := own.Transactions.Minus(primary.Transactions)
	return Action{Verb: SetAside, Own: true, Message: fmt.Sprintf("has transactions that the group does not have, %d in all: %s", extra.Len(), extra)}
}

// copy has a server copy a member, one server after the other: a member serves one copy at a time, and a
// server that is refused would try to receive binary logs that no member has any more. Of those that are
// about to the first begins, unless that takes long: it may fail again and again.
func (c *Cluster) copy(message string) Action {
	for _, pod := range sortedPods(c.Reports) {
		r := c.Reports[pod]
		if pod == c.Pod || r.Data != Copy || !r.Running {
			continue
		}
		if r.State == Recovering || c.Ordinal(pod) < c.Ordinal(c.Pod) && !c.Impatient {
			a := wait("Waiting for %s, which copies a member: one server does at a time", pod)
			a.Queued = true
			return a
		}
	}
	return Action{Verb: JoinByCopy, Message: message}
}

// lead decides about a server while there is no group.
func (c *Cluster) lead(own *Report) Action {
	if r, answers := c.Reports[c.Serving]; c.Serving != "" && (!answers || c.Named != "" && !r.Running) {
		// Not even the annotation overthrows it: what it acknowledges meanwhile would be lost.
		return wait("Waiting for %s, which is ready as the primary, to answer this server: the network, or a network policy, may keep them apart", c.Serving)
	}
	if c.Named != "" {
		return c.leadNamed(own)
	}
	if kept := c.occupied(); len(kept) > 0 {
		return undecided("volume claim %s holds a database of an earlier cluster of this name, and this one is to be filled from a backup: delete the volume claim and its pod, or claim the cluster without restoreFrom to continue with that database%s", list(kept), c.hint())
	}
	if gone := c.gone(); len(gone) > 0 {
		return undecided("the volume of %s, a member of the last group, no longer exists or is empty, and may have had the newest writes%s", list(gone), c.hint())
	}
	var missing, starting []string
	needed := 0
	for _, v := range c.compared() {
		switch r, known := c.Reports[v.Pod]; {
		case !known || r.Claim != v.UID:
			missing = append(missing, v.Claim)
			needed = max(needed, c.Ordinal(v.Pod)+1)
		case r.Data == Whole && !r.Running && v.Pod == c.Pod:
			return r.starting()
		case r.Data == Whole && !r.Running && r.Problem != "":
			starting = append(starting, v.Pod+" ("+r.Problem+")")
		case r.Data == Whole && !r.Running:
			starting = append(starting, v.Pod)
		}
	}
	if len(missing) > 0 && needed > c.Size {
		a := wait("Waiting for server %d of this cluster, to compare volume claim %s with the others of this name%s", needed, list(missing), c.hint())
		a.Servers = needed
		return a
	}
	if len(missing) > 0 {
		return wait("Waiting for the contents of volume claim %s, to compare them with the other volumes of this name%s", list(missing), c.hint())
	}
	if len(starting) > 0 {
		return wait("Waiting for MySQL on %s to report its transactions", list(starting))
	}
	return c.newest(own)
}

// servable reports whether a member has the binary logs of all that a server lacks.
func (c *Cluster) servable(own *Report) bool {
	for _, r := range c.Reports {
		if r.counts() && r.Group == c.Record.Name && own.Transactions.Contains(r.Purged) {
			return true
		}
	}
	return false
}

// Online returns the servers that are members of the group and online, by pod. A server joins by these alone: one that asks
// another first, which does not answer, holds up the writes of the group for seconds once it joins.
func (c *Cluster) Online() []string {
	return slices.DeleteFunc(sortedPods(c.Reports), func(pod string) bool {
		r := c.Reports[pod]
		return pod == c.Pod || !r.counts() || r.Group != c.Record.Name
	})
}

// gone returns the members whose volume does not exist any more, or is empty although nothing has
// emptied it in order: a server that does that is no member before.
func (c *Cluster) gone() []string {
	var out []string
	for pod, uid := range c.Record.Members {
		there := slices.ContainsFunc(c.Volumes, func(v Volume) bool { return v.Pod == pod && v.UID == uid })
		if r, known := c.Reports[pod]; !there || known && r.Claim == uid && r.Data == Empty {
			out = append(out, pod)
		}
	}
	slices.Sort(out)
	return out
}

// compared returns the volumes of which one leads: those of the members, or of an earlier cluster
// before there is a group. If a volume has transactions, or a server has led, although there is no record
// of a group, the record was lost, and all volumes are compared.
func (c *Cluster) compared() []Volume {
	// A server that has restored a backup has transactions before there is a group.
	written := !c.Restoring && slices.ContainsFunc(sortedPods(c.Reports), func(pod string) bool {
		r := c.Reports[pod]
		return r.Data == Whole && !r.Transactions.IsEmpty()
	})
	lost := !c.Record.Ran() && (written || c.Led)
	var out []Volume
	for _, v := range c.Volumes {
		_, member := c.Record.Members[v.Pod]
		if member || !c.Record.Ran() && (v.Kept || lost) {
			out = append(out, v)
		}
	}
	return out
}

// occupied returns the volume claims of an earlier cluster that hold a database, if this one is filled
// from a backup.
func (c *Cluster) occupied() []string {
	if !c.Restoring || c.Record.Ran() {
		return nil
	}
	var out []string
	for _, v := range c.Volumes {
		if r, known := c.Reports[v.Pod]; v.Kept && known && r.Claim == v.UID && r.Data == Whole {
			out = append(out, v.Claim)
		}
	}
	return out
}

// newest decides by what the compared volumes hold.
func (c *Cluster) newest(own *Report) Action {
	leaders := c.leaders()
	if len(leaders) == 0 {
		return c.beginEmpty(own)
	}
	leader := leaders[0]
	for _, pod := range leaders[1:] {
		if !c.Reports[leader].Transactions.Contains(c.Reports[pod].Transactions) {
			leader = pod
		}
	}
	for _, pod := range leaders {
		a, b := c.Reports[pod].Transactions, c.Reports[leader].Transactions
		if extra := a.Minus(b); !extra.IsEmpty() {
			return undecided("volume claim %s has transactions %s, which %s does not have, and lacks %s%s", c.claim(pod), extra, c.claim(leader), b.Minus(a), c.hint())
		}
	}
	return c.found(own, leader)
}

// beginEmpty decides about a server if no volume that is compared holds a database.
func (c *Cluster) beginEmpty(own *Report) Action {
	copies := slices.DeleteFunc(sortedPods(c.Reports), func(pod string) bool { return c.Reports[pod].Data != Copy })
	switch {
	case c.Record.Ran() || c.Led:
		return undecided("no volume claim holds the data that this cluster had%s", c.hint())
	case len(copies) > 0 && c.Restoring:
		return undecided("volume claim %s holds an unfinished copy whose source does not exist: delete it and its pod to restore the backup", c.claim(copies[0]))
	case len(copies) > 0:
		return undecided("volume claim %s holds an unfinished copy whose source does not exist: delete it to start with an empty database", c.claim(copies[0]))
	}
	return c.found(own, c.first())
}

// leadNamed decides by the annotation, whatever the other volumes hold.
func (c *Cluster) leadNamed(own *Report) Action {
	i := slices.IndexFunc(c.Volumes, func(v Volume) bool { return v.Claim == c.Named })
	if i < 0 {
		return undecided("volume claim %s, which the annotation names, does not exist%s", c.Named, c.hint())
	}
	v := c.Volumes[i]
	if r, known := c.Reports[v.Pod]; known && r.Claim == v.UID && r.Data != Whole {
		return undecided("volume claim %s, which the annotation names, holds no database%s", c.Named, c.hint())
	}
	if n := c.Ordinal(v.Pod); n >= c.Size {
		a := undecided("volume claim %s, which the annotation names, is that of server %d: raise size to %d, or name another one", c.Named, n+1, n+1)
		a.Servers = n + 1
		return a
	}
	return c.found(own, v.Pod)
}

// found decides about a server once it is known which one leads.
func (c *Cluster) found(own *Report, leader string) Action {
	_, answers := c.Reports[leader]
	switch {
	case leader != c.Pod && c.Restoring && !answers:
		return wait("Waiting for %s, which restores the backup on volume claim %s and does not answer. If it does not come back, delete the volume claim and its pod, and another server restores the backup", leader, c.claim(leader))
	case leader != c.Pod:
		return wait("Waiting for %s to lead with volume claim %s", leader, c.claim(leader))
	case own.Data == Empty && c.Restoring:
		return Action{Verb: Restore}
	case own.Data == Empty:
		return Action{Verb: Initialize}
	case !own.Running:
		return own.starting()
	case c.Size == 1 && c.Ordinal(c.Pod) == 0 && !own.Behind:
		// A group costs each commit about an eighth, and is of no use to one server. A server that is not desired hands
		// over to the first, by a group.
		return Action{Verb: StandAlone}
	}
	return Action{Verb: Bootstrap}
}

// starting returns what is waited for while the server does not answer.
func (r *Report) starting() Action {
	if r.Problem == "" {
		return wait("Waiting for MySQL to start")
	}
	return wait("Waiting for MySQL to start: %s", r.Problem)
}

// first returns the first server of a cluster without data.
func (c *Cluster) first() string {
	if f := c.Record.Founder; c.Restoring && c.hasVolume(f) && c.Ordinal(f) < c.Size {
		// It has begun to restore the backup. A second server would have other data of its own.
		return f
	}
	first := c.Pod
	for pod := range c.Reports {
		if c.Ordinal(pod) < c.Ordinal(first) {
			first = pod
		}
	}
	return first
}

// hasVolume reports whether a server's volume claim exists.
func (c *Cluster) hasVolume(pod string) bool {
	return slices.ContainsFunc(c.Volumes, func(v Volume) bool { return v.Pod == pod })
}

// leaders returns the servers that can lead, by ordinal. Before there is a group one without an
// earlier volume can, too: it has initialized its own.
func (c *Cluster) leaders() []string {
	var pods []string
	for pod, r := range c.Reports {
		if c.Restoring && !c.Record.Ran() && c.Record.Founder != "" && pod != c.first() {
			// It has restored the backup too, as the one that was to, and the record of that was lost.
			continue
		}
		if uid, member := c.Record.Members[pod]; r.Data == Whole && (!c.Record.Ran() || member && uid == r.Claim) {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b string) int { return c.Ordinal(a) - c.Ordinal(b) })
	return pods
}

// joined returns the servers that are in a group.
func (c *Cluster) joined() []string {
	return slices.DeleteFunc(sortedPods(c.Reports), func(pod string) bool {
		r := c.Reports[pod]
		return !r.Joined()
	})
}

// claim returns the name of a server's volume claim.
func (c *Cluster) claim(pod string) string {
	i := slices.IndexFunc(c.Volumes, func(v Volume) bool { return v.Pod == pod })
	if i < 0 {
		return "of " + pod
	}
	return c.Volumes[i].Claim
}

// hint returns the advice to use the annotation.
func (c *Cluster) hint() string {
	if c.Annotation == "" {
		return ""
	}
	return ". To lead with a volume of your choice, annotate the DatabaseCluster with " + c.Annotation
}

func wait(format string, args ...any) Action {
	return Action{Verb: Stay, Message: fmt.Sprintf(format, args...)}
}

func undecided(format string, args ...any) Action {
	return Action{Verb: Stay, Undecided: true, Message: "The leading volume is undecided: " + fmt.Sprintf(format, args...)}
}

func list(names []string) string { return strings.Join(names, ", ") }

func sortedPods(reports map[string]Report) []string { return slices.Sorted(maps.Keys(reports)) }
