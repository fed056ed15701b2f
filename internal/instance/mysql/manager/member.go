package manager

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/pace"
	"github.com/storeplane/storeplane/internal/instance/manager/volume"
	"github.com/storeplane/storeplane/internal/instance/mysql/group"
)

const (
	memberPeriod = 10 * time.Second

	// problemDelay is how long a problem lasts before it is reported, and heldDelay is how long a
	// server waits before that is: each report runs the function.
	problemDelay = 15 * time.Second
	heldDelay    = 5 * time.Second
)

// member is the state of the loop of every server.
type member struct {
	*Manager

	growth volume.Grower
	// held is what the server waits for, and since is since when. silent is since when the server
	// does not answer.
	held   instance.Held
	since  time.Time
	silent time.Time
}

func (m *Manager) runMember(ctx context.Context) {
	b := &member{Manager: m}
	pace.Loop(ctx, m.wakeMember, b.pass)
}

// pass expands the volume and reports on this server.
func (b *member) pass(ctx context.Context) time.Duration {
	last := instance.Member{}
	known := b.Reported(instance.MemberKey(b.Pod), &last)
	state := b.state()
	next := b.report(&state, &last, time.Now())
	next.Filling = b.filling(last.Filling)
	if state.Report.Running {
		b.setVariables(ctx)
	}
	b.Expand(ctx, &b.growth, &next)
	b.metrics.Certificate("tls", b.TLSDir)
	b.metrics.Certificate("control", b.ControlDir)
	if known {
		b.Publish(ctx, instance.MemberKey(b.Pod), next)
	}
	if !state.Report.Joined() {
		return pace.Pause
	}
	return memberPeriod
}

// setVariables sets the global variables of this server as they are desired, and returns those that it
// refuses. What fails is tried again.
func (m *Manager) setVariables(ctx context.Context) []instance.Problem {
	file, ok := m.File(instance.MySQLVariablesFile)
	if !ok {
		return nil
	}
	problems, err := m.SetVariables(ctx, file)
	if !m.Note("set the parameters", err) {
		problems = append(problems, instance.Problem{Subject: instance.SubjectParameter, Name: "parameters", Message: fmt.Sprintf("Not all are set yet: %v", err)})
	}
	return problems
}

// report returns the report on this server, but for its volume.
func (b *member) report(state *State, last *instance.Member, now time.Time) instance.Member {
	next := instance.Member{Protocol: instance.Protocol, Version: cmp.Or(state.Report.Version, last.Version), Capacity: last.Capacity, Volume: last.Volume}
	next.Restore = state.Restore
	next.Servers = int32(state.Servers) //nolint:gosec // it is at most instance.MaxSize
	if state.Held.Message != b.held.Message {
		b.held, b.since = state.Held, now
	}
	switch {
	case b.held.Message == "":
	case b.held.Undecided, now.Sub(b.since) >= heldDelay:
		if held := b.held; state.Report.Joined() {
			next.Message = held.Message
		} else {
			next.Held = &held
		}
	case last.Held != nil:
		next.Held = last.Held
	}
	if state.Report.Running || state.Report.Data != group.Whole {
		b.silent = time.Time{}
		return next
	}
	if b.silent.IsZero() {
		b.silent = now
	}
	if now.Sub(b.silent) >= problemDelay {
		next.Message = "MySQL does not answer"
	}
	return next
}

func (b *member) filling(last int) int {
	used, size, err := volume.Usage(b.Volume)
	if !b.Note("measure the volume", err) {
		return last
	}
	b.metrics.Volume(used, size)
	return volume.Filling(used, size, last)
}
