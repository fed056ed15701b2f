package appconfig

import (
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
)

// hidden replaces a secret in a text.
const hidden = "***"

// pattern finds secrets in a text. A match is replaced by what replace returns for its groups.
type pattern struct {
	find    *regexp.Regexp
	replace func(groups []string) string
}

// patterns are those of secrets in texts, in the order in which they are applied. A match that is
// known to be no secret stays as it is.
var patterns = []pattern{
	// The user in a URL, with or without a password.
	{regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s"'<>]*@`), func(g []string) string { return g[1] + hidden + "@" }},
	// A password in a URL that contains a slash. A host with a port and a path is not one.
	{regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://)[^/\s"'<>@:]*:([^\s"'<>@]*/[^\s"'<>]*)@`), func(g []string) string {
		if port.MatchString(g[2]) {
			return g[0]
		}
		return g[1] + hidden + "@"
	}},
	// A user and a password without a scheme. The tag and the digest of an image are not one.
	{regexp.MustCompile("(?m)(^|[\\s\"'`(\\[{<=,;|])([A-Za-z0-9_.-]+):([^\\s\"'<>/@][^\\s\"'<>]*)@(sha(?:256|512):)?"), func(g []string) string {
		if g[4] != "" || port.MatchString(g[3]) || slices.Contains(noUsers, g[2]) {
			return g[0]
		}
		return g[1] + g[2] + ":" + hidden + "@"
	}},
	// The header Authorization. A value without a scheme that is short or has no digit may be an
	// ordinary word.
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
	// JSON Web Tokens: pods have some that are in no Secret.
	{regexp.MustCompile(`eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]*)?`), func([]string) string { return hidden }},
	// The value of a flag.
	{regexp.MustCompile(`(--[A-Za-z-]*(?:password|passwd|pass|token|secret)[ \t]+)("[^"\n]*"?|'[^'\n]*'?|[^\s"'-][^\s"']*)`), func(g []string) string { return g[1] + hidden }},
	// A value that is assigned to a name that marks it as secret.
	{regexp.MustCompile(`((?:` + strings.Join(secretNames, "|") + `)\\?["']?[ \t]*(?:=>|:=|[:=])[ \t]*)(\\"[^"\n]*"?|"[^"\n]*"?|'[^'\n]*'?|[^\s"']+)`), assigned},
}

// secretNames are the endings of names that mark a value as secret.
var secretNames = []string{
	`(?i:password|passwd|passphrase|secret|token|api_?key|access_?key)`,
	`(?:\b|_)(?i:pass|pwd)`, `[a-z]P(?:ass|wd)`,
	`[A-Z0-9_]KEY`,
	`(?i:private|secret|encryption|signing|master|auth|account|session|shared|client|license|service|ssh|deploy|webhook|api|access)[_-]?(?i:key)`,
}

const decimals = "0123456789"

var (
	// port matches a port in the place of a password.
	port = regexp.MustCompile(`^[0-9]{1,5}[/,]`)
	// noUsers are words that stand before a colon and are no users: no password follows.
	noUsers = []string{"mailto", "sip", "sips", "acct", "xmpp", "pkg"}
	// next matches the next assignment in the same word, as in a query.
	next = regexp.MustCompile(`[,;&|][A-Za-z_][A-Za-z0-9_.-]*[:=]`)
	// ends matches what closes or separates an assignment at its end.
	ends = regexp.MustCompile(`[,;)}\]]+$`)
)

// assigned hides an assigned value, and keeps what follows it.
func assigned(g []string) string {
	name, value := g[1], g[2]
	if strings.HasPrefix(name, "PWD") && strings.HasPrefix(value, "/") {
		return g[0] // PWD is the working directory of a shell.
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

// apply replaces what a pattern finds in a text.
func (p pattern) apply(text string) string {
	return p.find.ReplaceAllStringFunc(text, func(found string) string { return p.replace(p.find.FindStringSubmatch(found)) })
}
