package group

import (
	"slices"

	"github.com/storeplane/storeplane/internal/gtid"
)

// State is the state of a server in its group, as MySQL prints it
// (https://dev.mysql.com/doc/refman/9.7/en/group-replication-server-states.html).
type State string

// The states of servers.
const (
	Offline     State = "OFFLINE"
	Recovering  State = "RECOVERING"
	Online      State = "ONLINE"
	Failed      State = "ERROR"
	Unreachable State = "UNREACHABLE"
)

// Data is the kind of data that a volume holds.
type Data string

// The kinds of data.
const (
	// Empty is a volume without data.
	Empty Data = "empty"

	// Copy is data that is copied from another server, and not complete.
	Copy Data = "copy"

	// Whole is a database that a server can lead with.
	Whole Data = "whole"
)

// Report is what a server reports about itself.
type Report struct {
	// Pod is the server's pod, and Claim the UID of its volume claim.
	Pod   string `json:"pod"`
	Claim string `json:"claim,omitempty"`

	// Data is what the volume holds.
	Data Data `json:"data"`

	// Running is true if the server answers. What follows is known only then.
	Running bool `json:"running,omitempty"`

	// Server is the server's UUID. It changes when the server copies another one.
	Server string `json:"server,omitempty"`

	// Version is the version that runs, such as 9.7.4.
	Version string `json:"version,omitempty"`

	// Transactions are those that the server has executed, or received and will execute.
	Transactions gtid.Set `json:"transactions"`

	// Purged are those of which the server has no binary logs any more.
	Purged gtid.Set `json:"purged"`

	// Behind is true if the server, which is in no group, has received transactions and not executed them yet, or cannot
	// show whether it has. A server that starts in a group executes them first.
	Behind bool `json:"behind,omitempty"`

	// Group is the name of the group that the server is configured for, or was last.
	Group string `json:"group,omitempty"`

	// State is the server's state in its group, and Primary is true if it takes writes.
	State   State `json:"state,omitempty"`
	Primary bool  `json:"primary,omitempty"`

	// View identifies the view of the group that the server has installed, and Members are the
	// servers in it, with this one, sorted by UUID.
	View    string   `json:"view,omitempty"`
	Members []Member `json:"members,omitempty"`

	// Standalone is true if the server takes writes without a group, as the only one of its cluster (Alone).
	Standalone bool `json:"standalone,omitempty"`

	// Full is true if the volume has hardly any room left: MySQL waits for room with each commit, for as long as
	// it takes, while the group still counts on the server.
	Full bool `json:"full,omitempty"`

	// Problem describes why the server does not run or cannot join, or is empty.
	Problem string `json:"problem,omitempty"`

	// Answers is true if the server answers at all, if only with an error.
	Answers bool `json:"-"`
}

// Member is a server of a group in the view of one of them.
type Member struct {
	Server string `json:"server"`
	// Address is that at which other servers reach it, host:port.
	Address string `json:"address"`
	State   State  `json:"state"`
	Primary bool   `json:"primary,omitempty"`
	// Version is the version of MySQL that it runs, such as 9.7.4.
	Version string `json:"version,omitempty"`
}

// Alone has a report be that of a standalone server at an address: a group with one member.
func (r *Report) Alone(address string) {
	r.State, r.Primary = Online, true
	r.Members = []Member{{Server: r.Server, Address: address, State: Online, Primary: true, Version: r.Version}}
}

// Joined reports whether the server is in a group, or on its way into one.
func (r *Report) Joined() bool {
	return r.Running && (r.State == Online || r.State == Recovering)
}

// stranded reports whether the server is on its way into a group of which no member is left that it
// could receive from: it would try for minutes. A founder is alone for a moment.
func (r *Report) stranded() bool {
	return r.Running && r.State == Recovering && len(r.Members) > 1 && !slices.ContainsFunc(r.Members, func(m Member) bool { return m.State == Online })
}

// lists reports whether the server at an address is in the server's view.
func (r *Report) lists(address string) bool {
	return slices.ContainsFunc(r.Members, func(m Member) bool { return m.Address == address })
}

// counts reports whether the server takes part in decisions of its group.
func (r *Report) counts() bool { return r.Running && r.State == Online }

// Blocked reports whether the server sees no majority of its own view.
func (r *Report) Blocked() bool {
	reached := 0
	for _, m := range r.Members {
		if m.State != Unreachable {
			reached++
		}
	}
	return reached*2 <= len(r.Members)
}

// Live returns the report of the primary of a group that takes writes, or nil: of the group with this
// name, or else of any. What one server says of others is not trusted, since one that is cut off shows
// them as they were: a majority of a view has to report by itself that it is in that view.
func Live(reports map[string]Report, name string) *Report {
	if p := live(reports, func(r *Report) bool { return r.Group == name }); p != nil {
		return p
	}
	return live(reports, func(*Report) bool { return true })
}

func live(reports map[string]Report, of func(*Report) bool) *Report {
	for _, pod := range sortedPods(reports) {
		p := reports[pod]
		if !p.counts() || !p.Primary || p.Blocked() || !of(&p) {
			continue
		}
		agree := 0
		for _, m := range p.Members {
			if slices.ContainsFunc(sortedPods(reports), func(other string) bool {
				o := reports[other]
				return o.Server == m.Server && o.Joined() && o.View == p.View
			}) {
				agree++
			}
		}
		if agree*2 > len(p.Members) {
			return &p
		}
	}
	return nil
}
