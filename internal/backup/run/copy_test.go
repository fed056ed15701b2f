package run

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/segment"
	"github.com/storeplane/storeplane/internal/gtid"
)

// lagging is a server that is copied, which has executed more each time that it is asked.
type lagging struct {
	system   string
	executed []gtid.Set
}

func (c *lagging) System(context.Context) (string, error) { return c.system, nil }

func (c *lagging) Executed(context.Context) (gtid.Set, error) {
	out := c.executed[0]
	if len(c.executed) > 1 {
		c.executed = c.executed[1:]
	}
	return out, nil
}

// TestContinued: a server is backed up once it has all that is archived of its data.
func TestContinued(t *testing.T) {
	const uuid = "541947d5-eac4-11f1-aa87-02fc00000001"
	const lacks = "the server lacks 1 transactions that are archived of its data: " + uuid + ":11. It is not backed up before it has them, or its data counts as another history"
	for name, tc := range map[string]struct {
		reason   string
		system   string
		reached  string
		executed []string
		want     string
	}{
		"Has":     {reason: "It has written more, even.", system: "one", reached: "1-8", executed: []string{"1-12"}},
		"Lags":    {reason: "It has received what it has still to execute.", system: "one", reached: "1-8", executed: []string{"1-8", "1-10", "1-11"}},
		"Older":   {reason: "Its volume was put back, and it has written since.", system: "one", reached: "1-8", executed: []string{"1-10:12-40"}, want: lacks},
		"Reached": {reason: "The archive had more, as its record shows.", system: "one", reached: "1-12", executed: []string{"1-11"}, want: "the server lacks 1 transactions that are archived of its data: " + uuid + ":12. It is not backed up before it has them, or its data counts as another history"},
		"Other":   {reason: "What is archived is of another history.", system: "two", reached: "1-12", executed: []string{"1-3"}},
	} {
		t.Run(name, func(t *testing.T) {
			content, volume := threeTransactions(t), t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				a := archivingOf(t, volume, &streamed{})
				must(t, a.record(t.Context(), segment.Reached{System: "one", Executed: transactions(t, uuid+":"+tc.reached)}))
				received := t.TempDir()
				write(t, received, map[string]string{"binlog.000003": string(content)})
				a.have = transactions(t, uuid+":1-8")
				must(t, a.read(t.Context(), received, true))
				server := &lagging{}
				for _, intervals := range tc.executed {
					server.executed = append(server.executed, transactions(t, uuid+":"+intervals))
				}
				got := ""
				if err := a.continued(t.Context(), server, tc.system); err != nil {
					got = err.Error()
					if backup.ReasonOf(err) != backup.SourceUnreachable {
						t.Errorf("its reason: %s", backup.ReasonOf(err))
					}
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s\ncontinued(): -want, +got:\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// TestContinuedUnarchived: where nothing is archived a server has all of it.
func TestContinuedUnarchived(t *testing.T) {
	j := binaryLogs(t, t.TempDir(), time.Now)
	must(t, j.continued(t.Context(), &lagging{executed: []gtid.Set{{}}}, "one"))
}

// TestSameSystem: a copy of data that became another history meanwhile is of neither.
func TestSameSystem(t *testing.T) {
	must(t, sameSystem(t.Context(), &lagging{system: "one"}, "one"))
	if err := sameSystem(t.Context(), &lagging{system: "two"}, "one"); backup.ReasonOf(err) != backup.SourceUnreachable {
		t.Errorf("sameSystem(): %v", err)
	}
}
