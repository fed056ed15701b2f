package physical

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/pgbackrest"
)

// TestPackStandby: a standby that answers and does not follow the primary fails no backup.
func TestPackStandby(t *testing.T) {
	cases := map[string]struct {
		reason  string
		code    int
		message string
		calls   []string
		fails   bool
	}{
		"Behind": {
			reason: "It replays nothing more.", code: 82,
			message: "timeout before standby replayed to 0/69000130 - only reached 0/690000A0",
			calls:   []string{"standby", "primary"},
		},
		"Timeline": {
			reason: "It is on another branch.", code: 58, message: "standby is on timeline 3 but expected 4",
			calls: []string{"standby", "primary"},
		},
		"Archive": {
			reason: "That WAL is not archived has nothing to do with standbys.", code: 82,
			message: "WAL segment 000000010000000000000002 was not archived before the 60000ms timeout",
			calls:   []string{"standby"}, fails: true,
		},
		"Store": {
			reason: "Nor has a store that is away.", code: 49, message: "unable to connect to 's3:443': [111] Connection refused",
			calls: []string{"standby"}, fails: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			calls := filepath.Join(dir, "calls")
			script := fmt.Sprintf("#!/bin/sh\ncase \"$*\" in\n*--backup-standby*) echo standby >>%s; echo \"ERROR: [%03d]: %s\" >&2; exit %d;;\nesac\necho primary >>%s\n", calls, tc.code, tc.message, tc.code, calls)
			if err := os.WriteFile(filepath.Join(dir, pgbackrest.Program), []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
			j := &job{
				task: backup.Task{Stanza: "orders", Destination: backupv1.Destination{Type: backupv1.S3}},
				tool: pgbackrest.Tool{ConfigFile: "none"}, log: testLog{t}, places: places{path: dir},
			}
			err := j.pack(t.Context(), []string{"--type=full", fromStandby, "--start-fast"})
			if (err != nil) != tc.fails {
				t.Errorf("%s\nwant an error: %t, got %v", tc.reason, tc.fails, err)
			}
			got, _ := os.ReadFile(calls)
			if diff := cmp.Diff(tc.calls, strings.Fields(string(got))); diff != "" {
				t.Errorf("%s\nwhat is read: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
