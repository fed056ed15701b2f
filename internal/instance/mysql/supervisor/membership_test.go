package supervisor

import (
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
		size     int
		recorded map[string]string
		in       []string
		away     map[string]time.Time
		want     map[string]string
	}{
		"All":      {reason: "Members stay.", size: 3, recorded: uid(pod(0), pod(1), pod(2)), in: []string{pod(0), pod(1), pod(2)}, want: uid(pod(0), pod(1), pod(2))},
		"Joined":   {reason: "A new one is added.", size: 3, recorded: uid(pod(0), pod(1)), in: []string{pod(0), pod(1), pod(2)}, want: uid(pod(0), pod(1), pod(2))},
		"Away":     {reason: "One that is away for a moment is not removed and added again.", size: 3, recorded: uid(pod(0), pod(1), pod(2)), in: []string{pod(0), pod(1)}, want: uid(pod(0), pod(1), pod(2))},
		"AwayLong": {reason: "After a while it is removed.", size: 3, recorded: uid(pod(0), pod(1), pod(2)), in: []string{pod(0), pod(1)}, away: map[string]time.Time{pod(2): time.Now().Add(-awayFor)}, want: uid(pod(0), pod(1))},
		"Removed":  {reason: "One that is not desired any more does not come back, and nothing may wait for it.", size: 1, recorded: uid(pod(0), pod(1), pod(2)), in: []string{pod(0)}, want: uid(pod(0))},
		"Removing": {reason: "Until it has left it is a member.", size: 1, recorded: uid(pod(0), pod(1), pod(2)), in: []string{pod(0), pod(2)}, want: uid(pod(0), pod(2))},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Supervisor{Config: Config{Pod: pod(0), Claim: "uid-" + pod(0)}, away: c.away}
			cluster := group.Cluster{Size: c.size, Ordinal: ordinal, Record: group.Record{Members: maps.Clone(c.recorded)}}
			for n := range 3 {
				cluster.Volumes = append(cluster.Volumes, group.Volume{Pod: pod(n), UID: "uid-" + pod(n)})
			}
			in := map[string]bool{}
			for _, pod := range c.in {
				in[pod] = true
			}
			if diff := cmp.Diff(c.want, s.members(in, &cluster)); diff != "" {
				t.Errorf("%s -want, +got:\n%s", c.reason, diff)
			}
		})
	}
}
