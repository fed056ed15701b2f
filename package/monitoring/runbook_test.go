package monitoring

import (
	"os"
	"strings"
	"testing"

	"github.com/storeplane/storeplane/internal/instance"
)

// TestManualFailover: no alert and no page advises a failover that skips Patroni's check of the
// timeline, unless the same section says how to lead without a number being used twice, and compares
// the timelines first.
func TestManualFailover(t *testing.T) {
	found := 0
	for _, set := range ruleSets {
		for _, r := range alerts(readRules(t, set)) {
			for name, text := range r.Annotations {
				if strings.Contains(text, "patronictl failover") {
					t.Errorf("%s: %s advises a manual failover: leave that to the page", r.Alert, name)
				}
			}
		}
		page, err := os.ReadFile(pages + set.page)
		if err != nil {
			t.Fatal(err)
		}
		for section := range strings.SplitSeq(string(page), "\n#") {
			title, _, _ := strings.Cut(section, "\n")
			before, _, ok := strings.Cut(section, "--candidate")
			if !ok {
				continue
			}
			found++
			for _, want := range []string{instance.LeadWithAnnotation, "status.message", "status.timeline"} {
				if !strings.Contains(before, want) {
					t.Errorf("%s, %s: before patronictl failover it does not name %s", set.page, title, want)
				}
			}
		}
	}
	if found == 0 {
		t.Errorf("no page has a manual failover: this test checks nothing")
	}
}
