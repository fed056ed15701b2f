package appconfig

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
)

func TestRender(t *testing.T) {
	type config = map[string]string
	none := func(p *configv1.AppConfigParameters) { p.Templating = configv1.TemplatingNone }
	of := func(c config, changes ...func(*configv1.AppConfigParameters)) *configv1.AppConfigParameters {
		p := &configv1.AppConfigParameters{Application: "shop", Environment: configv1.Prod, Config: c, Values: config{"host": "db", "n": "3"}}
		for _, f := range changes {
			f(p)
		}
		return p
	}
	take := func(refs ...configv1.SecretReference) func(*configv1.AppConfigParameters) {
		return func(p *configv1.AppConfigParameters) { p.SecretRefs = refs }
	}
	keys := func(name string, keys ...configv1.SecretKey) configv1.SecretReference {
		return configv1.SecretReference{Name: name, Keys: keys}
	}
	secrets := map[string]map[string][]byte{
		"db":    {"user": []byte("u"), "password": []byte("p")},
		"cache": {"password": []byte("q")},
		"empty": {},
		"files": {"tls.crt": []byte("c")},
	}
	refused := func(reason, message string) *Problem { return &Problem{Reason: reason, Message: message} }

	cases := map[string]struct {
		reason  string
		params  *configv1.AppConfigParameters
		want    Content
		problem *Problem
	}{
		"Empty":    {reason: "Nothing is a content too.", params: of(nil), want: Content{Config: config{}}},
		"Plain":    {reason: "Values are kept as they are, with their white space.", params: of(config{"A": " x\n"}), want: Content{Config: config{"A": " x\n"}}},
		"Template": {reason: "Templates see where they are.", params: of(config{"A": "{{ .Application }}.{{ .Namespace }}.{{ .Environment }}:{{ .Values.host }}"}), want: Content{Config: config{"A": "shop.team.prod:db"}}},
		"Functions": {reason: "The functions there are.",
			params: of(config{"A": `{{ upper "a" }}{{ lower "B" }}{{ trim " c " }}{{ quote "d" }}{{ default "e" (index .Values "x") }}{{ default "f" .Values.n }}`, "B": "x:\n{{ indent 2 \"a\\nb\" }}"}),
			want:   Content{Config: config{"A": `Abc"d"e3`, "B": "x:\n  a\n  b"}}},
		"Range":   {reason: "Nothing repeats: what a template costs is bounded by its length.", params: of(config{"A": "{{ range $k, $v := .Values }}{{ $k }}={{ $v }};{{ end }}"}), problem: refused(configv1.ReasonInvalidTemplate, "config key A:1:9: range is not available: name each value")},
		"Compare": {reason: "Values are compared as texts.", params: of(config{"A": `{{ if and (eq .Environment "prod" "staging") (ne .Values.n 4) }}{{ .Values.n }}{{ else }}no{{ end }}`}), want: Content{Config: config{"A": "3"}}},
		"None":    {reason: "Without templating braces are braces.", params: of(config{"A": "{{ x }}"}, none), want: Content{Config: config{"A": "{{ x }}"}}},
		"Overlay": {reason: "The environment's overlay is laid over config and values.", params: of(config{"A": "{{ .Values.host }}", "B": "b"}, func(p *configv1.AppConfigParameters) {
			p.Overlays = map[string]configv1.Overlay{"prod": {Config: config{"C": "c", "B": "x"}, Values: config{"host": "ha"}}, "dev": {Config: config{"D": "d"}}}
		}), want: Content{Config: config{"A": "ha", "B": "x", "C": "c"}}},
		"Unknown":  {reason: "A value that is not there names the key and the place.", params: of(config{"A": "a\n b {{ .Values.hots }}"}), problem: refused(configv1.ReasonInvalidTemplate, `config key A:2:13: executing "A" at <.Values.hots>: map has no entry for key "hots"`)},
		"NoField":  {reason: "So does a name that templates cannot read.", params: of(config{"A": "{{ .Cluster }}"}), problem: refused(configv1.ReasonInvalidTemplate, `config key A:1:3: executing "A" at <.Cluster>: map has no entry for key "Cluster"`)},
		"Syntax":   {reason: "And what does not parse.", params: of(config{"A": "x", "b.conf": "\n{{ if }}"}), problem: refused(configv1.ReasonInvalidTemplate, `config key b.conf:2: missing value for if`)},
		"NoSuch":   {reason: "There is nothing that reads what is around the provider.", params: of(config{"A": `{{ env "PATH" }}`}), problem: refused(configv1.ReasonInvalidTemplate, `config key A:1: function "env" not defined`)},
		"Define":   {reason: "Templates that call each other could do so without end.", params: of(config{"A": `{{ define "x" }}{{ template "x" }}{{ end }}{{ template "x" }}`}), problem: refused(configv1.ReasonInvalidTemplate, "config key A: define, block and template are not available")},
		"Doubling": {reason: "Text that doubles ends at some point.", params: of(config{"A": `{{ $x := "\n\n\n\n" }}` + strings.Repeat("{{ $x = indent 100 $x }}", 1000)}), problem: refused(configv1.ReasonInvalidTemplate, `config key A:1:3126: executing "A" at <indent 100 $x>: error calling indent: the templates make too much text`)},
		"Printf":   {reason: "Functions are those of the list.", params: of(config{"A": `{{ printf "%9999d" 1 }}`}), problem: refused(configv1.ReasonInvalidTemplate, `config key A:1:3: printf is not available: there are and, default, eq, indent, index, lower, ne, not, or, quote, trim, upper`)},
		"Hidden":   {reason: "Wherever they stand.", params: of(config{"A": `{{ if .Values.n }}{{ else }}{{ with (index (slice .Values) "n") }}{{ end }}{{ end }}`}), problem: refused(configv1.ReasonInvalidTemplate, `config key A:1:44: slice is not available: there are and, default, eq, indent, index, lower, ne, not, or, quote, trim, upper`)},
		"Break":    {reason: "What ends a loop has none to end.", params: of(config{"A": `{{ break }}`}), problem: refused(configv1.ReasonInvalidTemplate, `config key A:1: {{break}} outside {{range}}`)},
		"Long":     {reason: "A template is not as long as a file.", params: of(config{"A": "{{ .Values.n }}" + strings.Repeat(" ", longestTemplate)}), problem: refused(configv1.ReasonTooLarge, "config key A: a template has at most 64 KiB, and those of an AppConfig 256 KiB in all: set templating to None, or split the AppConfig")},
		"LongFile": {reason: "A file without braces may be.", params: of(config{"A": strings.Repeat(" ", 2*longestTemplate)}), want: Content{Config: config{"A": strings.Repeat(" ", 2*longestTemplate)}}},
		"Key":      {reason: "The API server would refuse the ConfigMap.", params: of(config{"a b": "x"}, none), problem: refused(configv1.ReasonInvalidKey, `key "a b" must have at most 253 letters, digits, '-', '_' or '.'`)},
		"File":     {reason: "A key that is no variable's name would get nowhere.", params: of(config{"app.properties": "x"}), problem: refused(configv1.ReasonInvalidKey, "key app.properties cannot be an environment variable: set inject.mountPath to have it as a file, or inject.env to false to have neither")},
		"FileMounted": {reason: "Unless there are files.", params: of(config{"app.properties": "x"}, func(p *configv1.AppConfigParameters) {
			p.Inject = &configv1.Inject{MountPath: "/etc/shop"}
		}), want: Content{Config: config{"app.properties": "x"}}},
		"FileByHand": {reason: "Or nothing is injected.", params: of(config{"app.properties": "x"}, func(p *configv1.AppConfigParameters) {
			p.Inject = &configv1.Inject{Env: new(false)}
		}), want: Content{Config: config{"app.properties": "x"}}},
		"FileOfOwner": {reason: "Or the workload's owner injects it.", params: of(config{"app.properties": "x"}, func(p *configv1.AppConfigParameters) {
			p.Rollout = &configv1.Rollout{By: configv1.ByOwner}
		}), want: Content{Config: config{"app.properties": "x"}}},
		"Large": {reason: "A ConfigMap holds one MiB.", params: of(config{"A": strings.Repeat("x", limit)}), problem: refused(configv1.ReasonTooLarge, "config has more than 1 MiB")},
		"Secret": {reason: "All keys of a Secret, or some under other names.", params: of(config{"A": "x"}, take(configv1.SecretReference{Name: "db"}, keys("cache", configv1.SecretKey{Key: "password", As: "CACHE_PASSWORD"}))),
			want: Content{Config: config{"A": "x"}, Secret: map[string][]byte{"user": []byte("u"), "password": []byte("p"), "CACHE_PASSWORD": []byte("q")}}},
		"NoSecret":      {reason: "What is missing is said.", params: of(nil, take(keys("mail"))), problem: refused(configv1.ReasonSecretNotFound, "there is no Secret mail")},
		"NoKey":         {reason: "And so is a key.", params: of(nil, take(keys("db", configv1.SecretKey{Key: "host"}))), problem: refused(configv1.ReasonSecretKeyNotFound, "Secret db has no key host")},
		"EmptySecret":   {reason: "A Secret may be empty.", params: of(nil, take(keys("empty"))), want: Content{Config: config{}}},
		"Conflict":      {reason: "One key has one value.", params: of(config{"user": "x"}, take(keys("db"))), problem: refused(configv1.ReasonKeyConflict, "key user is both in config and in Secret db: rename one of them, that of the Secret with secretRefs[].keys[].as")},
		"SecretsClash":  {reason: "From one Secret.", params: of(nil, take(keys("db"), keys("cache"))), problem: refused(configv1.ReasonKeyConflict, "key password is taken from both Secret db and Secret cache: rename one of them with secretRefs[].keys[].as")},
		"SecretIsAFile": {reason: "Keys of Secrets are told apart alike.", params: of(nil, take(keys("files"))), problem: refused(configv1.ReasonInvalidKey, "key tls.crt cannot be an environment variable: set inject.mountPath to have it as a file, or inject.env to false to have neither")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			got, problem := Render(tc.params, "team", secrets)
			if diff := cmp.Diff(tc.problem, problem); diff != "" {
				t.Errorf("%s\nRender(...): -want problem, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nRender(...): -want, +got:\n%s", tc.reason, diff)
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("Render(...) took %s", took)
			}
		})
	}
}

