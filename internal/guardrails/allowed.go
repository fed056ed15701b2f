package guardrails

import (
	"fmt"
	"slices"
	"strings"

	"github.com/storeplane/storeplane/internal/settings"
)

// asked is what one field of a claim requests, of which an installation may allow only what it
// lists.
type asked struct {
	path, verb string

	// values are in alphabetical order.
	values []string
}

// allowance is a rule with such a list. An empty list allows everything.
type allowance struct {
	asked func(*Subject) []asked
	list  func(settings.Policy) []string

	// covers reports whether an entry of the list is or includes a value.
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

// some returns the first of the values, and how many more there are.
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

// same reports whether an entry is a value, as in most lists.
func same(entry, value string) bool { return entry == value }

// below reports whether an entry is a host, or a pattern like *.example.com that includes it.
func below(entry, host string) bool {
	domain, all := strings.CutPrefix(entry, "*")
	return entry == host || all && strings.HasSuffix(host, domain)
}

// prefixed reports whether an entry is a key, or a pattern like example.com/* that includes it.
func prefixed(entry, key string) bool {
	prefix, all := strings.CutSuffix(entry, "*")
	return entry == key || all && strings.HasPrefix(key, prefix)
}

// labelled reports whether an entry is a label, or the key of a label with any value.
func labelled(entry, label string) bool {
	return entry == label || strings.HasPrefix(label, entry+"=")
}
