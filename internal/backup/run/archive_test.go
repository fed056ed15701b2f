package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/segment"
	"github.com/storeplane/storeplane/internal/gtid"
)

// A streamed is a primary whose binary logs come from a function.
type streamed struct {
	primary

	stream   func(ctx context.Context, folder string, without gtid.Set) error
	executed gtid.Set
	err      error
}

func (s *streamed) Now(context.Context) (time.Time, error)     { return time.Now(), s.err }
func (s *streamed) Executed(context.Context) (gtid.Set, error) { return s.executed, s.err }
func (s *streamed) IsPrimary(context.Context) error            { return s.err }
func (s *streamed) Stream(ctx context.Context, folder string, without gtid.Set) error {
	return s.stream(ctx, folder, without)
}

var errInterrupted = backup.Errorf(backup.Interrupted, "the tool was interrupted")

// archivingOf returns an archiver of a primary, whose store is a volume, and which asks the primary nothing.
func archivingOf(t *testing.T, volume string, from primary) *archiver {
	t.Helper()
	j := binaryLogs(t, volume, time.Now)
	j.Scratch, j.Sync = t.TempDir(), func(string) error { return nil }
	must(t, j.open(t.Context()))
	a := &archiver{job: j, pace: pace, system: "one", say: func(Archived) {}, source: from}
	a.pace.Cut, a.pace.Compare = time.Hour, time.Hour
	return a
}

// threeTransactions is a binary log with three transactions.
func threeTransactions(t *testing.T) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "binlog", "testdata", "rows"))
	must(t, err)
	return content
}

// away replaces the folder of a volume by what is none, and returns what brings it back.
func away(t *testing.T, volume string) (back func()) {
	t.Helper()
	must(t, os.RemoveAll(volume))
	must(t, os.WriteFile(volume, nil, 0o600))
	return func() {
		if err := errors.Join(os.Remove(volume), os.Mkdir(volume, 0o700)); err != nil {
			t.Error(err)
		}
	}
}

// TestFlush: what was received whole is in the store once a session has ended, however it did.
func TestFlush(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string

		// asked is the error of the primary when it is asked, and ends is when it ends the stream. The store is away for
		// some time, and the pod is stopped after some.
		asked         error
		ends          time.Duration
		away, stopped time.Duration
		want          int
		within        time.Duration
	}{
		"Primary":    {reason: "The primary answers nothing any more.", asked: errors.New("it is gone"), want: 1, within: 10 * time.Second},
		"Connection": {reason: "The connection is lost.", ends: 3 * time.Second, want: 1, within: 10 * time.Second},
		"Store":      {reason: "The connection is lost while the store is away.", ends: 3 * time.Second, away: time.Hour, want: 1, within: time.Hour + 10*time.Second},
		"Both":       {reason: "The primary answers nothing any more while the store is away.", asked: errors.New("it is gone"), away: time.Hour, want: 1, within: time.Hour + 10*time.Second},
		"Stopped":    {reason: "The pod is stopped, and the store is back in time.", away: 30 * time.Second, stopped: 10 * time.Second, want: 1, within: 40 * time.Second},
		"Killed":     {reason: "The pod is stopped, and has to end.", away: time.Hour, stopped: 10 * time.Second, want: 0, within: 10*time.Second + cleanUpWithin},
	} {
		t.Run(name, func(t *testing.T) {
			content, volume := threeTransactions(t), filepath.Join(t.TempDir(), "volume")
			must(t, os.Mkdir(volume, 0o700))
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				a := archivingOf(t, volume, &streamed{err: tc.asked, stream: func(ctx context.Context, folder string, _ gtid.Set) error {
					// The last transaction is not whole.
					if err := os.WriteFile(filepath.Join(folder, "binlog.000003"), content[:700], 0o600); err != nil {
						return err
					}
					if tc.ends > 0 {
						return wait(ctx, tc.ends)
					}
					<-ctx.Done()
					return errInterrupted
				}})
				if tc.asked == nil {
					a.compared = time.Now()
				}
				if tc.away > 0 {
					back := away(t, volume)
					time.AfterFunc(tc.away, back)
				}
				ctx := t.Context()
				if tc.stopped > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tc.stopped)
					defer cancel()
				}
				if err := a.archive(ctx); err == nil {
					t.Errorf("%s\narchive(): want why it has ended", tc.reason)
				}
				if took := time.Since(began); took > tc.within {
					t.Errorf("%s\narchive() took %s, want %s at most", tc.reason, took, tc.within)
				}
				if tc.want == 0 {
					return
				}
				l, err := a.store.List(t.Context())
				must(t, err)
				if len(l.Good()) != tc.want || a.have.Len() != 2 {
					t.Errorf("%s\nwant %d segments with two transactions, got %d, and archived are %s", tc.reason, tc.want, len(l.Good()), a.have)
				}
			})
		})
	}
}

