package pgbackrest

import (
	"os/exec"
	"testing"
)

func TestMessage(t *testing.T) {
	cases := map[string]struct{ reason, said, want string }{
		"One":     {reason: "The number before it says nothing.", said: "ERROR: [055]: unable to load info file\n", want: "unable to load info file"},
		"First":   {reason: "Later ones follow from the first.", said: "WARN: slow\nERROR: [039]: it broke\nERROR: [055]: unable to load\n", want: "it broke"},
		"Process": {reason: "Which process it was, and how often it tried, is another each time.", said: "ERROR: [045]: raised from local-2 protocol: WAL file 'x' already exists\n       [ArchiveDuplicateError] on retry after 0ms: WAL file 'x' already exists\n", want: "WAL file 'x' already exists"},
		"Nothing": {reason: "It may end without a word.", want: "it ended with exit status 3"},
	}
	exit := &exec.ExitError{}
	ended := exec.CommandContext(t.Context(), "sh", "-c", "exit 3").Run()
	if e, ok := ended.(*exec.ExitError); ok { //nolint:errorlint // it is not wrapped
		exit = e
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := message(tc.said, exit); got != tc.want {
				t.Errorf("%s\nmessage(): want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}
