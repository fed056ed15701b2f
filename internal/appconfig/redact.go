package appconfig

import (
	"cmp"
	"encoding/base64"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of a failing container's log in a status.
const (
	logLines = 10
	logBytes = 512
)

// control matches control characters: those of 7 and of 8 bits, terminals' colours, and those that
// change the direction of text.
var control = regexp.MustCompile("(?:\x1b\\[|\u009b)[0-9;]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f\u0080-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]")

// short is the length below which only whole words are hidden, since short values occur everywhere.
const short = 4

// LastWords returns the last lines of a log, without the values of Secrets in any form in which
// they are usually written, and without what Redact removes.
func LastWords(log string, secrets map[string][]byte) string {
	log = control.ReplaceAllString(strings.ToValidUTF8(log, ""), "")
	for _, form := range forms(secrets) {
		log = hide(log, form)
	}
	log = Redact(log)

	lines := strings.Split(strings.TrimSpace(log), "\n")
	lines = slices.DeleteFunc(lines, func(l string) bool { return strings.TrimSpace(l) == "" })
	lines = lines[max(0, len(lines)-logLines):]
	return last(strings.Join(lines, "\n"), logBytes)
}

// Redact returns a text without what looks like a secret, and without control characters, which a
// terminal would interpret.
func Redact(text string) string {
	text = control.ReplaceAllString(strings.ToValidUTF8(text, ""), "")
	for _, p := range patterns {
		text = p.apply(text)
	}
	return text
}

// forms returns the forms of all values, the longest first: one may contain another.
func forms(secrets map[string][]byte) []string {
	out := map[string]bool{}
	add := func(s string) {
		if s == "" {
			return
		}
		for _, f := range []string{
			s, url.QueryEscape(s), url.PathEscape(s),
			base64.StdEncoding.EncodeToString([]byte(s)), base64.URLEncoding.EncodeToString([]byte(s)),
			base64.RawStdEncoding.EncodeToString([]byte(s)), base64.RawURLEncoding.EncodeToString([]byte(s)),
		} {
			out[f] = true
		}
	}
	for _, v := range secrets {
		s := string(v)
		add(s)
		add(strings.TrimSpace(s))
		// A log has lines, so it contains no value of several lines as a whole.
		for line := range strings.Lines(s) {
			if line = strings.TrimSpace(line); len(line) > short {
				add(line)
			}
		}
	}
	return slices.SortedFunc(maps.Keys(out), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
}

func hide(log, form string) string {
	if len(form) >= short {
		return strings.ReplaceAll(log, form, hidden)
	}
	word := regexp.MustCompile(`(?m)(^|[^A-Za-z0-9])` + regexp.QuoteMeta(form) + `($|[^A-Za-z0-9])`)
	// Twice, since two matches may share the character between them.
	for range 2 {
		log = word.ReplaceAllString(log, "${1}"+hidden+"${2}")
	}
	return log
}

// last returns at most the last n bytes of a text, in whole characters.
func last(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n:]
	for len(s) > 0 && !utf8.RuneStart(s[0]) {
		s = s[1:]
	}
	return s
}
