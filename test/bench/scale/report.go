package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// The marks between which the tables are in a page. The rest of the page is written by hand.
const (
	begin = "<!-- make bench-scale: begin -->\n"
	end   = "<!-- make bench-scale: end -->\n"
)

// report prints the tables of what has been measured so far, or writes them into the page. If no claims were composed there are
// no tables, and those of the page stay.
func (c *cli) report(results []result) error {
	if !slices.ContainsFunc(results, func(r result) bool { return r.ready > 0 }) {
		fmt.Print(restores(results))
		return nil
	}
	tables := c.tables(results)
	if c.Out == "" {
		fmt.Print(tables)
		return nil
	}
	page, err := os.ReadFile(c.Out)
	if err != nil {
		return fmt.Errorf("cannot read the page for the tables: %w", err)
	}
	page, err = replace(page, c.Release, tables)
	if err != nil {
		return fmt.Errorf("cannot write into %s: %w", c.Out, err)
	}
	if err := os.WriteFile(c.Out, page, 0o644); err != nil {
		return fmt.Errorf("cannot write the tables: %w", err)
	}
	return nil
}

// heading begins the section of a release.
func heading(release string) string { return "### Release " + release + "\n" }

// replace writes the tables of a release between the marks: in place of that release's own, or else
// before those of other releases.
func replace(page []byte, release, tables string) ([]byte, error) {
	before, rest, ok := strings.Cut(string(page), begin)
	kept, after, ended := strings.Cut(rest, end)
	if !ok || !ended {
		return nil, fmt.Errorf("it has no lines %q and %q", strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	const section = "### "
	old := strings.Split("\n"+kept, "\n"+section)[1:]
	sections, found := []string{}, false
	for _, s := range old {
		s = section + strings.TrimSuffix(s, "\n") + "\n"
		if strings.HasPrefix(s, heading(release)) {
			s, found = tables, true
		}
		sections = append(sections, s)
	}
	if !found {
		sections = append([]string{tables}, sections...)
	}
	return []byte(before + begin + strings.Join(sections, "\n") + end + after), nil
}

func (c *cli) tables(results []result) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s\n%s, %s, on %s.\n\n", heading(c.Release), time.Now().UTC().Format(time.DateOnly), runtime.Version(), machine())
	s.WriteString("| claims | all Ready after | requests each | Crossplane's | provider's | edit of one, median | 99 % | edit of all | breakers opened |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range results {
		if r.ready == 0 {
			continue // They were not composed.
		}
		n := float64(r.n)
		fmt.Fprintf(&s, "| %d %s | %.0f s | %.0f | %.0f | %.1f | %s | %s | %s | %.0f |\n", r.n, r.kind.plural, r.ready.Seconds(),
			r.filing.requests/n, r.filing.crossplane/n, r.filing.provider/n, measured(percentile(r.edits, 50)), measured(percentile(r.edits, 99)), measured(r.all.Round(time.Second)), r.filing.opened)
	}
	later := ""
	if c.Steady > 0 {
		later = fmt.Sprintf(", and later, over %v once claims have rested for %v", c.Steady, settledAfter)
	}
	fmt.Fprintf(&s, "\nProcessor time, %% of a core, over %v at rest%s:\n\n| claims | applies a minute | %s | together |\n|---|---|%s---|\n", c.Rest, later, strings.Join(programs, " | "), strings.Repeat("---|", len(programs)))
	for _, r := range results {
		for _, at := range []struct {
			of   *usage
			over time.Duration
			name string
		}{{&r.resting, c.Rest, ""}, {r.steady, c.Steady, ", later"}} {
			if at.of == nil || at.of.seconds == nil {
				continue
			}
			fmt.Fprintf(&s, "| %d %s%s | %.1f |", r.n, r.kind.plural, at.name, at.of.applies/at.over.Minutes())
			for _, p := range programs {
				fmt.Fprintf(&s, " %.1f |", 100*at.of.seconds[p]/at.over.Seconds())
			}
			fmt.Fprintf(&s, " %.1f |\n", 100*own(*at.of)/at.over.Seconds())
		}
	}
	s.WriteString("\nTogether are Crossplane, function and provider.\n")
	fmt.Fprintf(&s, "\nProcessor time until all are Ready, and the most memory until all are edited, of all processes of a program:\n\n| claims | %s |\n|---|%s\n", strings.Join(programs, " | "), strings.Repeat("---|", len(programs)))
	for _, r := range results {
		if r.most.peak == nil {
			continue
		}
		fmt.Fprintf(&s, "| %d %s |", r.n, r.kind.plural)
		for _, p := range programs {
			fmt.Fprintf(&s, " %.0f s, %.0f MiB |", r.filing.seconds[p], r.most.peak[p])
		}
		s.WriteString("\n")
	}
	for _, r := range results {
		if len(r.faults) == 0 {
			continue
		}
		fmt.Fprintf(&s, "\nFaults with %d %s, and then an edit of all:\n\n| fault | all Ready after | stuck | breakers open then |\n|---|---|---|---|\n", r.n, r.kind.plural)
		for _, f := range r.faults {
			fmt.Fprintf(&s, "| %s | %.0f s | %d | %d |\n", f.what, f.took.Seconds(), f.stuck, f.open)
		}
	}
	s.WriteString(restores(results))
	return s.String()
}

// restores returns how long Restores take to begin.
func restores(results []result) string {
	var s strings.Builder
	for _, r := range results {
		if r.restored != nil {
			without := ""
			if r.ready == 0 {
				without = ", of which only what the provider watches was created, without Crossplane,"
			}
			fmt.Fprintf(&s, "\nWith %d Backups and %d %s%s a Restore that is created right after a change of the provider's leader begins after %.1f s (median of %d) to %.1f s (the longest).\n",
				r.restored.backups, r.n, r.kind.plural, without, percentile(r.restored.took, 50).Seconds(), len(r.restored.took), percentile(r.restored.took, 100).Seconds())
		}
	}
	return s.String()
}

// measured writes a time, or that it was not measured.
func measured(d time.Duration) string {
	if d == 0 {
		return "–"
	}
	return d.String()
}

// missed returns the targets that results miss.
func missed(results []result, rest, steady time.Duration) []string {
	var out []string
	miss := func(r *result, ok bool, format string, args ...any) {
		if !ok {
			out = append(out, fmt.Sprintf("%d %s: ", r.n, r.kind.plural)+fmt.Sprintf(format, args...))
		}
	}
	for i := range results {
		r := &results[i]
		switch {
		case r.kind.name == webApps.name && r.n == 1000:
			miss(r, r.ready <= 8*time.Minute, "all Ready after %.0f s, and not within 480 s", r.ready.Seconds())
			miss(r, percentile(r.edits, 99) <= 2*time.Second, "99 %% of the edits of one are applied after %v, and not within 2 s", percentile(r.edits, 99))
			miss(r, own(r.resting) <= rest.Seconds()/10, "%.1f %% of a core at rest, and not 10 %%", 100*own(r.resting)/rest.Seconds())
			if r.steady != nil {
				miss(r, own(*r.steady) <= steady.Seconds()/10, "%.1f %% of a core once they have rested, and not 10 %%", 100*own(*r.steady)/steady.Seconds())
			}
		case r.kind.name == shops.name && r.n == 200:
			miss(r, r.ready <= 10*time.Minute, "all Ready after %.0f s, and not within 600 s", r.ready.Seconds())
		}
		others := r.resting.others
		if r.steady != nil {
			others = slices.Concat(others, r.steady.others)
		}
		for _, p := range others {
			miss(r, false, "%s was restarted while they rested, so that its processor time is not known", p)
		}
		for _, f := range r.faults {
			miss(r, f.stuck == 0, "%d are stuck after: %s", f.stuck, f.what)
		}
		if r.restored != nil {
			longest := percentile(r.restored.took, 100)
			miss(r, longest <= 5*time.Second, "a Restore begins after %.1f s, and not within 5 s", longest.Seconds())
		}
	}
	return out
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
