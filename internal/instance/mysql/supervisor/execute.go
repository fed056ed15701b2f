package supervisor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/google/uuid"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/mysql/group"
	"github.com/storeplane/storeplane/internal/instance/mysql/mysqld"
)

// decide takes the step that package group decides.
func (s *Supervisor) decide(ctx context.Context, own *group.Report) error {
	c, err := s.outside.Cluster(ctx)
	if err != nil {
		return err
	}
	c.Pod, c.Address, c.Suspected, c.Failures, c.InPlace = s.Pod, s.outside.Address(s.Pod), s.suspected, s.failures, s.inPlace
	c.Impatient = !s.queued.IsZero() && time.Since(s.queued) > queueFor
	// The others are asked after this server was observed: what the primary reports is newer than
	// what this server has received.
	c.Reports = s.outside.Peers(ctx)
	c.Reports[s.Pod] = *own
	action := group.Decide(c)
	s.spare(own, &action)
	s.suspected++
	if !action.Suspect && action.Verb != group.SetAside {
		s.suspected = 0
	}
	if action.Verb != group.Restore {
		// What this server has reported of a restore is over: another one restores, or has.
		s.note(nil)
	}
	switch {
	case !action.Queued:
		s.queued = time.Time{}
	case s.queued.IsZero():
		s.queued = time.Now()
	}
	if action.Verb != group.Stay && action.Verb != group.SetAside {
		s.log.Info("Executing action", "action", action.Verb)
	}
	if action.Verb != group.SetAside && (action.Verb == group.Stay && action.Message != "" || !s.fails) {
		s.hold(instance.Held{Message: action.Message, Undecided: action.Undecided}, action.Servers)
	}
	err = s.act(ctx, action, &c)
	s.acted(&action, err)
	if errors.Is(err, errNotYet) {
		return nil
	}
	return err
}

// errNotYet is returned by a step that waits until it is due, or possible.
var errNotYet = errors.New("the step waits")

// acted notes whether a step has changed anything. One that fails has the status say why until it succeeds.
func (s *Supervisor) acted(action *group.Action, err error) {
	switch {
	case action.Verb != group.Stay && err == nil:
		s.idle = time.Time{}
	case s.idle.IsZero():
		s.idle = time.Now()
	}
	switch {
	case action.Verb == group.Stay, action.Verb == group.Restore, errors.Is(err, errChanged), errors.Is(err, errNotYet):
		// It is decided again, or reports itself.
	case err != nil:
		s.fails = true
		s.say(fmt.Sprintf("Cannot %s, retrying: %s", action.Verb, strings.ReplaceAll(err.Error(), "\n", "; ")))
	case s.fails:
		s.fails = false
		s.say("")
	}
}

const (
	// restShare is which part of the time for which a server in no group has changed nothing its next pause is, and longestRest
	// is the longest one: each pass reads a dozen objects, and a server may wait for days.
	restShare   = 60
	longestRest = 5 * time.Second
)

// rest returns the pause before the next pass.
func (s *Supervisor) rest() time.Duration {
	if s.idle.IsZero() {
		return period
	}
	return min(max(time.Since(s.idle)/restShare, period), longestRest)
}

func (s *Supervisor) act(ctx context.Context, action group.Action, c *group.Cluster) error {
	switch action.Verb {
	case group.Stay:
		return nil
	case group.Initialize:
		return mysqld.Initialize(ctx, s.Program, s.Files, s.Options, s.output)
	case group.Restore:
		return s.restore(ctx, &c.Record)
	case group.InitializeCopy:
		if err := s.register(ctx, &c.Record, false); err != nil {
			return err
		}
		if err := s.Files.BeginCopy(); err != nil {
			return err
		}
		return mysqld.Initialize(ctx, s.Program, s.Files, s.Options, s.output)
	case group.Bootstrap, group.StandAlone:
		s.configure(ctx)
		// Clients are let in once it is confirmed that it leads.
		s.demotion.since = time.Time{}
		// A standalone server numbers transactions by its UUID.
		return s.bootstrap(ctx, action.Verb == group.StandAlone && s.renamed, c)
	case group.Join, group.JoinByCopy:
		if !s.known(ctx) {
			return errNotYet
		}
		s.setAlone(false)
		s.configure(ctx)
		return s.join(ctx, action.Verb == group.JoinByCopy, c)
	case group.Leave:
		return s.leave(ctx)
	case group.SetAside:
		return s.setAside(ctx, action, c)
	case group.Form:
		// Only a member decides so, in tend.
	}
	return fmt.Errorf("cannot %s: there is no such action", action.Verb)
}

// bootstrap founds a group, or has the server take writes without one. Clients can connect only after the record still has
// this server as the founder: another one may have been named to lead meanwhile.
func (s *Supervisor) bootstrap(ctx context.Context, standalone bool, c *group.Cluster) error {
	mine := c.Record
	mine.Name, mine.Founder, mine.Confirmed = uuid.NewString(), s.Pod, false
	if err := s.outside.Change(ctx, c.Record, mine); err != nil {
		return err
	}
	// Others are not connected to, and a server is refused with names of others of which none leads anywhere: those of
	// servers that were removed, and whose volumes stay.
	membership, err := s.membership(mine.Name, nil)
	if err != nil {
		return err
	}
	begin := s.server.Bootstrap
	if s.setAlone(standalone); standalone {
		begin = s.server.StandAlone
	}
	if err := begin(ctx, membership); err != nil {
		return errors.Join(err, s.leave(ctx))
	}
	if err := s.confirm(ctx, mine, c.Named != ""); err != nil {
		return errors.Join(err, s.leave(ctx))
	}
	if err := s.open(ctx); err != nil {
		return err
	}
	// It is the only one in its view. Clients find it by its mark.
	s.mu.Lock()
	s.leads, s.epoch = true, mine.Epoch+1
	s.mu.Unlock()
	return s.mark(ctx, true)
}

