package words

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReasonsAreListed: docs/reasons.md has a row for each constant.
func TestReasonsAreListed(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "reasons.md"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "apis", "*", "v1", "reasons.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no reasons: %v", err)
	}
	for _, path := range files {
		group := filepath.Base(filepath.Dir(filepath.Dir(path)))
		_, table, _ := strings.Cut(string(page), "<!-- "+group+" reasons:")
		table, _, _ = strings.Cut(table, "<!-- end of "+group+" reasons")
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.ValueSpec); ok {
				for i, v := range s.Values {
					if value, ok := text(v); !ok || !strings.Contains(table, "\n| `"+value+"` | ") {
						t.Errorf("docs/reasons.md does not list %s of group %s: run make generate", s.Names[i].Name, group)
					}
				}
			}
			return true
		})
	}
}

// TestReasonsAreConstants: programs write no reason as a literal, but only constants, which are
// listed.
func TestReasonsAreConstants(t *testing.T) {
	packages := map[string]map[string]*ast.File{}
	files := token.NewFileSet()
	for _, dir := range []string{"apis", "cmd", "functions", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || isExempt(path) {
				return err
			}
			f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			in := filepath.Dir(path)
			if packages[in] == nil {
				packages[in] = map[string]*ast.File{}
			}
			packages[in][path] = f
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, in := range slices.Sorted(maps.Keys(packages)) {
		for _, l := range literals(packages[in]) {
			t.Errorf("%s: %s is written as a reason: list it as a constant in apis/<group>/v1/reasons.go", strings.TrimPrefix(files.Position(l.Pos()).String(), root+"/"), l.Value)
		}
	}
}

// isExempt reports whether a file declares the reasons, or simulates the conditions of other
// programs.
func isExempt(path string) bool {
	return filepath.Base(path) == "reasons.go" && strings.HasPrefix(path, filepath.Join(root, "apis")) ||
		filepath.Dir(path) == filepath.Join(root, "internal", "converge") ||
		filepath.Dir(path) == filepath.Join(root, "functions", "functionstest")
}

// called matches the names of fields, parameters and types that are reasons.
var called = regexp.MustCompile(`^([rR]eason|ConditionReason)$`)

// word matches a reason, but no message that another function takes at the same position. encoded
// matches a reason in JSON.
var (
	word    = regexp.MustCompile(`^\w+$`)
	encoded = regexp.MustCompile(`"reason": ?"\w`)
)

// literals returns the string literals that a package's files use as reasons, in the order of
// their positions.
func literals(files map[string]*ast.File) []*ast.BasicLit {
	// The position of the reason, by the name of a function that takes one or of a struct that
	// has one.
	places := map[string]int{"Normal": 0, "Warning": 0, "Reason": 0, "ConditionReason": 0, "WithReason": 0}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if i := place(n.Type.Params); i >= 0 {
					places[n.Name.Name] = i
				}
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok && place(s.Fields) >= 0 {
					places[n.Name.Name] = place(s.Fields)
				}
			}
			return true
		})
	}
	var out []*ast.BasicLit
	add := func(e ast.Expr) {
		if s, ok := text(e); ok && word.MatchString(s) {
			out = append(out, e.(*ast.BasicLit))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		ast.Inspect(files[path], func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.KeyValueExpr:
				if isCalled(n.Key) {
					add(n.Value)
				}
			case *ast.AssignStmt:
				for i, l := range n.Lhs {
					if isCalled(l) && len(n.Rhs) == len(n.Lhs) {
						add(n.Rhs[i])
					}
				}
			case *ast.ValueSpec:
				for i, v := range n.Values {
					if strings.HasPrefix(strings.ToLower(n.Names[i].Name), "reason") || isCalled(n.Type) {
						add(v)
					}
				}
			case *ast.CallExpr:
				if i, ok := places[nameOf(n.Fun)]; ok && i < len(n.Args) {
					add(n.Args[i])
				}
			case *ast.CompositeLit:
				of := elements(n.Type)
				if i, ok := places[nameOf(n.Type)]; ok && i < len(n.Elts) {
					add(n.Elts[i])
				}
				for _, e := range n.Elts {
					kv, isPair := e.(*ast.KeyValueExpr)
					switch {
					case of == nil:
					case isPair && isCalled(of.key):
						add(kv.Key)
					case isPair && isCalled(of.value):
						add(kv.Value)
					case !isPair && isCalled(of.value):
						add(e)
					}
				}
			case *ast.BasicLit:
				if s, ok := text(n); ok && encoded.MatchString(s) {
					out = append(out, n)
				}
			case *ast.FuncDecl:
				out = append(out, returned(n)...)
			}
			return true
		})
	}
	slices.SortFunc(out, func(a, b *ast.BasicLit) int { return int(a.Pos() - b.Pos()) })
	return slices.Compact(out)
}

