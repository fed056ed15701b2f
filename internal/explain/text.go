package explain

import (
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/storeplane/storeplane/internal/health"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Text writes the report for people, with ages as of now. Details lists every object; without it
// healthy objects that run nothing are only counted.
func (r *Report) Text(w io.Writer, now time.Time, details bool) error {
	t := &printer{now: now, details: details}
	for i := range r.Claims {
		if i > 0 {
			t.linef("")
		}
		t.claim(&r.Claims[i])
	}
	_, err := io.WriteString(w, t.b.String())
	return err
}

type printer struct {
	b       strings.Builder
	now     time.Time
	details bool
}

func (t *printer) linef(format string, args ...any) { fmt.Fprintf(&t.b, format+"\n", args...) }

// words describe the states.
var words = map[State]string{Ready: "is ready", NotReady: "is not ready", Refused: "is refused", Paused: "is paused", Deleting: "is being deleted"}

func (t *printer) claim(e *Explanation) {
	sign := "✗"
	if e.State == Ready {
		sign = "✓"
	}
	t.linef("%s %s in namespace %s %s%s", sign, e.Object, e.Object.Namespace, words[e.State], t.since(e.Since))
	if e.Cause != nil {
		t.linef("")
		t.linef("  cause")
		t.cause(e.Cause)
	}
	if len(e.Also) > 0 {
		t.linef("")
		t.linef("  also")
		for i := range e.Also {
			t.cause(&e.Also[i])
		}
	}
	t.linef("")
	t.linef("  objects")
	t.tree(e.Tree)
	if len(e.Recent) > 0 {
		t.linef("")
		t.linef("  in the last hour")
		for _, h := range e.Recent {
			times := ""
			if h.Count > 1 {
				times = fmt.Sprintf(" (%d times)", h.Count)
			}
			t.linef("  %8s  %s: %s%s", t.age(h.At), h.Object, h.Message, times)
		}
	}
	if len(e.Unknown) > 0 {
		t.linef("")
		t.linef("  unknown")
		for _, u := range e.Unknown {
			t.linef("  ? %s", u)
		}
	}
}

func (t *printer) cause(c *Cause) {
	t.linef("  ! %s: %s%s", c.Object, indented(c.Message), t.since(c.Since))
	for _, e := range c.Evidence {
		at := ""
		if e.At != nil {
			at = ", " + t.age(*e.At) + " ago"
		}
		t.linef("      %-9s  %s%s: %s", e.Source, e.Object, at, indented(e.Text))
	}
	for _, d := range c.Do {
		t.linef("    → %s", d)
	}
}

// indented indents all lines of a text but the first.
func indented(s string) string { return strings.ReplaceAll(s, "\n", "\n                 ") }

func (t *printer) since(at *time.Time) string {
	if at == nil || at.IsZero() {
		return ""
	}
	return ", for " + t.age(*at)
}

// age returns how long ago a moment was. Clocks differ: a moment in the future counts as now.
func (t *printer) age(at time.Time) string { return duration.HumanDuration(max(0, t.now.Sub(at))) }

func (t *printer) tree(nodes []Node) {
	left := 0
	for _, n := range nodes {
		if n.Ready && !t.details && isQuiet(n) {
			left++
			continue
		}
		sign, message := "✓", ""
		if !n.Ready {
			sign = "✗"
		}
		if n.Message != "" {
			message = "  " + indented(n.Message)
		}
		t.linef("  %s %s%s%s", sign, strings.Repeat("  ", n.Depth), n.Object, message)
	}
	if left > 0 {
		t.linef("    objects that only need to exist, and do: %d", left)
	}
}

// isQuiet reports whether an object runs nothing.
func isQuiet(n Node) bool {
	kind := schema.FromAPIVersionAndKind(n.Object.APIVersion, n.Object.Kind).GroupKind()
	return n.Depth > 0 && (health.IsStored(kind) && kind.Kind != "CronJob" || kind.Kind == "ReplicaSet")
}
