package supervisor

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestMark: when a pod is marked again with the role that it has.
func TestMark(t *testing.T) {
	for name, c := range map[string]struct {
		reason  string
		primary bool
		agreed  bool
		after   time.Duration
		want    int
	}{
		"Replica":      {reason: "Nothing has changed.", after: replicaPeriod - time.Second, want: 1},
		"ReplicaLater": {reason: "A primary that did not come to hand over has removed the mark.", after: replicaPeriod, want: 2},
		"Primary":      {reason: "Nothing has changed.", primary: true, agreed: true, after: tendPeriod - time.Second, want: 1},
		"PrimaryLater": {reason: "Another server has removed the mark.", primary: true, agreed: true, after: tendPeriod, want: 2},
		"PrimaryAlone": {reason: "The other members may have another primary.", primary: true, after: time.Hour, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &marks{}
				s := &Supervisor{outside: o, agreed: c.agreed}
				first := s.mark(t.Context(), c.primary)
				time.Sleep(c.after)
				if err := s.mark(t.Context(), c.primary); first != nil || err != nil || o.made != c.want {
					t.Errorf("%s\nmark() twice with %s between: got %d marks, %v, %v, want %d", c.reason, c.after, o.made, first, err, c.want)
				}
			})
		})
	}
}

// marks is a cluster that counts marks.
type marks struct {
	Outside

	made int
}

func (o *marks) Mark(context.Context, bool) error {
	o.made++
	return nil
}
