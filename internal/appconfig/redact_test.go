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

// TestPropertyLastWords: what is reported of a log contains a secret value in no form, and is
// short.
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

// TestRedact: what looks like a secret is hidden, and the rest of the line stays readable.
func TestRedact(t *testing.T) {
	cases := map[string]struct{ reason, text, want string }{
		"DSN":           {"Go's driver of MySQL has no scheme.", "dial app:hunter2@tcp(db:3306)/shop: refused", "dial app:***@tcp(db:3306)/shop: refused"},
		"DSNAssigned":   {"It stands after an equals sign, too.", "DSN=app:hunter2@tcp(db)", "DSN=app:***@tcp(db)"},
		"DSNAt":         {"A password may have an at sign.", "app:hunt@er2@tcp(db)", "app:***@tcp(db)"},
		"DSNDigits":     {"A number may be one.", "app:12345@db", "app:***@db"},
		"Slash":         {"A password may have a slash.", "dial postgres://app:pa/ss@db:5432/x: refused", "dial postgres://***@db:5432/x: refused"},
		"SlashAt":       {"And an at sign after it.", "postgres://app:pa/s@s@db/x", "postgres://***@db/x"},
		"NoUser":        {"There may be no user.", "redis://:hunter2@cache:6379/0", "redis://***@cache:6379/0"},
		"Pass":          {"Names are shortened.", "DB_PASS=hunter2 DB_HOST=db", "DB_PASS=*** DB_HOST=db"},
		"Passwd":        {"In several ways.", "MYSQL_PASSWD=hunter2", "MYSQL_PASSWD=***"},
		"Pwd":           {"Another one.", "Server=db;Uid=app;Pwd=hunter2;Ssl=true", "Server=db;Uid=app;Pwd=***;Ssl=true"},
		"Key":           {"What ends in KEY is one.", "STRIPE_KEY=sk_live_1 ready", "STRIPE_KEY=*** ready"},
		"PrivateKey":    {"In small letters, where the name says so.", "private-key: abc", "private-key: ***"},
		"CamelKey":      {"And in mixed ones.", `{"secretKey":"abc","user":"a"}`, `{"secretKey":"***","user":"a"}`},
		"Token":         {"A token.", "GITHUB_TOKEN=ghp_1", "GITHUB_TOKEN=***"},
		"Secret":        {"A secret.", "client_secret: abc", "client_secret: ***"},
		"Comma":         {"A password may have a comma.", "password=hun,ter2", "password=***"},
		"Query":         {"What comes after it in a query can be read.", "/login?password=a&user=b", "/login?password=***&user=b"},
		"Quoted":        {"It may have spaces in quotes.", `password: "hunter 2" user: app`, `password: "***" user: app`},
		"Escaped":       {"JSON in JSON has backslashes.", `{\"password\":\"hunter2\",\"user\":\"app\"}`, `{\"password\":\"***\",\"user\":\"app\"}`},
		"Flag":          {"A flag's value comes after a space.", "exec: app --db-password hunter2 --port 80", "exec: app --db-password *** --port 80"},
		"Bearer":        {"A header may be in a log.", "Authorization: Bearer abc123", "Authorization: Bearer ***"},
		"Basic":         {"It has a user's password.", `"authorization":"Basic YXBwOmh1bnRlcjI="`, `"authorization":"Basic ***"`},
		"BearerAlone":   {"Also without its name.", "got Bearer s3cr3t-t0ken from a", "got Bearer *** from a"},
		"BasicAlone":    {"The same.", "sent Basic YXBwOmh1bnRlcjI= to a", "sent Basic *** to a"},
		"RawHeader":     {"A header may have no scheme.", "authorization: 0123456789abcdef0123", "authorization: ***"},
		"C1":            {"A terminal obeys characters of 8 bits, too.", "a\u009b31mb\u0085c\u009d0;x\u009c", "abc0;x"},
		"Direction":     {"What turns the direction of text around shows another one.", "a\u202eb\u2066c", "abc"},
		"Colours":       {"Terminals' commands are no words.", "\x1b[31mERROR\x1b[0m bad", "ERROR bad"},
		"Umlaut":        {"Other letters stay.", "Größe: 5 · ünlü → Ελλάδα", "Größe: 5 · ünlü → Ελλάδα"},
		"Digest":        {"An image's digest is no password.", `pull "registry:5000/app:v1@sha256:0a1b": not found`, `pull "registry:5000/app:v1@sha256:0a1b": not found`},
		"TagDigest":     {"With a tag.", "image app:v1@sha256:0a1b is not there", "image app:v1@sha256:0a1b is not there"},
		"PortPath":      {"A host with a port is no user.", "GET http://registry:4873/@scope/pkg 404", "GET http://registry:4873/@scope/pkg 404"},
		"Path":          {"Nor is a path.", "GET https://example.com/a:b/users/a@example.com 404", "GET https://example.com/a:b/users/a@example.com 404"},
		"Mail":          {"Nor is an address.", "mail to app@example.com and mailto:app@example.com", "mail to app@example.com and mailto:app@example.com"},
		"Voters":        {"Nor are servers.", "voters 1@kafka-0:9093,2@kafka-1:9093", "voters 1@kafka-0:9093,2@kafka-1:9093"},
		"Module":        {"Nor is a module.", "go: example.com/x@v1.2.3: reading", "go: example.com/x@v1.2.3: reading"},
		"Scp":           {"Nor a repository.", "clone git@github.com:acme/shop.git", "clone git@github.com:acme/shop.git"},
		"WorkingFolder": {"The folder is no password.", "PWD=/usr/src/app OLDPWD=/", "PWD=/usr/src/app OLDPWD=/"},
		"Bypass":        {"Words that end so are none.", "bypass: true, tests passed: 12, compass=north", "bypass: true, tests passed: 12, compass=north"},
		"Duplicate":     {"PostgreSQL's keys are none.", "duplicate key value violates unique constraint: Key (id)=(5) exists", "duplicate key value violates unique constraint: Key (id)=(5) exists"},
		"PrimaryKey":    {"Nor are those of tables.", "primary_key=id partition_key: day, key: value", "primary_key=id partition_key: day, key: value"},
		"Failed":        {"The reason can be read.", `FATAL: password authentication failed for user "app"`, `FATAL: password authentication failed for user "app"`},
		"Basics":        {"Words after these can be read.", "basic authentication failed: bearer authentication required", "basic authentication failed: bearer authentication required"},
		"Denied":        {"A sentence can be read.", "authorization: denied for user app", "authorization: denied for user app"},
		"Tokens":        {"Numbers of tokens can be read.", "max_tokens=512, tokens: 7", "max_tokens=512, tokens: 7"},
		"Time":          {"Times can be read.", "2026-01-01T12:30:01Z panic: nil at main.go:10:5", "2026-01-01T12:30:01Z panic: nil at main.go:10:5"},
		"Missing":       {"What is missing can be read.", `secret "shop-key" not found, key DATABASE_URL is missing`, `secret "shop-key" not found, key DATABASE_URL is missing`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Redact(tc.text)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nRedact(...): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(got, Redact(got)); diff != "" {
				t.Errorf("%s\nRedact(Redact(...)): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
