package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ofMarker begins a line in a constant's comment that names kinds, and their conditions, events and
// fields that have the reason.
const ofMarker = "+storeplane:of="

// reason is a reason that a constant of apis/<group>/v1/reasons.go documents.
type reason struct{ value, of, meaning string }

// reasons writes a table of the reasons of each group into a page.
func reasons(apis, page string) error {
	files, err := filepath.Glob(filepath.Join(apis, "*", "v1", "reasons.go"))
	if err != nil {
		return err
	}
	b, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	for _, f := range files {
		read, err := readReasons(f)
		if err != nil {
			return err
		}
		group := filepath.Base(filepath.Dir(filepath.Dir(f)))
		if b, err = replace(b, group+" reasons", reasonTable(read)); err != nil {
			return fmt.Errorf("cannot write %s: %w", page, err)
		}
	}
	return os.WriteFile(page, b, 0o644)
}

// readReasons returns the reasons in a file, sorted by their values.
func readReasons(path string) ([]reason, error) {
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var out []reason
	for _, d := range f.Decls {
		constants, ok := d.(*ast.GenDecl)
		if !ok || constants.Tok != token.CONST {
			continue
		}
		for _, s := range constants.Specs {
			constant, ok := s.(*ast.ValueSpec)
			if !ok {
				continue
			}
			r, err := readReason(constant)
			if err != nil {
				return nil, fmt.Errorf("cannot read %s: %w", path, err)
			}
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b reason) int { return strings.Compare(strings.ToLower(a.value), strings.ToLower(b.value)) })
	return out, nil
}

// readReason reads a constant, whose comment is one sentence and the markers.
func readReason(s *ast.ValueSpec) (reason, error) {
	name := s.Names[0].Name
	if len(s.Values) != 1 {
		return reason{}, fmt.Errorf("constant %s has no value", name)
	}
	literal, ok := s.Values[0].(*ast.BasicLit)
	if !ok {
		return reason{}, fmt.Errorf("the value of %s is no string", name)
	}
	value, err := strconv.Unquote(literal.Value)
	if err != nil {
		return reason{}, fmt.Errorf("the value of %s is no string", name)
	}
	if name != "Reason"+value {
		return reason{}, fmt.Errorf("the constant of reason %s is called %s: call it Reason%s", value, name, value)
	}
	var sentence, of []string
	for line := range strings.SplitSeq(strings.TrimSpace(s.Doc.Text()), "\n") {
		if kinds, ok := strings.CutPrefix(line, ofMarker); ok {
			of = append(of, kinds)
			continue
		}
		sentence = append(sentence, line)
	}
	meaning, begins := strings.CutPrefix(strings.Join(sentence, " "), name+" means that ")
	meaning, ends := strings.CutSuffix(meaning, ".")
	switch {
	case !begins, !ends:
		return reason{}, fmt.Errorf("the comment of %s is no sentence that begins with %q", name, name+" means that")
	case len(of) == 0:
		return reason{}, fmt.Errorf("the comment of %s does not name the conditions and events: add a line %sKind: Condition, event", name, ofMarker)
	}
	return reason{value: value, of: strings.Join(of, "; "), meaning: strings.ToUpper(meaning[:1]) + meaning[1:]}, nil
}

func reasonTable(reasons []reason) string {
	var b strings.Builder
	b.WriteString("| reason | of | meaning |\n|---|---|---|\n")
	for _, r := range reasons {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.value, cell(r.of), cell(r.meaning))
	}
	return b.String()
}
