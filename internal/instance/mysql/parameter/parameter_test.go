package parameter

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDocs: the documentation lists the options that need a start.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/mysql.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(page), "replicas first:\n\n")
	list, _, _ = strings.Cut(list, "\n\n")
	var got []string
	for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(list, -1) {
		got = append(got, m[1])
	}
	if diff := cmp.Diff(atStart, got); diff != "" {
		t.Errorf("options that need a start: -code, +docs/mysql.md:\n%s", diff)
	}
}

// TestAtStart: what needs a start is allowed.
func TestAtStart(t *testing.T) {
	for _, option := range atStart {
		if !slices.Contains(allowed, option) {
			t.Errorf("%s needs a start, and is not allowed", option)
		}
	}
}
