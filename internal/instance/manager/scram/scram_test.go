package scram

import (
	"encoding/base64"
	"strings"
	"testing"
)

func TestVerifier(t *testing.T) {
	// RFC 7677, section 3, gives user "user", password "pencil", this salt and 4096 iterations. The
	// keys are those from which its proofs are computed, in the form in which PostgreSQL stores
	// them.
	salt, err := base64.StdEncoding.DecodeString("W22ZaJ0SNY7soEsUEjb6gQ==")
	if err != nil {
		t.Fatal(err)
	}
	got, err := verifier("pencil", salt, 4096)
	if err != nil {
		t.Fatal(err)
	}
	want := "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
	if got != want {
		t.Errorf("verifier(pencil): got %s, want %s", got, want)
	}
}

func TestMatches(t *testing.T) {
	drawn, err := Verifier("s3cret")
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason           string
		stored, password string
		want             bool
	}{
		"Own":       {reason: "A verifier is its own password's", stored: drawn, password: "s3cret", want: true},
		"Other":     {reason: "Another password is not it", stored: drawn, password: "s3cre"},
		"Empty":     {reason: "A role without a password matches none", password: "s3cret"},
		"MD5":       {reason: "What an older server stored is replaced", stored: "md5" + strings.Repeat("0", 32), password: "s3cret"},
		"NoCount":   {reason: "What cannot be read does not match", stored: "SCRAM-SHA-256$x:AAAA$a:b", password: "s3cret"},
		"NoSalt":    {reason: "What cannot be read does not match", stored: "SCRAM-SHA-256$4096$a:b", password: "s3cret"},
		"FewParts":  {reason: "What cannot be read does not match", stored: "SCRAM-SHA-256$4096:AAAA", password: "s3cret"},
		"ZeroCount": {reason: "No iterations are no key", stored: "SCRAM-SHA-256$0:AAAA$a:b", password: "s3cret"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Matches(tc.stored, tc.password); got != tc.want {
				t.Errorf("%s: Matches(...): got %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}

func TestPrepare(t *testing.T) {
	cases := map[string]struct{ reason, in, want string }{
		"ASCII":      {reason: "ASCII stays", in: "pen cil", want: "pen cil"},
		"Hyphen":     {reason: "A soft hyphen goes (RFC 4013, example 1)", in: "I\u00adX", want: "IX"},
		"Ordinal":    {reason: "Compatibility forms are folded (RFC 4013, example 4)", in: "\u00aa", want: "a"},
		"Roman":      {reason: "Compatibility forms are folded (RFC 4013, example 5)", in: "\u2168", want: "IX"},
		"Space":      {reason: "Every space is the plain one", in: "a\u00a0b", want: "a b"},
		"Prohibited": {reason: "What is refused is taken as it is", in: "a\u0085\u00aa", want: "a\u0085\u00aa"},
		"Invalid":    {reason: "What is no UTF-8 is taken as it is", in: "a\xff\u00a0", want: "a\xff\u00a0"},
		"Control":    {reason: "A control character of ASCII is refused, and taken as it is", in: "a\tb\u00a0", want: "a\tb\u00a0"},
		"Nothing":    {reason: "An empty password is refused", in: "\u00ad", want: "\u00ad"},
		"ZeroWidth":  {reason: "PostgreSQL takes a zero width space for a space", in: "a\u200bb", want: "a b"},
		"Mongolian":  {reason: "A Mongolian soft hyphen is mapped to nothing", in: "a\u1806b", want: "ab"},
		"Bidi":       {reason: "Letters of both directions are refused", in: "\u05d0a\u00a0", want: "\u05d0a\u00a0"},
		"Unassigned": {reason: "What Unicode 3.2 has not is refused, though it has a compatibility form", in: "\U0001f130\u00a0", want: "\U0001f130\u00a0"},
		"Unchecked":  {reason: "What is checked is not normalised yet", in: "\u0340", want: "\u0340"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := prepare(tc.in); got != tc.want {
				t.Errorf("%s: prepare(%q): got %q, want %q", tc.reason, tc.in, got, tc.want)
			}
		})
	}
}
