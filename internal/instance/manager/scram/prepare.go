package scram

import (
	"github.com/xdg-go/stringprep"
	"golang.org/x/text/unicode/norm"
)

// profile is SASLprep (RFC 4013) as pg_saslprep of PostgreSQL implements it, in libpq and in
// the server: it checks a password before it normalises it, and a zero width space, which the
// RFC maps both to a space and to nothing, becomes a space. The library's table lacks the
// Mongolian soft hyphen.
var profile = stringprep.Profile{
	Mappings:  append([]stringprep.Mapping{{'\u200b': {' '}, '\u1806': {}}}, stringprep.SASLprep.Mappings...),
	Prohibits: stringprep.SASLprep.Prohibits,
	CheckBiDi: true,
}

// prepare prepares a password as clients do, so that the verifier is of what they send. A
// password that SASLprep rejects is used as it is, as PostgreSQL does.
func prepare(password string) string {
	mapped, err := profile.Prepare(password)
	if err != nil || mapped == "" {
		return password
	}
	return norm.NFKC.String(mapped)
}
