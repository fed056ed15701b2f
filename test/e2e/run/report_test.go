package main

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReport(t *testing.T) {
	const orders = "TestCore/a_development_shop/an_order_is_a_row"
	type want struct {
		Out     string
		Details string
	}
	cases := map[string]struct {
		reason string
		events []event
		err    error
		want   want
	}{
		"Passed": {
			reason: "A check is one line with its seconds and notes; what holds checks is none",
			events: []event{
				{Action: "run", Test: orders},
				{Action: "output", Test: orders, Output: "chatter\n"},
				{Action: "attr", Test: orders, Key: "note", Value: "3 orders"},
				{Action: "attr", Test: orders, Key: "other", Value: "unseen"},
				{Action: "pass", Test: orders, Elapsed: 12.34},
				{Action: "pass", Test: "TestCore/a_development_shop", Elapsed: 13},
				{Action: "pass", Test: "TestCore", Elapsed: 13},
			},
			want: want{Out: "ok    12.3s  an order is a row (3 orders)\n1 passed, 0 failed\n"},
		},
		"Failed": {
			reason: "What a failed check printed is a detail",
			events: []event{
				{Action: "output", Test: orders, Output: "=== RUN   x\n"},
				{Action: "output", Test: orders, Output: "    no such row\n"},
				{Action: "fail", Test: orders, Elapsed: 300},
			},
			err:  errors.New("exit status 1"),
			want: want{Out: "FAIL 300.0s  an order is a row\n0 passed, 1 failed\n", Details: "    no such row\n"},
		},
		"Panics": {
			reason: "Go test prints a panic beside the check",
			events: []event{
				{Action: "output", Test: "TestCore", Output: "panic: nil pointer\n"},
				{Action: "fail", Test: orders, Elapsed: 1},
			},
			err:  errors.New("exit status 1"),
			want: want{Out: "FAIL   1.0s  an order is a row\n0 passed, 1 failed\n", Details: "panic: nil pointer\nexit status 1\n"},
		},
		"Skipped": {
			reason: "A check that cannot be made here has not passed; what a filter leaves out is no line",
			events: []event{
				{Action: "attr", Test: orders, Key: "skipped", Value: "it needs the node"},
				{Action: "skip", Test: orders, Elapsed: 0.2},
				{Action: "skip", Test: "TestCore/a_development_shop/another_one"},
			},
			want: want{Out: "skip   0.2s  an order is a row (it needs the node)\n0 passed, 0 failed, 1 skipped\n"},
		},
		"NotBuilt": {
			reason: "Tests that do not compile must not look like none that failed",
			events: []event{{Action: "build-output", Output: "undefined: x\n"}},
			err:    errors.New("exit status 1"),
			want:   want{Out: "FAIL   0.0s  the suite runs to its end\n0 passed, 1 failed\n", Details: "undefined: x\nexit status 1\n"},
		},
		"None": {
			reason: "A filter that fits nothing proves nothing",
			want:   want{Out: "FAIL   0.0s  there is a check to run\n0 passed, 1 failed\n"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out, details bytes.Buffer
			r := &report{out: &out, details: &details}
			for _, e := range tc.events {
				r.add(e)
			}
			r.finish(tc.err)
			got := want{Out: out.String(), Details: details.String()}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nreport: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
