package run

import (
	"context"
	"fmt"
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
	const lacks = "the server lacks 1 transactions that are archived of its data: " + uuid + ":%d. It is not backed up before it has them, or its data counts as another history, which the pod with label app.kubernetes.io/component=archive finds: see its log"
	for name, tc := range map[string]struct {
		reason   string
		system   string
		reached  string
		executed []string
		archived string
		want     string
		after    time.Duration
	}{
		"Has":     {reason: "It has written more, even.", system: "one", reached: "1-8", executed: []string{"1-12"}, archived: uuid + ":1-11"},
		"Lags":    {reason: "It has received what it has still to execute.", system: "one", reached: "1-8", executed: []string{"1-8", "1-10", "1-11"}, archived: uuid + ":1-11", after: 2 * time.Second},
		"Older":   {reason: "Its volume was put back, and it has written since.", system: "one", reached: "1-8", executed: []string{"1-10:12-40"}, want: fmt.Sprintf(lacks, 11), after: 7 * time.Minute},
		"Reached": {reason: "The archive had more, as its record shows.", system: "one", reached: "1-12", executed: []string{"1-11"}, want: fmt.Sprintf(lacks, 12), after: 7 * time.Minute},
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
				server := &lagging{system: tc.system}
				for _, intervals := range tc.executed {
					server.executed = append(server.executed, transactions(t, uuid+":"+intervals))
				}
				got, began := "", time.Now()
				archived, err := a.continued(t.Context(), server, tc.system)
				if err == nil && !archived.Equal(transactions(t, tc.archived)) {
					t.Errorf("what is archived: %s", archived)
				}
				if err != nil {
					got = err.Error()
					if backup.ReasonOf(err) != backup.SourceUnreachable {
						t.Errorf("its reason: %s", backup.ReasonOf(err))
					}
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s\ncontinued(): -want, +got:\n%s", tc.reason, diff)
				}
				if took := time.Since(began); took != tc.after {
					t.Errorf("%s\ncontinued() returned after %s, want %s", tc.reason, took, tc.after)
				}
			})
		})
	}
}

// TestContinuedUnarchived: where nothing is archived a server has all of it.
func TestContinuedUnarchived(t *testing.T) {
	j := binaryLogs(t, t.TempDir(), time.Now)
	archived, err := j.continued(t.Context(), &lagging{executed: []gtid.Set{{}}}, "one")
	must(t, err)
	if !archived.IsEmpty() {
		t.Errorf("archived: %s", archived)
	}
}

// TestHolds: a copy of another server than the one that was asked may lack what is archived.
func TestHolds(t *testing.T) {
	const uuid = "541947d5-eac4-11f1-aa87-02fc00000001"
	for position, want := range map[string]string{
		uuid + ":1-12":    "",
		uuid + ":1-11":    "",
		uuid + ":1-10:12": "the copy lacks 1 transactions that are archived of its data: " + uuid + ":11. Another server than the one that had them was copied",
		"":                "the copy lacks 11 transactions that are archived of its data: " + uuid + ":1-11. Another server than the one that had them was copied",
	} {
		got := ""
		if err := holds(&backup.Manifest{Position: position}, transactions(t, uuid+":1-11")); err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("holds(%q): -want, +got:\n%s", position, diff)
		}
	}
}

// TestContinuedParts: once the data of a server counts as another history, the next attempt backs that up.
func TestContinuedParts(t *testing.T) {
	const uuid = "541947d5-eac4-11f1-aa87-02fc00000001"
	volume := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		a := archivingOf(t, volume, &streamed{})
		must(t, a.record(t.Context(), segment.Reached{System: "one", Executed: transactions(t, uuid+":1-12")}))
		began := time.Now()
		server := &lagging{system: "one", executed: []gtid.Set{transactions(t, uuid+":1-11")}}
		time.AfterFunc(5*time.Minute+500*time.Millisecond, func() { server.system = "two" })
		if _, err := a.continued(t.Context(), server, "one"); backup.ReasonOf(err) != backup.SourceUnreachable || time.Since(began) != 5*time.Minute+time.Second {
			t.Errorf("continued(): %v after %s", err, time.Since(began))
		}
		archived, err := a.continued(t.Context(), server, "two")
		if err != nil || !archived.IsEmpty() {
			t.Errorf("continued() of another history: %s, %v", archived, err)
		}
	})
}

// TestSameSystem: a copy of data that became another history meanwhile is of neither.
func TestSameSystem(t *testing.T) {
	must(t, sameSystem(t.Context(), &lagging{system: "one"}, "one"))
	if err := sameSystem(t.Context(), &lagging{system: "two"}, "one"); backup.ReasonOf(err) != backup.SourceUnreachable {
		t.Errorf("sameSystem(): %v", err)
	}
}