// hostile returns AppConfigs that are expensive to render, by what is expensive in them.
func hostile() map[string]*configv1.AppConfigParameters {
	big := strings.Repeat("\n", 900<<10)
	of := func(action string) *configv1.AppConfigParameters {
		p := &configv1.AppConfigParameters{Application: "a", Config: map[string]string{}, Values: map[string]string{"a": big, "b": "x"}}
		for _, k := range []string{"A", "B", "C", "D"} {
			p.Config[k] = strings.Repeat(action, (longestTemplate-2)/len(action))
		}
		return p
	}
	return map[string]*configv1.AppConfigParameters{
		"Compare": of("{{ if eq .Values.a .Values.a }}{{ end }}"),
		"Indent":  of("{{ $x := indent 100 .Values.a }}"),
		"Upper":   of("{{ $x := upper (lower .Values.a) }}"),
		"Quote":   of("{{ $x := .Values.a | quote | quote }}"),
		"Index":   of("{{ $x := index .Values .Values.a }}"),
		"Loop":    of("{{ range .Values }}{{ . }}{{ end }}"),
		"Deep":    of("{{ if .Values.b }}"),
		"Parens":  {Application: "a", Config: map[string]string{"A": "{{" + strings.Repeat("(", longestTemplate-4) + "}}"}},
		"All":     of("{{ $x := .Values }}{{ $y := $x }}{{ not $x }}"),
		"Print":   of("{{ .Values }}"),
		"Dots":    {Application: "a", Config: map[string]string{"A": `{{ eq ""` + strings.Repeat(" .", 32000) + " }}"}, Values: many()},
	}
}