// TestLarge: a transaction is archived although it is larger than what is held else, and one that is too large is skipped.
func TestLarge(t *testing.T) {
	const uuid = "541947d5-eac4-11f1-aa87-02fc00000001"
	// The head of the file has 198 bytes, and the transactions that follow 276, 194 and 275.
	const head = 198
	ends := []int{head, 474, 668, 943}
	for name, tc := range map[string]struct {
		reason        string
		held, largest int64
		whole         bool
		archived      string
		missing       string
	}{
		"Large":    {reason: "It is received whole.", held: 210, largest: 300, archived: uuid + ":9-11"},
		"TooLarge": {reason: "It is skipped, and what follows is archived.", held: 210, largest: 200, archived: uuid + ":10", missing: uuid + ":9:11"},
		"Small":    {reason: "One that has arrived is archived, whatever its size is.", held: 1000, largest: 100, whole: true, archived: uuid + ":9-11"},
	} {
		t.Run(name, func(t *testing.T) {
			content, volume := threeTransactions(t), t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				// A transaction arrives in two parts. The second one comes some time later.
				a := archivingOf(t, volume, &streamed{stream: func(ctx context.Context, folder string, without gtid.Set) error {
					f, err := os.Create(filepath.Join(folder, "binlog.000003"))
					if err != nil {
						return err
					}
					defer func() { _ = f.Close() }()
					if _, err := f.Write(content[:head]); err != nil {
						return err
					}
					for i, number := range []string{"9", "10", "11"} {
						if without.Contains(transactions(t, uuid+":"+number)) {
							continue
						}
						tx := content[ends[i]:ends[i+1]]
						part := len(tx) - 1
						if tc.whole {
							part = len(tx)
						}
						if _, err := f.Write(tx[:part]); err != nil {
							return err
						}
						if wait(ctx, 3*archivePoll) != nil {
							return errInterrupted
						}
						if _, err := f.Write(tx[part:]); err != nil {
							return err
						}
					}
					return wait(ctx, 3*archivePoll)
				}})
				a.pace.Held, a.pace.Largest, a.compared = tc.held, tc.largest, time.Now()
				for range 10 {
					if err := a.archive(t.Context()); errors.Is(err, errEnded) {
						break
					}
				}
				var archived gtid.Set
				l, err := a.store.List(t.Context())
				must(t, err)
				for _, item := range l.Good() {
					archived = archived.Union(transactions(t, item.Manifest.Position))
				}
				if diff := cmp.Diff([]string{tc.archived, tc.missing}, []string{archived.String(), a.state.Missing.String()}); diff != "" {
					t.Errorf("%s\narchived and missing: -want, +got:\n%s", tc.reason, diff)
				}
			})
		})
	}
}

