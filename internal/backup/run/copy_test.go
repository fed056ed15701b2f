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

// lagging is a server that is copied, which has executed more each time that it is asked, and answers only once others were
// asked.
type lagging struct {
	system   string
	executed []gtid.Set
	silent   int
	asked    int
	hangs    bool
}

func (c *lagging) System(context.Context) (string, error) { return c.system, nil }

func (c *lagging) MayClone(context.Context) error { return nil }

func (c *lagging) Reconnect() { c.asked++ }

func (c *lagging) Executed(ctx context.Context) (gtid.Set, error) {
	if c.hangs && c.asked == 0 {
		<-ctx.Done()
		return gtid.Set{}, backup.WithReason(backup.SourceUnreachable, ctx.Err())
	}
	if c.asked < c.silent {
		return gtid.Set{}, backup.Errorf(backup.SourceUnreachable, "it does not answer")
	}
	out := c.executed[0]
	if len(c.executed) > 1 {
		c.executed = c.executed[1:]
	}
	return out, nil
}

// TestContinued: a server is backed up once it has all that is archived of its data.
func TestContinued(t *testing.T) {
	const uuid = "541947d5-eac4-11f1-aa87-02fc00000001"
	lacks := func(n int) string {
		return fmt.Sprintf("the server lacks transactions that are archived of its data, 1 in all: %s:%d. It is not backed up before it has them, or its data counts as another history, which the pod with label app.kubernetes.io/component=archive finds: see its log", uuid, n)
	}
	for name, tc := range map[string]struct {
		reason   string
		system   string
		reached  string
		backup   string
		executed []string
		silent   int
		hangs    bool
		archived string
		want     string
		after    time.Duration
	}{
		"Has":     {reason: "It has written more, even.", system: "one", reached: "1-8", executed: []string{"1-12"}, archived: uuid + ":1-11"},
		"Lags":    {reason: "It has received what it has still to execute.", system: "one", reached: "1-8", executed: []string{"1-8", "1-10", "1-11"}, archived: uuid + ":1-11", after: 10 * time.Second},
		"Older":   {reason: "Its volume was put back, and it has written since.", system: "one", reached: "1-8", executed: []string{"1-10:12-40"}, want: lacks(11), after: 7 * time.Minute},
		"Reached": {reason: "The archive had more, as its record shows.", system: "one", reached: "1-12", executed: []string{"1-11"}, want: lacks(12), after: 7 * time.Minute},
		"Backup":  {reason: "The newest backup has more than the archive.", system: "one", reached: "1-8", backup: "1-13", executed: []string{"1-12:14-20"}, want: lacks(13), after: 7 * time.Minute},
		"Other":   {reason: "What is archived is of another history.", system: "two", reached: "1-12", executed: []string{"1-3"}},
		"Hangs":   {reason: "The primary hangs, and another one leads.", system: "one", reached: "1-8", executed: []string{"1-12"}, hangs: true, archived: uuid + ":1-11", after: askWithin + 5*time.Second},
		"Silent":  {reason: "The primary changes.", system: "one", reached: "1-8", executed: []string{"1-12"}, silent: 3, archived: uuid + ":1-11", after: 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			content, volume := threeTransactions(t), t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(24 * time.Hour)
				a := archivingOf(t, volume, &streamed{})
				must(t, a.record(t.Context(), segment.Reached{System: "one", Executed: transactions(t, uuid+":"+tc.reached)}))
				received := t.TempDir()
				write(t, received, map[string]string{"binlog.000003": string(content)})
				a.have = transactions(t, uuid+":1-8")
				must(t, a.read(t.Context(), received, true))
				if tc.backup != "" {
					a.backedUp(t, uuid+":"+tc.backup, time.Hour)
				}
				server := &lagging{system: tc.system, silent: tc.silent, hangs: tc.hangs}
				for _, intervals := range tc.executed {
					server.executed = append(server.executed, transactions(t, uuid+":"+intervals))
				}
				got, began := "", time.Now()
				system, archived, err := a.continued(t.Context(), server)
				if err != nil {
					got = err.Error()
					if backup.ReasonOf(err) != backup.SourceUnreachable {
						t.Errorf("its reason: %s", backup.ReasonOf(err))
					}
				}
				if err == nil && (system != tc.system || archived.String() != tc.archived) {
					t.Errorf("%s\ncontinued(): got system %q, archived %q, want %q, %q", tc.reason, system, archived, tc.system, tc.archived)
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

// TestContinuedUnarchived: where nothing is archived a server has all of it, whatever a backup has. It is archived once there is
// a record, although there are no segments yet.
func TestContinuedUnarchived(t *testing.T) {
	for name, recorded := range map[string]bool{"Unarchived": false, "Recorded": true} {
		t.Run(name, func(t *testing.T) {
			volume := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(24 * time.Hour)
				a := archivingOf(t, volume, &streamed{})
				a.backedUp(t, "541947d5-eac4-11f1-aa87-02fc00000001:1-13", time.Hour)
				var want backup.Reason
				if recorded {
					must(t, a.record(t.Context(), segment.Reached{System: "one"}))
					want = backup.SourceUnreachable
				}
				_, archived, err := a.continued(t.Context(), &lagging{system: "one", executed: []gtid.Set{{}}})
				if (err != nil) != recorded || err != nil && backup.ReasonOf(err) != want || !archived.IsEmpty() {
					t.Errorf("continued(): got %s, %v, want reason %q", archived, err, want)
				}
			})
		})
	}
}

// TestBelongs: a copy of another server than the one that was asked may be of another history, or lack what is archived.
func TestBelongs(t *testing.T) {
	const uuid = "541947d5-eac4-11f1-aa87-02fc00000001"
	lacks := func(n int, what string) string {
		return fmt.Sprintf("the copy lacks transactions that are archived of its data, %d in all: %s:%s. Another server than the one that had them was copied", n, uuid, what)
	}
	for name, tc := range map[string]struct{ system, position, want string }{
		"More":  {system: "one", position: uuid + ":1-12"},
		"All":   {system: "one", position: uuid + ":1-11"},
		"Lacks": {system: "one", position: uuid + ":1-10:12", want: lacks(1, "11")},
		"Empty": {system: "one", want: lacks(11, "1-11")},
		"Other": {system: "two", position: uuid + ":1-12", want: "the copy is of another history of the data than it was to be of: another server became the primary meanwhile, or an older state of the data counts as another history since"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := belongs(&backup.Manifest{System: "one", Position: tc.position}, tc.system, transactions(t, uuid+":1-11")); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("belongs(): -want, +got:\n%s", diff)
			}
		})
	}
}

// TestContinuedParts: data that counts as another history, once a server has lacked what is archived for long, is backed up as
// such.
func TestContinuedParts(t *testing.T) {
	const uuid = "541947d5-eac4-11f1-aa87-02fc00000001"
	volume := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		a := archivingOf(t, volume, &streamed{})
		must(t, a.record(t.Context(), segment.Reached{System: "one", Executed: transactions(t, uuid+":1-12")}))
		began := time.Now()
		server := &lagging{system: "one", executed: []gtid.Set{transactions(t, uuid+":1-11")}}
		time.AfterFunc(a.pace.Part+500*time.Millisecond, func() { server.system = "two" })
		system, archived, err := a.continued(t.Context(), server)
		if err != nil || system != "two" || !archived.IsEmpty() || time.Since(began) != a.pace.Part+catchUpPoll {
			t.Errorf("continued(): %q, %s, %v after %s", system, archived, err, time.Since(began))
		}
	})
}
