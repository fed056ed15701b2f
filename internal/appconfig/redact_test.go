package appconfig

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestLastWords(t *testing.T) {
	secret := func(v string) map[string][]byte { return map[string][]byte{"db/password": []byte(v)} }
	cases := map[string]struct {
		reason  string
		log     string
		secrets map[string][]byte
		want    string
	}{
		"Plain":   {reason: "What is no secret is told.", log: "started\npanic: no title\n", want: "started\npanic: no title"},
		"Lines":   {reason: "The last ten lines.", log: strings.Repeat("a\n\n", 20), want: strings.TrimSpace(strings.Repeat("a\n", 10))},
		"Bytes":   {reason: "And of them the last half of a KiB.", log: strings.Repeat("x", 600) + "end", want: strings.Repeat("x", 509) + "end"},
		"Value":   {reason: "A value is hidden, wherever it is.", log: "login with s3cr3t! failed: [s3cr3t!]", secrets: secret("s3cr3t!"), want: "login with *** failed: [***]"},
		"Newline": {reason: "Though the Secret's file ends with a line feed.", log: "x s3cr3t! y", secrets: secret("s3cr3t!\n"), want: "x *** y"},
		"Base64":  {reason: "As Kubernetes would show it.", log: "data: " + base64.StdEncoding.EncodeToString([]byte("s3cr3t!")), secrets: secret("s3cr3t!"), want: "data: ***"},
		"Escaped": {reason: "And as URLs do.", log: "GET /?p=a%26b%3Dc", secrets: secret("a&b=c"), want: "GET /?p=***"},
		"Short":   {reason: "A short value is hidden where it is a word.", log: "pin 42 42 of 1420", secrets: secret("42"), want: "pin *** *** of 1420"},
		"PEM":     {reason: "A value of several lines is hidden line by line.", log: "key MIIEabc loaded", secrets: secret("-----BEGIN KEY-----\nMIIEabc\n-----END KEY-----"), want: "key *** loaded"},
		"URL":     {reason: "Who is in a URL is hidden, whatever the Secrets are.", log: "dial postgres://u:p@w@db:5432/x: refused", want: "dial postgres://***@db:5432/x: refused"},
		"Token":   {reason: "So are tokens.", log: "Authorization: Bearer eyJhbGciOi.eyJzdWIi.c2ln", want: "Authorization: Bearer ***"},
		"Colours": {reason: "Terminals' commands are no words.", log: "\x1b[31mERROR\x1b[0m bad\r\n", want: "ERROR bad"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, LastWords(tc.log, tc.secrets)); diff != "" {
				t.Errorf("%s\nLastWords(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPropertyLastWords: a value is in no form in what is told, and what is told
// is short.
func TestPropertyLastWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringMatching(`[a-zA-Z0-9!/+=]{4,40}`).Draw(t, "value")
		pieces := rapid.SliceOf(rapid.OneOf(
			rapid.StringMatching(`[ \n:a-z]{0,30}`), rapid.Just(value),
			rapid.Just(base64.StdEncoding.EncodeToString([]byte(value))),
		)).Draw(t, "log")
		got := LastWords(strings.Join(pieces, " "), map[string][]byte{"a": []byte(value)})
		if strings.Contains(got, value) {
			t.Fatalf("%q is told: %q", value, got)
		}
		if len(got) > logBytes || strings.Count(got, "\n") >= logLines {
			t.Fatalf("too much is told: %q", got)
		}
	})
}
