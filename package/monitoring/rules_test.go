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

// anchors of the page's headings, as GitHub makes them.
func anchors(t *testing.T) []string {
	t.Helper()
	b, err := os.ReadFile(page)
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

// TestAlerts: each alert names metrics that exist, how bad it is, and a place
// in the documentation that says what to do.
func TestAlerts(t *testing.T) {
	metrics, places := known(t), anchors(t)
	seen := map[string]bool{}
	for _, r := range alerts(readRules(t)) {
		t.Run(r.Alert, func(t *testing.T) {
			if !strings.HasPrefix(r.Alert, "DatabaseCluster") {
				t.Errorf("an alert's name starts with the kind, %q does not", r.Alert)
			}
			if seen[r.Alert] {
				t.Errorf("there are two alerts %s", r.Alert)
			}
			seen[r.Alert] = true
			for _, m := range metricsOf(r.Expr) {
				if metrics[m] == "" {
					t.Errorf("nobody exports %s: it is not in %s", m, metricsFile)
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
			if url != pageURL || !slices.Contains(places, anchor) {
				t.Errorf("runbook_url %q leads to no heading of %s", r.Annotations["runbook_url"], page)
			}
		})
	}
}

// TestAlertsTested: each alert is seen to fire and seen to stay silent.
func TestAlertsTested(t *testing.T) {
	files, err := filepath.Glob(testFiles)
	if err != nil {
		t.Fatal(err)
	}
	fires, silent := map[string]bool{}, map[string]bool{}
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
	for _, r := range alerts(readRules(t)) {
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
}
