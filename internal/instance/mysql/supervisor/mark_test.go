package supervisor

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/instance"
)

// TestMark: when a pod is marked again with the role that it has.
func TestMark(t *testing.T) {
	for name, c := range map[string]struct {
		reason  string
		primary bool
		agreed  bool
		after   time.Duration
		want    []string
	}{
		"Replica":      {reason: "Nothing has changed.", after: replicaPeriod - time.Second, want: []string{"replica"}},
		"ReplicaLater": {reason: "A primary that did not come to hand over may have removed the mark.", after: replicaPeriod, want: []string{"replica", "replica if none"}},
		"Primary":      {reason: "Nothing has changed.", primary: true, agreed: true, after: tendPeriod - time.Second, want: []string{"primary"}},
		"PrimaryLater": {reason: "Another server has removed the mark.", primary: true, agreed: true, after: tendPeriod, want: []string{"primary", "primary"}},
		"PrimaryAlone": {reason: "The other members may have another primary.", primary: true, after: time.Hour, want: []string{"primary"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &marks{}
				s := &Supervisor{outside: o, agreed: c.agreed}
				first := s.mark(t.Context(), c.primary)
				time.Sleep(c.after)
				if err := errors.Join(first, s.mark(t.Context(), c.primary)); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.want, o.made); diff != "" {
					t.Errorf("%s\nmark() twice with %s between: -want, +got:\n%s", c.reason, c.after, diff)
				}
			})
		})
	}
}

// marks is a cluster that notes marks.
type marks struct {
	Outside

	made []string
}

func (o *marks) Mark(_ context.Context, primary bool) error {
	role := instance.RoleReplica
	if primary {
		role = instance.RolePrimary
	}
	o.made = append(o.made, role)
	return nil
}

func (o *marks) Remark(_ context.Context, _, from, to string) error {
	if from != "" {
		return errors.New("a server removes no mark of its own")
	}
	o.made = append(o.made, to+" if none")
	return nil
}
