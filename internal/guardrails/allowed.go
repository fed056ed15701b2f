package guardrails

import (
	"fmt"
	"slices"
	"strings"

	"github.com/storeplane/storeplane/internal/settings"
)

// asked is what one field of a claim asks for, where an installation may allow a list
// of things alone.
type asked struct {
	path, verb string

	// values in the order of the alphabet.
	values []string
}

// allowance is one rule of that sort. An empty list allows everything.
type allowance struct {
	asked func(*Subject) []asked
	list  func(settings.Policy) []string

	// covers tells whether an entry of the list is or means a value.
	covers func(entry, value string) bool
}

func (a allowance) judge(s *Subject, p settings.Policy) []Verdict {
	fields, list := a.asked(s), slices.Clone(a.list(p))
	switch {
	case len(fields) == 0:
		return nil
	case len(list) == 0:
		return skip("the installation's settings allow everything")
	}
	for i := range list {
		list[i] = strings.ReplaceAll(list[i], "{namespace}", s.namespace)
	}
	out := make([]Verdict, 0, len(fields))
	for _, f := range fields {
		refused := slices.DeleteFunc(slices.Clone(f.values), func(v string) bool {
			return slices.ContainsFunc(list, func(entry string) bool { return a.covers(entry, v) })
		})
		if len(refused) == 0 {
			out = append(out, verdict(Pass, f.path, "%s %s, as the installation allows", f.verb, strings.Join(f.values, ", ")))
			continue
		}
		out = append(out, verdict(Fail, f.path, "%s %s, which the installation does not allow: use %s", f.verb, some(refused), strings.Join(list, " or ")))
	}
	return out
}

// some of the values: the first one, and how many more there are.
func some(values []string) string {
	first := values[0]
	if first == "" {
		first = everyTaint
	}
	if more := len(values) - 1; more > 0 {
		return fmt.Sprintf("%s and %d more", first, more)
	}
	return first
}

// everyTaint is what a toleration without a key means.
const everyTaint = "every taint"

// same is how most lists are read.
func same(entry, value string) bool { return entry == value }

// below a domain is what *.example.com means.
func below(entry, host string) bool {
	domain, all := strings.CutPrefix(entry, "*")
	return entry == host || all && strings.HasSuffix(host, domain)
}

// prefixed keys are what example.com/* means.
func prefixed(entry, key string) bool {
	prefix, all := strings.CutSuffix(entry, "*")
	return entry == key || all && strings.HasPrefix(key, prefix)
}

// labelled is by a label's key, with any value, or with one.
func labelled(entry, label string) bool {
	return entry == label || strings.HasPrefix(label, entry+"=")
}