// confirm records that this server has founded the group of a record. Where a user has named it, transactions are given up
// that other volumes had, and an archive may have: the data gets another identifier first.
func (s *Supervisor) confirm(ctx context.Context, founded group.Record, named bool) error {
	if named {
		if _, err := s.server.RenewSystem(ctx, ""); err != nil {
			return err
		}
	}
	confirmed := founded
	confirmed.Confirmed, confirmed.Epoch, confirmed.Members = true, founded.Epoch+1, map[string]string{s.Pod: s.Claim}
	return s.outside.Change(ctx, founded, confirmed)
}

// open lets clients in. A new primary may refuse that for a moment, so it is tried again by tend.
func (s *Supervisor) open(ctx context.Context) error {
	if s.opened {
		return nil
	}
	err := s.server.Open(ctx)
	s.opened = err == nil
	return err
}

// register records this server as a member or not.
func (s *Supervisor) register(ctx context.Context, record *group.Record, member bool) error {
	uid := ""
	if member {
		uid = s.Claim
	}
	if record.Members[s.Pod] == uid {
		return nil
	}
	with := *record
	with.Members = map[string]string{}
	maps.Copy(with.Members, record.Members)
	if member {
		with.Members[s.Pod] = uid
	} else {
		delete(with.Members, s.Pod)
	}
	if err := s.outside.Change(ctx, *record, with); err != nil {
		return err
	}
	*record = with
	return nil
}

// known reports whether the name of this server leads to it. The members connect to a server that joins by its
// name. Where that still leads to the pod of before they try for a second each time, and take no writes
// meanwhile: one thread of theirs does all that the group does.
func (s *Supervisor) known(ctx context.Context) bool {
	if s.outside.Known(ctx) {
		s.unknown = time.Time{}
		return true
	}
	if s.unknown.IsZero() {
		s.unknown = time.Now()
		s.log.Info("Waiting for the name of this server to lead to its pod")
	}
	return time.Since(s.unknown) > knownFor
}

// join joins the group. The record has a server with data of its own as a member first: if all stop after that, it is
// waited for. What a copy replaces is no data any more from before the copy begins, and a server that copies another one is
// no member that has to be waited for: all that it acknowledges the primary has.
func (s *Supervisor) join(ctx context.Context, byCopy bool, c *group.Cluster) error {
	if byCopy {
		if err := s.Files.BeginCopy(); err != nil {
			return err
		}
	}
	if err := s.register(ctx, &c.Record, !byCopy); err != nil {
		return err
	}
	membership, err := s.membership(c.Record.Name, c.Online())
	if err != nil {
		return err
	}
	return s.server.Join(ctx, membership, byCopy)
}

// setAside sets the data aside, so that the next pass copies a member. Where there is no room for both, a server with
// transactions of its own waits for a user: they may have been acknowledged, and exist nowhere else.
func (s *Supervisor) setAside(ctx context.Context, action group.Action, c *group.Cluster) error {
	if time.Since(s.cramped) < roomPeriod {
		return errNotYet
	}
	if err := s.Files.ForgetFailed(); err != nil {
		return err
	}
	holds := fmt.Sprintf("volume claim %s %s", instance.VolumeClaim(s.Pod), action.Message)
	room, err := s.Files.HasRoom()
	if err != nil {
		return err
	}
	if action.Own && !room {
		s.cramped = time.Now()
		s.say(fmt.Sprintf("%s, and has no room to set that data aside for a copy of a member: enlarge the volume claim, or delete it and pod %s if those transactions are not needed", holds, s.Pod))
		return errNotYet
	}
	s.say("")
	if !room {
		// MySQL removes what the server has once a member has agreed to be copied, and not before. Until it is this server's
		// turn its data stays what it is.
		s.inPlace = true
		s.Warn(ctx, appsv1.ReasonDataSetAside, fmt.Sprintf("%s copies a member: %s. The members have all of that data, which the copy replaces, since there is no room for both", s.Pod, holds))
		return nil
	}
	if err := s.register(ctx, &c.Record, false); err != nil {
		return err
	}
	if err := s.end(ctx); err != nil {
		return err
	}
	s.log.Info("Setting data aside", "cause", action.Message)
	aside := s.Files.Aside(action.Own, time.Now())
	// A server that is killed after this finds no data, and does not report again what it was.
	s.Warn(ctx, appsv1.ReasonDataSetAside, fmt.Sprintf("%s copies a member: %s. That data is set aside in folder %s", s.Pod, holds, aside))
	if err := s.Files.SetAside(aside); err != nil {
		return err
	}
	s.failures, s.suspected = 0, 0
	return nil
}