// TestLose: while a gap is open the newest time that can be restored to is that of the last transaction before it, whatever
// is archived and lost after it.
func TestLose(t *testing.T) {
	const uuid = "541947d5-eac4-11f1-aa87-02fc00000001"
	at := func(minute int) time.Time { return time.Date(2026, 11, 30, 10, minute, 0, 0, time.UTC) }
	missing, ended := transactions(t, uuid+":9"), transactions(t, uuid+":5")
	for name, tc := range map[string]struct {
		reason string
		state  Archived
		want   time.Time
	}{
		"First":  {reason: "That nothing was committed until 10:19 is not known to a restore any more.", state: Archived{Until: at(19)}, want: at(18)},
		"Second": {reason: "A restore gets no further than the first one.", state: Archived{Until: at(19), Missing: missing, Before: at(1)}, want: at(1)},
		"Known":  {reason: "That of the first one is not known.", state: Archived{Until: at(19), Missing: missing}},
		"Ended":  {reason: "A backup has the first one.", state: Archived{Until: at(19), Missing: ended, Before: at(1), Ended: at(5)}, want: at(18)},
	} {
		t.Run(name, func(t *testing.T) {
			a := archivingOf(t, t.TempDir(), &streamed{})
			a.state = tc.state
			a.extend(segment.Segment{Last: at(18)})
			a.extend(segment.Segment{Last: at(17)})
			a.lose(transactions(t, uuid+":11"), a.last)
			if !a.state.Before.Equal(tc.want) || !a.state.Ended.IsZero() || !a.state.Missing.Contains(transactions(t, uuid+":11")) {
				t.Errorf("%s\nlose(): want the time %s before an open gap, got %s, ended %s, missing %s", tc.reason, tc.want, a.state.Before, a.state.Ended, a.state.Missing)
			}
		})
	}
}

// backedUp completes a backup with some transactions, which was made some time ago, and returns when. In a bubble of synctest a
// day has to pass before: no backup has an id of before 2000.
func (a *archiver) backedUp(t *testing.T, position string, ago time.Duration) time.Time {
	t.Helper()
	copies, err := a.storeOf(t.Context(), backupv1.Physical)
	must(t, err)
	defer func() { _ = copies.Close() }()
	made := time.Now().Add(-ago).UTC().Truncate(time.Second)
	of := *a.job
	of.store = copies
	must(t, of.complete(t.Context(), &backup.Manifest{Version: backup.ManifestVersion, ID: backup.NewID(made), Engine: backupv1.MySQL, Method: backupv1.Physical, System: "one", Position: position, Started: made, Finished: made}))
	return made
}

// TestBackedUp: a backup of an older state takes nothing of what an earlier one has out of the history.
func TestBackedUp(t *testing.T) {
	const one, two = "541947d5-eac4-11f1-aa87-02fc00000001", "641947d5-eac4-11f1-aa87-02fc00000001"
	volume := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(24 * time.Hour)
		a := archivingOf(t, volume, &streamed{})
		a.have, a.known = transactions(t, one+":1-10"), true
		a.backedUp(t, one+":1-20", 2*time.Hour)
		must(t, a.look(t.Context()))
		older := one + ":1-15," + two + ":1-3"
		a.backedUp(t, older, time.Hour)
		time.Sleep(2 * a.pace.Look)
		must(t, a.look(t.Context()))
		if err := a.continues("a", transactions(t, older)); err == nil {
			t.Error("continues() of data that lacks what the first backup has: want an error")
		}
		again := &archiver{job: a.job, pace: pace, system: "one", have: transactions(t, one+":1-10"), known: true}
		must(t, again.look(t.Context()))
		if err := again.continues("a", transactions(t, older)); err == nil {
			t.Error("continues() of a program that has started since: want an error")
		}
	})
}

// TestGaps: what is lost at the end of the archive is a gap unless a backup has it, and after another one among the segments
// it is not known to which time a restore gets.
func TestGaps(t *testing.T) {
	const uuid = "541947d5-eac4-11f1-aa87-02fc00000001"
	for name, tc := range map[string]struct {
		reason   string
		backup   string
		purged   string
		missing  string
		ended    bool
		reported bool
	}{
		"None":   {reason: "All is archived that is in no binary log any more.", backup: "1-8", purged: "1-11"},
		"End":    {reason: "A restore gets to the last transaction of the segments.", backup: "1-8", purged: "1-20", missing: uuid + ":12-20", reported: true},
		"Middle": {reason: "It does not get past the first gap.", backup: "1-5", purged: "1-20", missing: uuid + ":6-8:12-20"},
		"Backup": {reason: "Nothing needs another backup.", backup: "1-30", purged: "1-20", missing: uuid + ":12-20", ended: true, reported: true},
	} {
		t.Run(name, func(t *testing.T) {
			a := archivingOf(t, t.TempDir(), &streamed{})
			received := t.TempDir()
			write(t, received, map[string]string{"binlog.000003": string(threeTransactions(t))})
			a.have, a.known = transactions(t, uuid+":1-8"), true
			must(t, a.read(t.Context(), received, true))
			made := a.backedUp(t, uuid+":"+tc.backup, time.Hour)
			must(t, a.gaps(t.Context(), transactions(t, uuid+":"+tc.purged)))
			if got := a.state.Missing.String(); got != tc.missing || a.state.Ended.Equal(made) != tc.ended || a.state.Before.IsZero() == tc.reported {
				t.Errorf("%s\ngaps(): missing %q, want %q; ended %s, want one: %t; before %s, want one: %t", tc.reason, got, tc.missing, a.state.Ended, tc.ended, a.state.Before, tc.reported)
			}
		})
	}
}

