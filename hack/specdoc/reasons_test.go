package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadReasons(t *testing.T) {
	cases := map[string]struct {
		reason string
		code   string
		want   []reason
		err    string
	}{
		"Sorted": {
			reason: "Rows are in alphabetical order, and wrapped lines are one sentence.",
			code: `const (
	// ReasonReady means that all
	// is well.
	// +storeplane:of=Backup: Ready
	// +storeplane:of=Restore: event
	ReasonReady = "Ready"

	// ReasonFailed means that a part failed: read the message.
	// +storeplane:of=WebApp: event
	ReasonFailed = "Failed"
)`,
			want: []reason{
				{value: "Failed", of: "WebApp: event", meaning: "A part failed: read the message"},
				{value: "Ready", of: "Backup: Ready; Restore: event", meaning: "All is well"},
			},
		},
		"Name": {
			reason: "A constant is found by its value.",
			code:   "// ReasonReady means that all is well.\n// +storeplane:of=Backup: Ready\nconst ReasonReady = \"Good\"",
			err:    "the constant of reason Good is called ReasonReady: call it ReasonGood",
		},
		"Sentence": {
			reason: "A meaning is one sentence.",
			code:   "const (\n// ReasonReady is good\n// +storeplane:of=Backup: Ready\nReasonReady = \"Ready\"\n)",
			err:    `the comment of ReasonReady is no sentence that begins with "ReasonReady means that"`,
		},
		"Of": {
			reason: "Readers look for the kind.",
			code:   "const (\n// ReasonReady means that all is well.\nReasonReady = \"Ready\"\n)",
			err:    "the comment of ReasonReady does not name the conditions and events: add a line +storeplane:of=Kind: Condition, event",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "reasons.go")
			if err := os.WriteFile(path, []byte("package v1\n\n"+tc.code), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := readReasons(path)
			wantErr := ""
			if tc.err != "" {
				wantErr = "cannot read " + path + ": " + tc.err
			}
			gotErr := ""
			if err != nil {
				gotErr = err.Error()
			}
			if diff := cmp.Diff(wantErr, gotErr); diff != "" {
				t.Errorf("%s\nreadReasons(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(reason{})); diff != "" {
				t.Errorf("%s\nreadReasons(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
