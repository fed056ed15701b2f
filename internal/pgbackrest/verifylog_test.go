package pgbackrest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestUnread: what pgBackRest's verify could not read is told apart from what is damaged. The lines
// are as it writes them.
func TestUnread(t *testing.T) {
	cases := map[string]struct {
		reason, line string
		want         *Error
	}{
		"Refused": {reason: "The store refuses.", line: "P00   INFO: invalid result 20261122-180852F/pg_data/PG_VERSION.zst: [41] raised from local-1 protocol: unable to open file '/r/bundle/1' for read: [13] Permission denied",
			want: &Error{Command: "verify", Code: 41, Message: "raised from local-1 protocol: unable to open file '/r/bundle/1' for read: [13] Permission denied"}},
		"Info": {reason: "It refuses a file that describes others.", line: "DETAIL: unable to open file '/r/backup.info' for read: [13] Permission denied",
			want: &Error{Command: "verify", Message: "unable to open file '/r/backup.info' for read: [13] Permission denied"}},
		"Changed":  {reason: "What was read is wrong.", line: "INFO: invalid checksum '20261122-180852F/pg_data/base/1/2655.zst'"},
		"Broken":   {reason: "What was read cannot be decompressed.", line: "INFO: invalid result 20261122-180852F/pg_data/PG_VERSION.zst: [29] raised from local-1 protocol: zst error: [20] Corrupted block detected"},
		"Gone":     {reason: "What is not there is damage too.", line: "DETAIL: unable to open missing file '/r/backup.info' for read"},
		"Range":    {reason: "That is news of the archive.", line: "DETAIL: archiveId: 15-1, wal start: 000000010000000000000500, wal stop: 000000010000000000000502"},
		"Rendered": {reason: "That is its result.", line: "backup: 20261122-180852F, status: invalid, total files checked: 0, total valid files: 0"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, unreadOf(tc.line)); diff != "" {
				t.Errorf("%s\nunreadOf(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
