package words

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// known are the names that the marker of a reason may contain.
type known struct{ kinds, conditions, fields map[string]bool }

// TestMarkers: the line +storeplane:of= of each reason names kinds, condition types and fields
// that exist, because docs/reasons.md repeats it.
func TestMarkers(t *testing.T) {
	// Ready is a constant of Crossplane's module, which is not parsed.
	k := known{kinds: map[string]bool{"every claim": true}, conditions: map[string]bool{"Ready": true}, fields: map[string]bool{}}
	var markers []string
	for _, dir := range []string{"apis", "functions", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			k.learn(f, dir == "apis")
			if dir == "apis" && filepath.Base(path) == "reasons.go" {
				for _, c := range f.Comments {
					markers = append(markers, markersOf(c.Text())...)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(markers) == 0 {
		t.Fatal("there are no markers")
	}
	for _, m := range markers {
		for _, name := range k.unknown(m) {
			t.Errorf("+storeplane:of=%s: %s is no kind, no type of a condition and no field of a status", m, name)
		}
	}
}

// markersOf returns the markers in a comment, without their prefix.
func markersOf(comment string) []string {
	var out []string
	for line := range strings.SplitSeq(comment, "\n") {
		if m, ok := strings.CutPrefix(line, "+storeplane:of="); ok {
			out = append(out, m)
		}
	}
	return out
}

// conditionName matches the names of constants that are condition types.
var conditionName = regexp.MustCompile(`^([cC]ondition|[tT]ype)[A-Z]`)

// learn adds the kinds, condition types and fields that a file declares.
func (k known) learn(f *ast.File, api bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			if api && n.Tok == token.TYPE && strings.Contains(n.Doc.Text(), "+kubebuilder:resource:") {
				k.kinds[n.Specs[0].(*ast.TypeSpec).Name.Name] = true
			}
		case *ast.ValueSpec:
			for i, v := range n.Values {
				if value, ok := text(v); ok && conditionName.MatchString(n.Names[i].Name) {
					k.conditions[value] = true
				}
			}
		case *ast.Field:
			if api && n.Tag != nil {
				if tag, err := strconv.Unquote(n.Tag.Value); err == nil {
					name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
					k.fields[name] = true
				}
			}
		}
		return true
	})
}

// unknown returns the names that do not exist, of a marker like "AppConfig, WebApp: Ready,
// status.atProvider.failed, event".
func (k known) unknown(marker string) []string {
	kinds, places, _ := strings.Cut(marker, ": ")
	var out []string
	for kind := range strings.SplitSeq(kinds, ", ") {
		if !k.kinds[kind] {
			out = append(out, kind)
		}
	}
	for place := range strings.SplitSeq(places, ", ") {
		switch {
		case place == "event", k.conditions[place]:
		case strings.HasPrefix(place, "status."):
			for field := range strings.SplitSeq(place, ".") {
				if !k.fields[field] {
					out = append(out, place)
					break
				}
			}
		default:
			out = append(out, place)
		}
	}
	return out
}

func TestUnknown(t *testing.T) {
	k := known{
		kinds:      map[string]bool{"AppConfig": true, "WebApp": true, "every claim": true},
		conditions: map[string]bool{"Ready": true, "Rendered": true},
		fields:     map[string]bool{"status": true, "atProvider": true, "failed": true},
	}
	cases := map[string]struct {
		reason string
		marker string
		want   []string
	}{
		"Known":     {reason: "All that it names exists.", marker: "AppConfig, WebApp: Ready, Rendered, status.atProvider.failed, event"},
		"Every":     {reason: "Claims have conditions in common.", marker: "every claim: Ready"},
		"Kind":      {reason: "A kind was renamed.", marker: "Config: Ready", want: []string{"Config"}},
		"Condition": {reason: "A condition was renamed.", marker: "AppConfig: Ready, Filled", want: []string{"Filled"}},
		"Field":     {reason: "A field was renamed.", marker: "AppConfig: status.atProvider.fault", want: []string{"status.atProvider.fault"}},
		"NoPlace":   {reason: "A kind alone does not show where the reason is.", marker: "AppConfig", want: []string{""}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, k.unknown(tc.marker)); diff != "" {
				t.Errorf("%s\nunknown(%q): -want, +got:\n%s", tc.reason, tc.marker, diff)
			}
		})
	}
}
