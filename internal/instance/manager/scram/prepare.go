package scram

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// prepare a password as clients do (SASLprep, RFC 4013): libpq and the server
// both normalise, so the verifier must be of the normalised one. What SASLprep
// refuses is taken as it is, as PostgreSQL does.
func prepare(password string) string {
	if isASCII(password) || !utf8.ValidString(password) {
		return password
	}
	mapped := norm.NFKC.String(strings.Map(mapRune, password))
	if mapped == "" || strings.ContainsFunc(mapped, prohibited) {
		return password
	}
	return mapped
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII })
}

// mapRune maps spaces to the plain one (RFC 3454, table C.1.2), and to nothing
// what nobody sees (table B.1).
func mapRune(r rune) rune {
	switch {
	case r == '\u200b', unicode.Is(unicode.Zs, r):
		return ' '
	case r == '\u00ad', r == '\u034f', r == '\u1806', r == '\u2060', r == '\ufeff',
		r >= '\u180b' && r <= '\u180d', r >= '\u200c' && r <= '\u200d', r >= '\ufe00' && r <= '\ufe0f':
		return -1
	}
	return r
}

func prohibited(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs) || r == utf8.RuneError
}
