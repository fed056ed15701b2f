package scram

import (
	"github.com/xdg-go/stringprep"
	"golang.org/x/text/unicode/norm"
)

// profile is SASLprep (RFC 4013) as PostgreSQL's pg_saslprep has it, in libpq and in the
// server: it checks a password before it normalises it, and a zero width space, which
// the RFC maps to a space and to nothing, becomes a space. The library's table lacks the
// Mongolian soft hyphen.
var profile = stringprep.Profile{
	Mappings:  append([]stringprep.Mapping{{'\u200b': {' '}, '\u1806': {}}}, stringprep.SASLprep.Mappings...),
	Prohibits: stringprep.SASLprep.Prohibits,
	CheckBiDi: true,
}

// prepare a password as clients do, so that the verifier is of what they send. What
// SASLprep refuses is used as it is, as PostgreSQL does.
func prepare(password string) string {
	mapped, err := profile.Prepare(password)
	if err != nil || mapped == "" {
		return password
	}
	return norm.NFKC.String(mapped)
}
