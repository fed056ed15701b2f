package waves

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

const (
	// Annotation of a claim names the release that its wave upgrades it to.
	Annotation = "storeplane.example.com/wave"

	// MarkAnnotation of a claim holds how far that is: a Mark.
	MarkAnnotation = "storeplane.example.com/wave-mark"

	// TimeAnnotation of a claim holds when it got the mark, in RFC 3339.
	TimeAnnotation = "storeplane.example.com/wave-time"
)

// Mark is the progress of a claim whose wave has begun.
type Mark string

// Marks of a claim.
const (
	// Admitted claims may be upgraded, each in its window if it has one.
	Admitted Mark = "Admitted"
	// Rolling claims have the release, and are not ready with it yet, whatever else happens to
	// them.
	Rolling Mark = "Rolling"
	// Upgraded claims are ready with the release.
	Upgraded Mark = "Upgraded"
	// Unwell claims were not ready before: their state is no evidence about the release.
	Unwell Mark = "Unwell"
)

// Wave is a group of claims that are upgraded together, as configured in upgrades.waves of the
// installation's settings. Claims that are in no wave come after the last one.
type Wave struct {
	// Name of the wave, for messages.
	Name string `json:"name"`

	// Namespaces whose claims are in the wave, unless they are in an earlier one. All by default.
	Namespaces *metav1.LabelSelector `json:"namespaces,omitempty"`

	// Percent of those claims that are in the wave, rounded up: from 1 to 100. All by default.
	Percent *int `json:"percent,omitempty"`

	// Pause after the last claim of the wave was upgraded and ready, before the next wave begins: a
	// duration like 30m, of a week at most. None by default.
	Pause string `json:"pause,omitempty"`
}

// Others is the name of the wave of the claims that are in no other one.
const Others = "others"

// longestPause is the longest pause between two waves.
const longestPause = 7 * 24 * time.Hour

var waveName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// Check checks waves of the settings. An error begins with the field that it is about.
func Check(waves []Wave) error {
	seen := map[string]bool{}
	for i, w := range waves {
		switch pause, err := time.ParseDuration(w.Pause); {
		case !waveName.MatchString(w.Name):
			return fmt.Errorf("[%d].name must be of lower case letters, digits and hyphens, 63 at most, is %q", i, w.Name)
		case w.Name == Others:
			return fmt.Errorf("[%d].name is %q, which is the name of the wave of claims that are in no other one: choose another name", i, Others)
		case seen[w.Name]:
			return fmt.Errorf("[%d].name is %q, as that of another wave: each needs a name of its own", i, w.Name)
		case w.Percent != nil && (*w.Percent < 1 || *w.Percent > 100):
			return fmt.Errorf("[%d].percent must be from 1 to 100, is %d", i, *w.Percent)
		case w.Pause != "" && (err != nil || pause < 0 || pause > longestPause):
			return fmt.Errorf("[%d].pause must be a duration of a week at most, like 30m, is %q", i, w.Pause)
		}
		if _, err := w.selector(); err != nil {
			return fmt.Errorf("[%d].namespaces is no selector of labels: %w", i, err)
		}
		seen[w.Name] = true
	}
	return nil
}

// fields are those of a wave. Others are refused: with a misspelt one the wave would take all
// claims.
var fields = []string{"name", "namespaces", "pause", "percent"}

// CheckFields checks the names of fields in waves of the settings. An error begins with the field
// that it is about.
func CheckFields(waves []map[string]any) error {
	for i, w := range waves {
		for _, field := range slices.Sorted(maps.Keys(w)) {
			if !slices.Contains(fields, field) {
				return fmt.Errorf("[%d].%s is no field of a wave: it has %s", i, field, strings.Join(fields, ", "))
			}
		}
		selector, _ := w["namespaces"].(map[string]any)
		for _, field := range slices.Sorted(maps.Keys(selector)) {
			if field != "matchLabels" && field != "matchExpressions" {
				return fmt.Errorf("[%d].namespaces.%s is no field of a selector: it has matchLabels, matchExpressions", i, field)
			}
		}
	}
	return nil
}

func (w Wave) selector() (labels.Selector, error) {
	if w.Namespaces == nil {
		return labels.Everything(), nil
	}
	return metav1.LabelSelectorAsSelector(w.Namespaces)
}

// pause returns the pause after the wave, which Check has validated.
func (w Wave) pause() time.Duration {
	d, _ := time.ParseDuration(w.Pause)
	return d
}
