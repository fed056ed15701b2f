package main

import (
	"fmt"
	"io"
	"strings"
)

// event is an event that go test -json prints: see go doc test2json.
type event struct {
	Action  string  `json:"Action"`
	Test    string  `json:"Test"`
	Elapsed float64 `json:"Elapsed"`
	Output  string  `json:"Output"`
	Key     string  `json:"Key"`
	Value   string  `json:"Value"`
}

// report prints one line for each check.
type report struct {
	out, details            io.Writer
	passed, failed, skipped int

	// mute is true if a check failed without output: go test attributes the output of a panic to
	// another test.
	mute bool

	// By the name of the test: its notes, the reasons why it was skipped, and its output.
	notes, reasons, output map[string][]string
}

// add handles an event. A check is the third level of a test: the levels above are the suite and
// the feature.
func (r *report) add(e event) {
	parts := strings.Split(e.Test, "/")
	switch e.Action {
	case "attr":
		switch e.Key {
		case "note":
			r.keep(&r.notes, e.Test, e.Value)
		case "skipped":
			r.keep(&r.reasons, e.Test, e.Value)
		}
	case "output", "build-output":
		r.keep(&r.output, e.Test, e.Output)
	case "pass":
		if len(parts) == 3 {
			r.passed++
			r.line("ok  ", e)
		}
	case "skip":
		// Skipped tests without a reason are those that a filter leaves out.
		if reasons := r.reasons[e.Test]; len(parts) == 3 && len(reasons) > 0 {
			r.skipped++
			r.keep(&r.notes, e.Test, strings.Join(reasons, "; "))
			r.line("skip", e)
		}
	case "fail":
		if len(parts) != 3 {
			return
		}
		r.failed++
		r.line("FAIL", e)
		if !r.explain(e.Test) {
			r.mute = true
		}
	}
}

func (r *report) keep(in *map[string][]string, test, text string) {
	if *in == nil {
		*in = map[string][]string{}
	}
	(*in)[test] = append((*in)[test], text)
}

func (r *report) line(verdict string, e event) {
	_, name, _ := strings.Cut(e.Test, "/")
	_, name, _ = strings.Cut(name, "/")
	text := fmt.Sprintf("%s %5.1fs  %s", verdict, e.Elapsed, strings.ReplaceAll(name, "_", " "))
	if notes := r.notes[e.Test]; len(notes) > 0 {
		text += " (" + strings.Join(notes, "; ") + ")"
	}
	fmt.Fprintln(r.out, text)
}

// explain prints the output of a test without the marks of go test, and reports whether there was
// any.
func (r *report) explain(test string) (printed bool) {
	for _, o := range r.output[test] {
		if t := strings.TrimSpace(o); strings.HasPrefix(t, "===") || strings.HasPrefix(t, "---") {
			continue
		}
		fmt.Fprint(r.details, o)
		printed = true
	}
	return printed
}

// finish prints the totals. An error of the whole run counts as a failure if no check failed, so
// that a broken run never looks like one that passed.
func (r *report) finish(err error) {
	if err != nil && r.failed == 0 {
		r.failed++
		r.mute = true
		fmt.Fprintln(r.out, "FAIL   0.0s  the suite runs to its end")
	}
	if err != nil && r.mute {
		for test := range r.output {
			if strings.Count(test, "/") < 2 {
				r.explain(test)
			}
		}
		fmt.Fprintln(r.details, err)
	}
	if r.passed+r.failed+r.skipped == 0 {
		r.failed++
		fmt.Fprintln(r.out, "FAIL   0.0s  there is a check to run")
	}
	totals := fmt.Sprintf("%d passed, %d failed", r.passed, r.failed)
	if r.skipped > 0 {
		totals += fmt.Sprintf(", %d skipped", r.skipped)
	}
	fmt.Fprintln(r.out, totals)
}
