package run

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/storeplane/storeplane/internal/backup"
)

// TestEncode: any report fits, is valid JSON, and keeps whether the action failed and why.
func TestEncode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := backup.Report{Action: backup.Backup, Started: time.Now(), Finished: time.Now(), Expired: 3}
		if rapid.Bool().Draw(t, "failed") {
			r.Failure = &backup.Failure{Reason: backup.StoreDenied, Message: rapid.StringN(0, 3000, 20000).Draw(t, "message")}
		}
		e := backup.Entry{ID: "20260101T000000Z-abcdef", Time: time.Now(), Size: 1 << 40, Seconds: 1.5, Verified: new(time.Now())}
		r.Backup = &e
		r.Catalog = &backup.Catalog{Count: 1000, Total: 1 << 50, Verified: &e, Oldest: new(time.Now()), Latest: new(time.Now())}
		for range rapid.IntRange(0, 10).Draw(t, "backups") {
			r.Catalog.Backups = append(r.Catalog.Backups, e)
		}
		r.Databases = rapid.SliceOfN(rapid.StringN(1, 63, 252), 0, 100).Draw(t, "databases")
		n := len(r.Catalog.Backups)

		raw := Encode(r)
		var got backup.Report
		if err := json.Unmarshal(raw, &got); err != nil || len(raw) > backup.MaxReport {
			t.Fatalf("%d bytes: %v\n%s", len(raw), err, raw)
		}
		if (got.Failure == nil) != (r.Failure == nil) || r.Failure != nil && got.Failure.Reason != r.Failure.Reason || got.Catalog.Count != 1000 || got.Backup.ID != e.ID {
			t.Errorf("the report lost what matters: %s", raw)
		}
		if len(r.Catalog.Backups) != n {
			t.Errorf("the report itself was changed")
		}
	})
}

func TestSecrets(t *testing.T) {
	s := secrets{}
	s.add("hunter2", "hunter22")
	var log bytes.Buffer
	l := &lines{to: &log, hide: &s}
	for _, part := range []string{"it is hun", "ter2 and ", "hunter22\nlast hunt", "er2"} {
		_, _ = l.Write([]byte(part))
	}
	l.flush()
	if got, want := log.String(), "it is [hidden] and [hidden]\nlast [hidden]\n"; got != want {
		t.Errorf("logged %q and should %q", got, want)
	}
	if r := s.report(backup.Report{Failure: &backup.Failure{Message: "no hunter2"}}); strings.Contains(r.Failure.Message, "hunter2") {
		t.Errorf("reported %q", r.Failure.Message)
	}
}

func TestExitCode(t *testing.T) {
	cases := map[string]struct {
		reason string
		report backup.Report
		want   int
	}{
		"Success":   {reason: "All was done.", want: backup.ExitSuccess},
		"Transient": {reason: "Trying again may help.", report: backup.Report{Failure: &backup.Failure{Reason: backup.StoreUnreachable}}, want: backup.ExitFailure},
		"Permanent": {reason: "Trying again is of no use.", report: backup.Report{Failure: &backup.Failure{Reason: backup.StoreDenied}}, want: backup.ExitPermanent},
		"Made": {
			reason: "The backup was made: trying again would make another one.",
			report: backup.Report{Action: backup.Backup, Backup: &backup.Entry{}, Failure: &backup.Failure{Reason: backup.StoreUnreachable}}, want: backup.ExitPermanent,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := exitCode(tc.report); got != tc.want {
				t.Errorf("%s: code %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}