// TestLack: servers that lack what is archived for a short time each, again and again, do it for too long in all. Time in
// which they cannot be asked does not count.
func TestLack(t *testing.T) {
	at := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	var l lack
	for range 10 {
		l.add("a", at)
		at = at.Add(10 * time.Second)
	}
	if want := (lack{server: "a", asked: at.Add(-10 * time.Second), present: 90 * time.Second, all: 90 * time.Second}); l != want {
		t.Errorf("a server that was asked for 90 s: got %+v, want %+v", l, want)
	}
	at = at.Add(time.Hour)
	l.add("a", at)
	if l.present != 150*time.Second || l.all != 150*time.Second {
		t.Errorf("it could not be asked for an hour: got %+v", l)
	}
	for i := range 20 {
		l.add(strconv.Itoa(i), at)
		l.add(strconv.Itoa(i), at.Add(time.Minute))
		at = at.Add(time.Hour)
	}
	if l.present != time.Minute || l.all != 150*time.Second+20*time.Minute {
		t.Errorf("others were for a minute each: got %+v", l)
	}
}

// TestContinuesAtLast: servers that start again and again do not keep data in an older state from being another history.
func TestContinuesAtLast(t *testing.T) {
	const one = "541947d5-eac4-11f1-aa87-02fc00000001:"
	synctest.Test(t, func(t *testing.T) {
		a := &archiver{pace: pace, have: transactions(t, one+"1-20")}
		began := time.Now()
		for i := 0; !a.state.Parted && i < 20; i++ {
			for range 24 {
				_ = a.continues(strconv.Itoa(i), transactions(t, one+"1-10"))
				time.Sleep(10 * time.Second)
				if a.state.Parted {
					break
				}
			}
		}
		if took := time.Since(began); !a.state.Parted || took < partAtLast*partAfter || took > partAtLast*partAfter+5*time.Minute {
			t.Errorf("it counts as another history (%t) after %s", a.state.Parted, took)
		}
	})
}

// TestCompareBackup: a backup that has what the primary lacks, and was completed while its binary logs are archived, ends
// that.
func TestCompareBackup(t *testing.T) {
	const uuid = "541947d5-eac4-11f1-aa87-02fc00000001"
	volume := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(24 * time.Hour)
		server := &streamed{executed: transactions(t, uuid+":1-10")}
		a := archivingOf(t, volume, server)
		a.pace, a.have, a.known = pace, server.executed, true
		compare := func() error {
			for range 3 {
				time.Sleep(a.pace.Hold)
				if err := a.compare(t.Context()); err != nil {
					return err
				}
			}
			return nil
		}
		must(t, compare())
		a.backedUp(t, uuid+":1-12", time.Hour)
		time.Sleep(2 * a.pace.Look)
		if err := compare(); backup.ReasonOf(err) != backup.SourceUnreachable {
			t.Errorf("compare(): %v", err)
		}
	})
}

// TestSlow: a server that sends a transaction slowly has not stopped to send.
func TestSlow(t *testing.T) {
	const id = "541947d5-eac4-11f1-aa87-02fc00000001:9"
	content, volume := threeTransactions(t)[:474], t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		a := archivingOf(t, volume, &streamed{executed: transactions(t, id), stream: func(ctx context.Context, folder string, _ gtid.Set) error {
			f, err := os.Create(filepath.Join(folder, "binlog.000003"))
			if err != nil {
				return err
			}
			defer func() { _ = f.Close() }()
			if _, err := f.Write(content[:300]); err != nil {
				return err
			}
			for part := range slices.Chunk(content[300:], 30) {
				if _, err := f.Write(part); err != nil {
					return err
				}
				if wait(ctx, time.Minute) != nil {
					return errInterrupted
				}
			}
			return nil
		}})
		a.pace = pace
		if err := a.archive(t.Context()); !errors.Is(err, errEnded) {
			t.Errorf("archive(): want %v, got %v", errEnded, err)
		}
		if got := a.have.String(); got != id {
			t.Errorf("archived: want %s, got %q", id, got)
		}
	})
}

