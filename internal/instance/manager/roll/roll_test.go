package roll

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const lagBytes = 16 << 20

// cluster returns a healthy cluster of three with primary db-0 and two synchronous standbys, after
// some changes.
func cluster(changes ...func(*Cluster)) Cluster {
	c := Cluster{Primary: "db-0", Size: 3, Synchronous: true, Replace: true, LagBytes: lagBytes}
	for i := range 3 {
		c.Servers = append(c.Servers, Server{Pod: fmt.Sprintf("db-%d", i), Ordinal: i, Exists: true, Ready: true, Streaming: i > 0, Synchronous: i > 0})
	}
	for _, change := range changes {
		change(&c)
	}
	return c
}

func server(i int, change func(*Server)) func(*Cluster) {
	return func(c *Cluster) { change(&c.Servers[i]) }
}

func outdated(servers ...int) func(*Cluster) {
	return func(c *Cluster) {
		for _, i := range servers {
			c.Servers[i].Outdated = true
		}
	}
}

func restart(servers ...int) func(*Cluster) {
	return func(c *Cluster) {
		for _, i := range servers {
			c.Servers[i].Restart = true
		}
	}
}

func unready(s *Server) { s.Ready = false }
func silent(s *Server)  { s.Ready, s.Streaming = false, false }
func joining(s *Server) { s.Ready, s.Streaming, s.Joining = false, false, true }
func lagging(s *Server) { s.LagBytes = lagBytes + 1 }
func gone(s *Server)    { *s = Server{Pod: s.Pod, Ordinal: s.Ordinal} }