// many returns values of 900 KiB in a thousand keys.
func many() map[string]string {
	out := map[string]string{}
	for i := range 1000 {
		out[fmt.Sprintf("key-%d", i)] = strings.Repeat("x", 900)
	}
	return out
}

// TestHostile: no template makes a function read all values at once, however often it asks.
func TestHostile(t *testing.T) {
	start := time.Now()
	_, problem := Render(hostile()["Dots"], "n", nil)
	if problem == nil || !strings.Contains(problem.Message, "a function takes a text, a number or a truth value") {
		t.Errorf("want a refusal, got %+v", problem)
	}
	if took := time.Since(start); took > renderTimeout {
		t.Errorf("it took %s", took)
	}
}

// BenchmarkHostile measures the most expensive templates. None may reach the time limit of Render.
func BenchmarkHostile(b *testing.B) {
	for name, p := range hostile() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, problem := Render(p, "n", nil)
				if problem != nil && strings.Contains(problem.Message, errTooSlow.Error()) {
					b.Fatal(problem.Message)
				}
			}
		})
	}
}

// FuzzRender: no template makes Render panic, or return more than the limit.
func FuzzRender(f *testing.F) {
	for _, s := range []string{"{{ .Values.a }}", "{{ range .Values }}{{ . }}{{ end }}", `{{ if eq .Values.a "b" }}{{ .Values.a | quote }}{{ end }}`, "{{", `{{ indent 3 "x" }}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p := &configv1.AppConfigParameters{Application: "a", Config: map[string]string{"A": text}, Values: map[string]string{"a": "b"}}
		c, problem := Render(p, "n", nil)
		if problem == nil && len(c.Config["A"]) > limit {
			t.Errorf("%d bytes were made", len(c.Config["A"]))
		}
	})
}
