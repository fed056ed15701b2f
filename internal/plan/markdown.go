package plan

import (
	"fmt"
	"io"
	"strings"

	"github.com/storeplane/storeplane/internal/text"
)

// Marker begins a report in Markdown, so that a bot finds the comment that it wrote before and
// replaces it.
const Marker = "<!-- storeplane-plan -->"

// Markdown writes the report as the comment of a pull request.
func (r *Report) Markdown(w io.Writer) error {
	m := &page{}
	m.linef("%s", Marker)
	m.linef("### %s", r.Summary.line())
	for i := range r.Claims {
		m.markdown(&r.Claims[i])
	}
	_, err := io.WriteString(w, m.b.String())
	return err
}

func (t *page) markdown(c *Claim) {
	t.linef("")
	t.linef("#### %s `%s/%s`%s: %s", c.Object.Kind, c.Object.Namespace, c.Object.Name, c.title(), c.Verdict)
	if c.Refusal != "" {
		t.linef("")
		t.linef("> %s", escape(c.Refusal))
	}
	for _, r := range c.Rejected {
		t.linef("")
		t.linef("> The API server refuses %s: %s", r.Object, escape(r.Message))
	}
	if len(c.Edits) > 0 {
		t.linef("")
		t.linef("| field | before | after |")
		t.linef("|---|---|---|")
		for _, f := range c.Edits {
			t.linef("| `%s` | %s | %s |", f.Path, cell(f.Before), cell(f.After))
		}
	}
	t.consequences("consequence", c.Effects)
	if len(c.Drift) > 0 {
		t.linef("")
		t.linef("Drift, which the next reconcile removes: %s.", text.Count(len(c.Drift), "object"))
	}
	t.consequences("consequence of the drift", c.DriftEffects)
	t.remarks(c)
	t.objects(c)
}

func (t *page) consequences(title string, effects []Effect) {
	if len(effects) == 0 {
		return
	}
	t.linef("")
	t.linef("| | %s | |", title)
	t.linef("|---|---|---|")
	for _, e := range effects {
		t.linef("| %s | %s | %s |", strings.TrimSpace(e.sign()), e.Verb, escape(e.Message))
	}
}

func (t *page) remarks(c *Claim) {
	var out []string
	if c.Waits != "" {
		out = append(out, "Waits: "+escape(c.Waits))
	}
	for _, n := range c.Notes {
		out = append(out, "Note: "+escape(n))
	}
	for _, u := range c.Unknown {
		out = append(out, "Unknown: "+escape(u))
	}
	if c.Guardrails != nil {
		for _, b := range c.Guardrails.Broken {
			out = append(out, "Guardrail broken: "+escape(b))
		}
	}
	if b := c.Breaker; b != nil && b.notable() {
		out = append(out, "Circuit breaker of Crossplane: "+b.String())
	}
	if c.Cost != nil {
		out = append(out, "Cost: "+c.Cost.String())
	}
	if len(out) > 0 {
		t.linef("")
	}
	for _, o := range out {
		t.linef("- %s", o)
	}
}

// objects writes the objects that change, in a collapsed section.
func (t *page) objects(c *Claim) {
	if len(c.Changes) == 0 {
		return
	}
	t.linef("")
	t.linef("<details><summary>%s</summary>", text.Count(len(c.Changes), "object"))
	t.linef("")
	t.linef("```diff")
	for _, ch := range c.Changes {
		t.linef("%s %s", diffSign(ch.Action), ch.Object)
		t.fields("    ", ch.Fields)
	}
	t.linef("```")
	t.linef("")
	t.linef("</details>")
}

// diffSign returns the mark of an action that highlighting of diffs colours.
func diffSign(a Action) string {
	if a == Update || a == Adopt {
		return "!"
	}
	return signs[a]
}

func cell(v any) string {
	if v == nil {
		return ""
	}
	return fmt.Sprintf("`%s`", strings.ReplaceAll(escape(valueOf(v, 0)), "`", "'"))
}

// escape escapes what would end a table cell or be read as HTML.
func escape(s string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;", ">", "&gt;").Replace(s)
}
