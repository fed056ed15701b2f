package verifier

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestCrypt: the digests are those of the specification's examples, and of a server's own verifier.
func TestCrypt(t *testing.T) {
	for name, c := range map[string]struct {
		reason, password, salt string
		rounds                 int
		want                   string
	}{
		"Default": {reason: "The specification's first example.", password: "Hello world!", salt: "saltstring", rounds: 5000, want: "5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5"},
		"Rounds":  {reason: "Its second.", password: "Hello world!", salt: "saltstringsaltst", rounds: 10000, want: "3xv.VbSHBb41AL9AvLeujZkZRBAwqFMz2.opqey6IcA"},
		"Longer":  {reason: "Its third.", password: "This is just a test", salt: "toolongsaltstrin", rounds: 5000, want: "Un/5jzAHMgOGZ5.mWJpuVolil07guHPvOW8mGRcvxa5"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(crypt([]byte(c.password), []byte(c.salt), c.rounds)); got != c.want {
				t.Errorf("%s\ncrypt(%q, %q, %d): got %s, want %s", c.reason, c.password, c.salt, c.rounds, got, c.want)
			}
		})
	}
}

// TestLaws: a verifier is of its password and of no other, and contains nothing that a statement
// could not.
func TestLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		password := rapid.StringN(1, 60, 120).Draw(t, "password")
		v := New(password)
		if !Matches(v, password) {
			t.Fatalf("Matches(%q): got false for its own password", v)
		}
		if Matches(v, password+"x") || Matches(v, strings.ToUpper(password)+"y") {
			t.Fatalf("Matches(%q): got true for another password", v)
		}
		if bytes.Equal(v, New(password)) {
			t.Fatalf("New(%q): got the same verifier twice", password)
		}
	})
	for _, stored := range []string{"", "$A$", "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19", "$A$005$short"} {
		if Matches([]byte(stored), "x") {
			t.Errorf("Matches(%q): got true", stored)
		}
	}
}