// place returns the position of the reason among parameters or fields, or -1.
func place(fields *ast.FieldList) int {
	i := 0
	for _, f := range fields.List {
		for _, n := range f.Names {
			if called.MatchString(n.Name) {
				return i
			}
			i++
		}
	}
	return -1
}

// pair holds the types of a map's keys and values, or of a slice's elements.
type pair struct{ key, value ast.Expr }

func elements(t ast.Expr) *pair {
	switch t := t.(type) {
	case *ast.ArrayType:
		return &pair{value: t.Elt}
	case *ast.MapType:
		return &pair{key: t.Key, value: t.Value}
	default:
		return nil
	}
}

// returned returns the string literals that a function returns as its first result, if that is a
// type of reasons.
func returned(f *ast.FuncDecl) []*ast.BasicLit {
	if f.Body == nil || f.Type.Results == nil || !isCalled(f.Type.Results.List[0].Type) {
		return nil
	}
	var out []*ast.BasicLit
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) > 0 {
			if s, ok := text(r.Results[0]); ok && word.MatchString(s) {
				out = append(out, r.Results[0].(*ast.BasicLit))
			}
		}
		return true
	})
	return out
}

func isCalled(e ast.Expr) bool { return called.MatchString(nameOf(e)) }

// nameOf returns the name of an identifier, or of the selected field or function, or "".
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	default:
		return ""
	}
}

// text returns the value of a string literal, or false for another expression.
func text(e ast.Expr) (string, bool) {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(l.Value)
	return s, err == nil
}

func TestLiterals(t *testing.T) {
	cases := map[string]struct {
		reason string
		code   string
		want   []string
	}{
		"Constants":  {reason: "Constants are listed elsewhere.", code: `var c = Condition{Reason: appsv1.ReasonReady}; func f() { event.Normal(backupv1.ReasonReady, "Ready now") }`},
		"Field":      {reason: "A condition has a field for it.", code: `var c = &Condition{Type: "Ready", Reason: "Ready"}`, want: []string{`"Ready"`}},
		"Verdict":    {reason: "So has a verdict.", code: `var v = verdict{True: true, reason: "Healthy", message: "All is well"}`, want: []string{`"Healthy"`}},
		"Unkeyed":    {reason: "A struct may be written without names.", code: `type verdict struct { ok, no bool; reason, message string }; var v = verdict{true, false, "Healthy", "All is well"}`, want: []string{`"Healthy"`}},
		"Event":      {reason: "The first argument of an event is its reason.", code: `func f() { event.Warning("Failed", err); event.Normal(event.Reason("Done"), "x") }`, want: []string{`"Failed"`, `"Done"`}},
		"Conversion": {reason: "A conversion makes a reason of a string.", code: `var r = xpv2.ConditionReason("Ready")`, want: []string{`"Ready"`}},
		"Constant":   {reason: "A constant elsewhere is not listed.", code: `const Silent backup.Reason = "Silent"; const reasonDone = "Done"`, want: []string{`"Silent"`, `"Done"`}},
		"Parameter":  {reason: "A function of the package takes a reason.", code: `func (m *M) event(kind, reason, message string) {}; func f(m *M) { m.event("Normal", "Done", "x") }`, want: []string{`"Done"`}},
		"Assigned":   {reason: "A variable is called reason.", code: `func f() { c.Reason = "Done"; reason := "Full"; _ = reason }`, want: []string{`"Done"`, `"Full"`}},
		"Elements":   {reason: "Elements may be reasons.", code: `var a, b = []backup.Reason{"A"}, map[Subject]event.Reason{"pod": "B"}; var c = map[xpv2.ConditionReason]bool{"C": true}`, want: []string{`"A"`, `"B"`, `"C"`}},
		"Result":     {reason: "A function returns a reason.", code: `func f() backup.Reason { if x { return "A" }; return "" }`, want: []string{`"A"`}},
		"JSON":       {reason: "A report may be written as text.", code: "const c = `{\"reason\":\"Done\"}`", want: []string{"`{\"reason\":\"Done\"}`"}},
		"Read":       {reason: "What is only compared is another program's.", code: `func f() bool { return pod.Status.Reason == "Evicted" }`},
		"Message":    {reason: "Other strings are messages.", code: `func Errorf(reason Reason, format string) {}; func f() { log.Info("Not ready", "reason", why); fmt.Errorf("cannot read: %w", err) }`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\n"+tc.code, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, l := range literals(map[string]*ast.File{"x.go": f}) {
				got = append(got, l.Value)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nliterals(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