// TestContinues: what a primary writes is archived only if it has all that is archived already. One that lacks something for
// long has an older state of the data, of which another history begins.
func TestContinues(t *testing.T) {
	set := func(text string) gtid.Set {
		s, err := gtid.Parse(text)
		must(t, err)
		return s
	}
	const one, two = "3e11fa47-71ca-11e1-9e33-c80aa9429562:", "4e11fa47-71ca-11e1-9e33-c80aa9429562:"
	const lacks = "the primary lacks transactions that are archived, 10 in all: if it still does after 5 minutes, its data counts as another history"
	synctest.Test(t, func(t *testing.T) {
		for _, a := range []*archiver{
			{pace: pace, have: set(one + "1-10"), newestHas: set(one + "1-20")},
			{pace: pace, have: set(one + "1-10"), had: set(one + "1-20")},
		} {
			if err := a.continues("a", set(one+"1-10,"+two+"1-3")); err == nil || err.Error() != lacks {
				t.Errorf("Segments may have expired, and the newest backup and the record have more.\ncontinues(): got %v, want %q", err, lacks)
			}
		}
		a := &archiver{pace: pace, have: set(one + "1-20")}
		server, executed := "a", set(one+"1-20")
		for _, step := range []struct {
			reason   string
			after    time.Duration
			server   string
			executed string
			want     string
			parted   bool

			// unasked is true if nothing is asked before.
			unasked bool
		}{
			{reason: "It has all, and more.", executed: one + "1-25," + two + "1-3"},
			{reason: "Another primary has still to execute what it has received.", executed: one + "1-10", want: lacks},
			{reason: "It has.", after: time.Minute, executed: one + "1-20"},
			{reason: "An older state of a volume leads, and writes.", after: time.Hour, executed: one + "1-10," + two + "1-3", want: lacks},
			{reason: "It may still execute more.", after: 4 * time.Minute, executed: one + "1-10," + two + "1-30", want: lacks},
			{reason: "Another server leads, and has its own time.", after: 30 * time.Second, server: "b", executed: one + "1-10," + two + "1-35", want: lacks},
			{reason: "So has the one of before.", after: 4 * time.Minute, executed: one + "1-10," + two + "1-30", want: lacks},
			{reason: "It may still execute more.", after: 4 * time.Minute, executed: one + "1-10," + two + "1-30", want: lacks},
			{reason: "It does not.", after: time.Minute, executed: one + "1-10," + two + "1-40", want: lacks, parted: true},
			{reason: "It has all.", after: time.Minute, executed: one + "1-20"},
			{reason: "It starts again and again, each time with another name.", server: "1", executed: one + "1-10", want: lacks},
			{reason: "It has.", after: 4 * time.Minute, server: "2", executed: one + "1-10", want: lacks},
			{reason: "Nothing is known of the servers for long.", after: 2 * time.Hour, unasked: true, server: "3", executed: one + "1-10", want: lacks},
			{reason: "Another one has its time, too.", after: time.Second, server: "4", executed: one + "1-10", want: lacks},
		} {
			for range step.after / (30 * time.Second) {
				time.Sleep(30 * time.Second)
				if !step.unasked {
					_ = a.continues(server, executed)
				}
			}
			server, executed = "a", set(step.executed)
			if step.server != "" {
				server = step.server
			}
			got := ""
			if err := a.continues(server, executed); err != nil {
				got = err.Error()
			}
			if got != step.want || a.state.Parted != step.parted {
				t.Errorf("%s\ncontinues(): got %q, %t, want %q, %t", step.reason, got, a.state.Parted, step.want, step.parted)
			}
		}
	})
}