func TestNext(t *testing.T) {
	cases := map[string]struct {
		reason string
		in     Cluster
		want   Step
	}{
		"Well":        {reason: "There is nothing to do", in: cluster()},
		"Hibernated":  {reason: "All are about to go anyway", in: cluster(outdated(0, 1, 2), func(c *Cluster) { c.Hibernated = true })},
		"NotOurs":     {reason: "The StatefulSet's controller replaces pods, or it is not known which are outdated", in: cluster(outdated(0, 1, 2), func(c *Cluster) { c.Replace = false })},
		"LastOne":     {reason: "With the primary all would stop together, and none could take over", in: cluster(outdated(0), func(c *Cluster) { c.Size = 1 }), want: Step{Message: "Waiting for db-2 to be removed"}},
		"LastAlone":   {reason: "Then it is replaced", in: cluster(outdated(0), server(1, gone), server(2, gone), func(c *Cluster) { c.Size = 1 }), want: Step{Verb: Replace, Pod: "db-0", Message: "Replacing db-0"}},
		"LastFirst":   {reason: "The standby with the highest ordinal is first", in: cluster(outdated(0, 1, 2)), want: Step{Verb: Replace, Pod: "db-2", Message: "Replacing db-2"}},
		"NextStandby": {reason: "Then the next", in: cluster(outdated(0, 1)), want: Step{Verb: Replace, Pod: "db-1", Message: "Replacing db-1"}},
		"PrimaryLast": {reason: "The primary is last", in: cluster(outdated(0)), want: Step{Verb: Replace, Pod: "db-0", Message: "Replacing db-0"}},
		"PrimaryInTheMiddle": {
			reason: "The primary is last whatever its ordinal",
			in: cluster(outdated(0, 1), func(c *Cluster) {
				c.Primary = "db-1"
				c.Servers[0].Streaming, c.Servers[0].Synchronous = true, true
			}),
			want: Step{Verb: Replace, Pod: "db-0", Message: "Replacing db-0"},
		},
		"NoSynchronous": {
			reason: "Without a synchronous standby the primary would take acknowledged writes with it",
			in:     cluster(outdated(0), server(1, func(s *Server) { s.Synchronous = false })),
			want:   Step{Message: "Waiting for db-1 to be synchronous"},
		},
		"Asynchronous": {
			reason: "None is needed where none was asked for",
			in:     cluster(outdated(0), server(1, func(s *Server) { s.Synchronous = false }), func(c *Cluster) { c.Synchronous = false }),
			want:   Step{Verb: Replace, Pod: "db-0", Message: "Replacing db-0"},
		},
		"Missing":  {reason: "One is away already", in: cluster(outdated(0, 1), server(2, gone)), want: Step{Message: "Waiting for db-2 to start"}},
		"Leaving":  {reason: "One is about to go", in: cluster(outdated(0, 1), server(2, func(s *Server) { s.Deleting = true })), want: Step{Message: "Waiting for db-2 to stop"}},
		"Starting": {reason: "One does not follow yet", in: cluster(outdated(0, 1), server(2, silent)), want: Step{Message: "Waiting for db-2 to follow the primary"}},
		"Unready":  {reason: "One follows and is not ready", in: cluster(outdated(0, 1), server(2, unready)), want: Step{Message: "Waiting for db-2 to be ready"}},
		"Lagging":  {reason: "One lags", in: cluster(outdated(0, 1), server(2, lagging)), want: Step{Message: "Waiting for db-2 to catch up"}},
		"Broken": {
			reason: "An outdated standby that does not serve is replaced though another is away",
			in:     cluster(outdated(0, 1, 2), server(1, silent), server(2, gone)),
			want:   Step{Verb: Replace, Pod: "db-1", Message: "Replacing db-1"},
		},
		"Joining": {
			reason: "Of several that join none is replaced, so that no two leave at once",
			in:     cluster(outdated(0, 1, 2), server(1, joining), server(2, joining)),
			want:   Step{Message: "Waiting for db-1 to follow the primary"},
		},
		"JoiningAlone": {
			reason: "The others do not need one that joins: a change that makes it too slow to catch up can be corrected",
			in:     cluster(outdated(0, 1, 2), server(1, joining)),
			want:   Step{Verb: Replace, Pod: "db-1", Message: "Replacing db-1"},
		},
		"BrokenBesideJoining": {
			reason: "One that is not in the group is replaced meanwhile",
			in:     cluster(outdated(0, 1, 2), server(1, joining), server(2, silent)),
			want:   Step{Verb: Replace, Pod: "db-2", Message: "Replacing db-2"},
		},
		"BrokenButStreams": {
			reason: "One that streams may be what acknowledges writes, and waits for the others",
			in:     cluster(outdated(1), server(1, unready), server(2, gone)),
			want:   Step{Message: "Waiting for db-1 to be ready"},
		},
		"AllUnready": {
			reason: "A part that fails in all pods does not hold up the change that puts it right",
			in:     cluster(outdated(0, 1, 2), server(0, unready), server(1, unready), server(2, unready)),
			want:   Step{Verb: Replace, Pod: "db-2", Message: "Replacing db-2"},
		},
		"UnreadyPrimary":      {reason: "The same for the primary, once the others are well", in: cluster(outdated(0), server(0, unready)), want: Step{Verb: Replace, Pod: "db-0", Message: "Replacing db-0"}},
		"UnreadyPrimaryFirst": {reason: "The primary is not taken for a broken standby", in: cluster(outdated(0, 1), server(0, unready), server(2, silent)), want: Step{Message: "Waiting for db-2 to follow the primary"}},
		"HandOver": {
			reason: "A primary that is about to go hands over to the synchronous standby",
			in:     cluster(func(c *Cluster) { c.Primary, c.Size = "db-2", 2 }, server(0, func(s *Server) { s.Streaming = true }), server(2, func(s *Server) { s.Streaming = false })),
			want:   Step{Verb: HandOver, Pod: "db-1", Message: "Handing over to db-1"},
		},
		"HandOverBest": {
			reason: "The least behind is best",
			in: cluster(func(c *Cluster) { c.Primary, c.Size, c.Synchronous = "db-2", 2, false },
				server(0, func(s *Server) { s.Streaming, s.LagBytes = true, 8 }), server(1, func(s *Server) { s.LagBytes = 9 })),
			want: Step{Verb: HandOver, Pod: "db-0", Message: "Handing over to db-0"},
		},
		"HandOverWhileJoining": {
			reason: "MySQL refuses it meanwhile, whichever server joins",
			in: cluster(server(2, joining), func(c *Cluster) {
				c.Primary, c.Size = "db-1", 1
				c.Servers[0].Streaming, c.Servers[0].Synchronous = true, true
			}),
			want: Step{Message: "Waiting for db-2, which joins, to hand over from db-1"},
		},
		"HandOverToFit": {
			reason: "One that runs a newer version than another cannot lead, however new its pod is",
			in: cluster(outdated(0, 2), server(1, func(s *Server) { s.Unfit = true }), func(c *Cluster) {
				c.Primary, c.Size = "db-2", 2
				c.Servers[0].Streaming, c.Servers[0].Synchronous = true, true
			}),
			want: Step{Verb: HandOver, Pod: "db-0", Message: "Handing over to db-0"},
		},
		"HandOverToNone":        {reason: "No standby can take over", in: cluster(func(c *Cluster) { c.Primary, c.Size = "db-2", 1 }), want: Step{Message: "Waiting for a standby that can take over from db-2"}},
		"Restart":               {reason: "Standbys restart first", in: cluster(restart(0, 1, 2)), want: Step{Verb: Restart, Pod: "db-2", Message: "Restarting db-2"}},
		"RestartPrimary":        {reason: "The primary restarts last", in: cluster(restart(0)), want: Step{Verb: Restart, Pod: "db-0", Message: "Restarting db-0"}},
		"RestartAfterReplacing": {reason: "What is replaced restarts with it", in: cluster(restart(0, 1, 2), outdated(0)), want: Step{Verb: Replace, Pod: "db-0", Message: "Replacing db-0"}},
		"StandbyWaitsForPrimary": {
			reason: "A standby that still waits after its restart may wait for the primary's",
			in:     cluster(restart(0, 2), server(2, func(s *Server) { s.Tried, s.Restarted = 1, 1 })),
			want:   Step{Verb: Restart, Pod: "db-0", Message: "Restarting db-0"},
		},
		"StandbyAgain":   {reason: "It restarts again after the primary", in: cluster(restart(2), server(2, func(s *Server) { s.Tried, s.Restarted = 1, 1 })), want: Step{Verb: Restart, Pod: "db-2", Message: "Restarting db-2"}},
		"NotBack":        {reason: "A standby that does not come back ends it", in: cluster(restart(0, 1), server(2, silent)), want: Step{Message: "Waiting for db-2 to follow the primary"}},
		"NeverRestarted": {reason: "One that cannot be restarted ends it", in: cluster(restart(0, 1, 2), server(2, func(s *Server) { s.Tried = MaxRestarts })), want: Step{Stuck: "db-2"}},
		"StillWaits": {
			reason: "One that was restarted often enough does not hold the others up",
			in:     cluster(restart(0, 2), server(2, func(s *Server) { s.Tried, s.Restarted = MaxRestarts, MaxRestarts })),
			want:   Step{Verb: Restart, Pod: "db-0", Message: "Restarting db-0", Stuck: "db-2"},
		},
		"Hold": {reason: "A server would not start again", in: cluster(restart(0, 1, 2), func(c *Cluster) { c.Hold = true })},
		"One": {
			reason: "A cluster of one restarts at once",
			in:     Cluster{Primary: "db-0", Size: 1, LagBytes: lagBytes, Servers: []Server{{Pod: "db-0", Exists: true, Ready: true, Restart: true}}},
			want:   Step{Verb: Restart, Pod: "db-0", Message: "Restarting db-0"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Next(tc.in)); diff != "" {
				t.Errorf("%s: Next(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSpare: whether a standby other than the next primary can serve clients that read.
func TestSpare(t *testing.T) {
	for name, c := range map[string]struct {
		reason string
		in     Cluster
		want   bool
	}{
		"Other":   {reason: "db-2 can", in: cluster(), want: true},
		"Removed": {reason: "It still serves until it is removed", in: cluster(func(c *Cluster) { c.Size = 2 }), want: true},
		"Unready": {reason: "Its clients are not led to it", in: cluster(server(2, unready))},
		"Lagging": {reason: "What it has is old", in: cluster(server(2, lagging))},
		"Leaving": {reason: "It is about to go", in: cluster(server(2, func(s *Server) { s.Deleting = true }))},
		"Gone":    {reason: "There is none", in: cluster(server(2, gone))},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.in.Spare("db-1"); got != c.want {
				t.Errorf("%s\nSpare(db-1): got %t, want %t", c.reason, got, c.want)
			}
		})
	}
}
