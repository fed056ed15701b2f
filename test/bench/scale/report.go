package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// The marks between which the tables are in a page. The rest of the page is written by hand.
const (
	begin = "<!-- make bench-scale: begin -->\n"
	end   = "<!-- make bench-scale: end -->\n"
)

// report prints the tables, or replaces them in the page.
func (c *cli) report(results []result) error {
	tables := c.tables(results)
	if c.Out == "" {
		fmt.Print(tables)
		return nil
	}
	page, err := os.ReadFile(c.Out)
	if err != nil {
		return fmt.Errorf("cannot read the page for the tables: %w", err)
	}
	page, err = replace(page, tables)
	if err != nil {
		return fmt.Errorf("cannot write into %s: %w", c.Out, err)
	}
	if err := os.WriteFile(c.Out, page, 0o644); err != nil {
		return fmt.Errorf("cannot write the tables: %w", err)
	}
	return nil
}

// replace replaces the text between the marks.
func replace(page []byte, tables string) ([]byte, error) {
	before, rest, ok := bytes.Cut(page, []byte(begin))
	_, after, ended := bytes.Cut(rest, []byte(end))
	if !ok || !ended {
		return nil, fmt.Errorf("it has no lines %q and %q", strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return bytes.Join([][]byte{before, []byte(begin), []byte(tables), []byte(end), after}, nil), nil
}

func (c *cli) tables(results []result) string {
	var s strings.Builder
	fmt.Fprintf(&s, "Release %s, %s, %s, on %s.\n\n", c.Release, time.Now().UTC().Format(time.DateOnly), runtime.Version(), machine())
	s.WriteString("| claims | all Ready after | requests each | Crossplane's | provider's | edit of one, median | 99 % | edit of all | breakers opened |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range results {
		n := float64(r.n)
		fmt.Fprintf(&s, "| %d %s | %.0f s | %.0f | %.0f | %.1f | %v | %v | %.0f s | %.0f |\n", r.n, r.kind.plural, r.ready.Seconds(),
			r.filing.requests/n, r.filing.crossplane/n, r.filing.provider/n, percentile(r.edits, 50), percentile(r.edits, 99), r.all.Seconds(), r.filing.opened)
	}
	fmt.Fprintf(&s, "\nAt rest, over %v:\n\n| claims | applies a minute | %s | together, %% of a core |\n|---|---|%s---|\n", c.Rest, strings.Join(programs, " | "), strings.Repeat("---|", len(programs)))
	for _, r := range results {
		fmt.Fprintf(&s, "| %d %s | %.1f |", r.n, r.kind.plural, r.resting.applies/c.Rest.Minutes())
		for _, p := range programs {
			fmt.Fprintf(&s, " %.1f %%, %.0f MiB |", 100*r.resting.seconds[p]/c.Rest.Seconds(), r.resting.peak[p])
		}
		fmt.Fprintf(&s, " %.1f |\n", 100*own(r.resting)/c.Rest.Seconds())
	}
	s.WriteString("\nMemory is the highest so far of all processes of the program; together are Crossplane, function and provider.\n")
	for _, r := range results {
		if len(r.faults) == 0 {
			continue
		}
		fmt.Fprintf(&s, "\nFaults with %d %s, and then an edit of all:\n\n| fault | all Ready after | breakers open then |\n|---|---|---|\n", r.n, r.kind.plural)
		for _, f := range r.faults {
			fmt.Fprintf(&s, "| %s | %.0f s | %d |\n", f.what, f.took.Seconds(), f.open)
		}
	}
	return s.String()
}

// machine describes the processor of this machine.
func machine() string {
	model := "a processor of unknown model"
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			if name, ok := strings.CutPrefix(line, "model name"); ok {
				model = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(name), ":"))
				break
			}
		}
	}
	return fmt.Sprintf("%d cores of %s", runtime.NumCPU(), model)
}
