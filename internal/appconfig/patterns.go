package appconfig

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
)

// hidden stands for what must not be seen.
const hidden = "***"

// A pattern of secrets: what is found is replaced by what becomes of its groups.
type pattern struct {
	find    *regexp.Regexp
	replace func(groups []string) string
}

// patterns of secrets in texts, in the order in which they are applied. A text that only looks
// like one is left as it is where that is known.
var patterns = []pattern{
	// The user of a URL, with a password or without.
	{regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s"'<>]*@`), func(g []string) string { return g[1] + hidden + "@" }},
	// A password with a slash. A host with a port and a path is none.
	{regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s"'<>@:]*:([^\s"'<>@]*/[^\s"'<>]*)@`), func(g []string) string {
		if port.MatchString(g[2]) {
			return g[0]
		}
		return g[1] + hidden + "@"
	}},
	// A user and a password without a scheme. A tag and a digest of an image are none.
	{regexp.MustCompile("(?m)(^|[\\s\"'`(\\[{<=,;|])([A-Za-z0-9_.-]+):([^\\s\"'<>/@][^\\s\"'<>]*)@(sha(?:256|512):)?"), func(g []string) string {
		if g[4] != "" || port.MatchString(g[3]) || slices.Contains(noUsers, g[2]) {
			return g[0]
		}
		return g[1] + g[2] + ":" + hidden + "@"
	}},
	// The header, whose value may be another word.
	{regexp.MustCompile(`(?i)(authorization\\?["']?[ \t]*[:=][ \t]*\\?["']?)((?:bearer|basic|digest|token|negotiate|apikey)[ \t]+)?([^\s"',\\]+)`), func(g []string) string {
		if g[2] == "" && (len(g[3]) < 16 || !strings.ContainsAny(g[3], decimals)) {
			return g[0]
		}
		return g[1] + g[2] + hidden
	}},
	{regexp.MustCompile(`\b((?i:bearer)[ \t]+)([A-Za-z0-9+/=._~-]{8,})`), func(g []string) string {
		if !strings.ContainsAny(g[2], decimals+"+/=._~") {
			return g[0]
		}
		return g[1] + hidden
	}},
	{regexp.MustCompile(`\b((?i:basic)[ \t]+)([A-Za-z0-9+/]{4,}={0,2})`), func(g []string) string {
		user, err := base64.StdEncoding.DecodeString(g[2])
		if err != nil || !strings.Contains(string(user), ":") {
			return g[0]
		}
		return g[1] + hidden
	}},
	// JSON Web Tokens: pods have some that no Secret holds.
	{regexp.MustCompile(`eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]*)?`), func([]string) string { return hidden }},
	// The value of a flag.
	{regexp.MustCompile(`(--[A-Za-z-]*(?:password|passwd|pass|token|secret)[ \t]+)("[^"\n]*"?|'[^'\n]*'?|[^\s"'-][^\s"']*)`), func(g []string) string { return g[1] + hidden }},
	// What something is set to whose name says that it is secret.
	{regexp.MustCompile(`((?:` + strings.Join(secretNames, "|") + `)\\?["']?[ \t]*(?:=>|:=|[:=])[ \t]*)(\\"[^"\n]*"?|"[^"\n]*"?|'[^'\n]*'?|[^\s"']+)`), assigned},
}

// secretNames are how names end that say that a value is secret.
var secretNames = []string{
	`(?i:password|passwd|passphrase|secret|token|api_?key|access_?key)`,
	`(?:\b|_)(?i:pass|pwd)`, `[a-z]P(?:ass|wd)`,
	`[A-Z0-9_]KEY`,
	`(?i:private|secret|encryption|signing|master|auth|account|session|shared|client|license|service|ssh|deploy|webhook|api|access)[_-]?(?i:key)`,
}

const decimals = "0123456789"

var (
	// port that stands where a password could.
	port = regexp.MustCompile(`^[0-9]{1,5}[/,]`)
	// noUsers have a colon behind them, and no password.
	noUsers = []string{"mailto", "sip", "sips", "acct", "xmpp", "pkg"}
	// next assignment in the same word, as in a query.
	next = regexp.MustCompile(`[,;&|][A-Za-z_][A-Za-z0-9_.-]*[:=]`)
	// ends of what an assignment is in.
	ends = regexp.MustCompile(`[,;)}\]]+$`)
)

// assigned hides a value as far as it goes.
func assigned(g []string) string {
	name, value := g[1], g[2]
	if strings.HasPrefix(name, "PWD") && strings.HasPrefix(value, "/") {
		return g[0] // The folder that a shell is in.
	}
	for _, quote := range []string{`\"`, `"`, "'"} {
		if strings.HasPrefix(value, quote) {
			return name + quote + hidden + quote
		}
	}
	rest := ""
	if at := next.FindStringIndex(value); at != nil {
		value, rest = value[:at[0]], value[at[0]:]
	}
	return name + hidden + ends.FindString(value) + rest
}

// apply a pattern to a text.
func (p pattern) apply(text string) string {
	return p.find.ReplaceAllStringFunc(text, func(found string) string { return p.replace(p.find.FindStringSubmatch(found)) })
}
