package plan

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/storeplane/storeplane/internal/text"
)

// valueWidth is the number of characters of a value that are printed in text.
const valueWidth = 60

// signs mark the actions, as in Terraform's plans.
var signs = map[Action]string{Create: "+", Update: "~", Delete: "-", Adopt: ">"}

// sign returns the mark of an effect: a question mark where it cannot be known, and an exclamation
// mark where it deserves attention.
func (e Effect) sign() string {
	switch {
	case e.Unknown:
		return "?"
	case e.Interrupts || e.Destroys || e.Irreversible || e.Warning:
		return "!"
	}
	return " "
}

// Text writes the report for people, with the fields of each object where details is set.
func (r *Report) Text(w io.Writer, details bool) error {
	t := &page{}
	for i := range r.Claims {
		t.claim(&r.Claims[i], details)
	}
	t.linef("%s", r.Summary.line())
	_, err := io.WriteString(w, t.b.String())
	return err
}

// page is what a plan is written into, line by line.
type page struct{ b strings.Builder }

func (t *page) linef(format string, args ...any) { fmt.Fprintf(&t.b, format+"\n", args...) }

func (t *page) claim(c *Claim, details bool) {
	t.linef("%s %s in namespace %s%s", c.sign(), c.Object, c.Object.Namespace, c.title())
	t.fields("    ", c.Edits)
	t.linef("")
	if c.Refusal != "" {
		t.linef("  refused")
		t.linef("  ! %s", c.Refusal)
		t.linef("")
	}
	if len(c.Rejected) > 0 {
		t.linef("  refused by the API server")
		for _, r := range c.Rejected {
			t.linef("  ! %s: %s", r.Object, r.Message)
		}
		t.linef("")
	}
	t.changes("objects", c.Changes, details)
	t.effects("consequences", c.Effects)
	t.changes("drift, which the next reconcile removes", c.Drift, details)
	t.effects("consequences of the drift", c.DriftEffects)
	if c.Waits != "" {
		t.linef("  waits")
		t.linef("  ? %s", c.Waits)
		t.linef("")
	}
	if len(c.Notes) > 0 {
		t.linef("  note")
		for _, n := range c.Notes {
			t.linef("  ! %s", n)
		}
		t.linef("")
	}
	if len(c.Unknown) > 0 {
		t.linef("  unknown")
		for _, u := range c.Unknown {
			t.linef("  ? %s", u)
		}
		t.linef("")
	}
	if g := c.Guardrails; g != nil && g.Passed+len(g.Broken) > 0 {
		t.guardrails(g)
	}
	if b := c.Breaker; b != nil && b.notable() {
		t.linef("  breaker      %s", b)
		t.linef("")
	}
	if c.Cost != nil {
		t.linef("  cost         %s", c.Cost)
		t.linef("")
	}
}

// sign returns the mark of what happens to the claim itself.
func (c *Claim) sign() string {
	switch {
	case c.Refusal != "", len(c.Rejected) > 0:
		return "!"
	case c.Deletes:
		return "-"
	case !c.Exists:
		return "+"
	case len(c.Edits) > 0:
		return "~"
	}
	return " "
}

func (c *Claim) title() string {
	switch {
	case c.Deletes && !c.Exists:
		return " does not exist"
	case c.Deletes:
		return " is deleted"
	case !c.Exists:
		return " is created"
	case len(c.Edits) == 0:
		return " is not edited"
	}
	return ""
}

func (t *page) fields(indent string, fields []Field) {
	for _, f := range fields {
		t.linef("%s%s", indent, f)
	}
}

func (t *page) changes(title string, changes []Change, details bool) {
	if len(changes) == 0 {
		return
	}
	t.linef("  %s", title)
	for _, c := range changes {
		t.linef("  %s %s", signs[c.Action], c.Object)
		if details {
			t.fields("      ", c.Fields)
		}
	}
	t.linef("")
}

func (t *page) effects(title string, effects []Effect) {
	if len(effects) == 0 {
		return
	}
	t.linef("  %s", title)
	for _, e := range effects {
		t.linef("  %s %-11s %s", e.sign(), e.Verb, e.Message)
	}
	t.linef("")
}

func (t *page) guardrails(g *Guardrails) {
	t.linef("  guardrails   %d passed, %d broken", g.Passed, len(g.Broken))
	for _, b := range g.Broken {
		t.linef("  ! %s", b)
	}
	t.linef("")
}

// String describes the field and how it changes.
func (f Field) String() string {
	switch {
	case f.Hidden:
		return f.Path + ": (of a Secret)"
	case f.Before == nil:
		return f.Path + ": (added) → " + valueOf(f.After, 0)
	case f.After == nil:
		return f.Path + ": " + valueOf(f.Before, 0) + " → (removed)"
	}
	from := differsFrom(textOf(f.Before), textOf(f.After))
	return f.Path + ": " + valueOf(f.Before, from) + " → " + valueOf(f.After, from)
}

// textOf returns a value in one line.
func textOf(v any) string {
	s, ok := v.(string)
	if !ok {
		b, err := json.Marshal(v)
		if err != nil {
			return "?"
		}
		s = string(b)
	}
	if s == "" {
		return `""`
	}
	return strings.ReplaceAll(s, "\n", "⏎")
}

// differsFrom returns the index of the first rune in which two texts differ.
func differsFrom(a, b string) int {
	x, y := []rune(a), []rune(b)
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return i
		}
	}
	return min(len(x), len(y))
}

// valueOf returns a value as it is printed: of a long one, the part around a rune.
func valueOf(v any, around int) string {
	r := []rune(textOf(v))
	if len(r) <= valueWidth {
		return string(r)
	}
	begin := max(0, min(around-valueWidth/3, len(r)-valueWidth))
	end := min(len(r), begin+valueWidth)
	out := string(r[begin:end])
	if begin > 0 {
		out = "…" + out
	}
	if end < len(r) {
		out += "…"
	}
	return out
}

// String describes the cost and how it changes.
func (c *Cost) String() string {
	return fmt.Sprintf("%+.2f %s a month: %.2f → %.2f", c.After-c.Before, c.Currency, c.Before, c.After)
}

// line summarizes the report in one line.
func (s Summary) line() string {
	if s.Refused > 0 && s.Create+s.Change+s.Delete == 0 {
		return fmt.Sprintf("Plan: %s refused: nothing changes.", text.Count(s.Refused, "claim"))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Plan: %d to create, %d to change, %d to delete.", s.Create, s.Change, s.Delete)
	fmt.Fprintf(&b, " Pods that end or restart: %d. Interruptions: %d", s.Pods, s.Interruptions)
	if s.Switchovers > 0 {
		fmt.Fprintf(&b, " (%s)", text.Count(s.Switchovers, "switchover"))
	}
	fmt.Fprintf(&b, ". Irreversible: %d. Data lost: %d.", s.Irreversible, s.Destroys)
	if s.Refused > 0 {
		fmt.Fprintf(&b, " Refused: %d.", s.Refused)
	}
	if s.Drift > 0 {
		fmt.Fprintf(&b, " Drift: %d.", s.Drift)
	}
	return b.String()
}
