package monitoring

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	heading  = regexp.MustCompile(`(?m)^#+ (.+)$`)
	unlinked = regexp.MustCompile(`[^a-z0-9 -]`)
)

// anchors returns the anchors of a page's headings, as GitHub generates them.
func anchors(t *testing.T, page string) []string {
	t.Helper()
	b, err := os.ReadFile(pages + page)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]string, 0)
	for _, m := range heading.FindAllStringSubmatch(string(b), -1) {
		text := unlinked.ReplaceAllString(strings.ToLower(m[1]), "")
		out = append(out, strings.ReplaceAll(text, " ", "-"))
	}
	return out
}

// TestAlerts: each alert uses metrics that exist, has a severity, and links to a heading of the
// documentation about what to do.
func TestAlerts(t *testing.T) {
	metrics := known(t)
	for _, set := range ruleSets {
		places, seen := anchors(t, set.page), map[string]bool{}
		for _, r := range alerts(readRules(t, set)) {
			t.Run(r.Alert, func(t *testing.T) {
				if seen[r.Alert] {
					t.Errorf("there are two alerts %s", r.Alert)
				}
				seen[r.Alert] = true
				checkAlert(t, set, r, metrics, places)
			})
		}
	}
}

func checkAlert(t *testing.T, set ruleSet, r rule, metrics map[string]string, places []string) {
	t.Helper()
	if !strings.HasPrefix(r.Alert, set.kind) {
		t.Errorf("an alert's name starts with the kind, %q does not", r.Alert)
	}
	for _, m := range metricsOf(r.Expr) {
		if metrics[m] == "" {
			t.Errorf("no program exports %s: it is not in %s", m, metricsFile)
		}
	}
	if s := r.Labels["severity"]; s != "warning" && s != "critical" {
		t.Errorf("severity must be warning or critical, is %q", s)
	}
	for _, a := range []string{"summary", "description"} {
		if r.Annotations[a] == "" {
			t.Errorf("it has no %s", a)
		}
	}
	url, anchor, _ := strings.Cut(r.Annotations["runbook_url"], "#")
	if url != pagesURL+set.page || !slices.Contains(places, anchor) {
		t.Errorf("runbook_url %q leads to no heading of %s", r.Annotations["runbook_url"], set.page)
	}
}

// TestAlertsTested: each alert has a test in which it fires and one in which it does not.
func TestAlertsTested(t *testing.T) {
	for _, set := range ruleSets {
		t.Run(set.kind, func(t *testing.T) {
			fires, silent := tested(t, set)
			for _, r := range alerts(readRules(t, set)) {
				if !fires[r.Alert] || !silent[r.Alert] {
					t.Errorf("%s: a test where it fires: %t, one where it does not: %t", r.Alert, fires[r.Alert], silent[r.Alert])
				}
				delete(fires, r.Alert)
				delete(silent, r.Alert)
			}
			for a := range fires {
				t.Errorf("tests/ has %s, and there is no such alert", a)
			}
			for a := range silent {
				t.Errorf("tests/ has %s, and there is no such alert", a)
			}
		})
	}
}

// tested returns the alerts with a test in which they fire, and those with one in which they do
// not.
func tested(t *testing.T, set ruleSet) (fires, silent map[string]bool) {
	t.Helper()
	files, err := filepath.Glob(set.tests)
	if err != nil {
		t.Fatal(err)
	}
	fires, silent = map[string]bool{}, map[string]bool{}
	for _, f := range files {
		tf := testFile{}
		readYAML(t, f, &tf, false)
		for _, test := range tf.Tests {
			for _, c := range test.Cases {
				if len(c.Expected) > 0 {
					fires[c.Alert] = true
				} else {
					silent[c.Alert] = true
				}
			}
		}
	}
	return fires, silent
}
