// Package words tests that messages, API fields and pages use the terms of docs/glossary.md, and
// do not describe programs as persons.
package words

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// term is a word that is not used, with what to write instead.
type term struct {
	words   *regexp.Regexp
	instead string
}

// avoided are not used at all.
var avoided = []term{
	{regexp.MustCompile(`(?i)\b(nobody|somebody|anybody|everybody|no one|someone)\b`), "the client, controller or user that is meant"},
	{regexp.MustCompile(`(?i)\bcan not\b`), "cannot"},
	{regexp.MustCompile(`(?i)\bmend(s|ed|ing)?\b`), "fix, repair"},
	{regexp.MustCompile(`(?i)\bin words\b`), "with a message"},
	{regexp.MustCompile(`(?i)\b(is|are|was|were|be|been|not) told\b`), "reported, shown"},
	{regexp.MustCompile(`(?i)\bfarewell\b`), "release the leader lock"},
	{regexp.MustCompile(`(?i)\bbegins? anew\b`), "retry, start over"},
	{regexp.MustCompile(`(?i)\bthe way through\b`), "architecture"},
	{regexp.MustCompile(`(?i)\bhour of need\b`), "disaster recovery"},
	{regexp.MustCompile(`(?i)\bwhat is not there yet\b`), "limitations"},
	{regexp.MustCompile(`(?i)\b(brought )?in line\b`), "reconciled, in sync"},
	{regexp.MustCompile(`(?i)\bin step\b`), "in sync, synchronous"},
	{regexp.MustCompile(`(?i)\b(take|takes|taken|took) (itself |themselves )?back\b`), "rolled back"},
	{regexp.MustCompile(`(?i)\b(a while|now and then)\b`), "the time itself"},
	{regexp.MustCompile(`(?i)\blooked at\b`), "checked, polled, observed"},
}

// ofPersons are the words for programs and objects that messages and the API's comments avoid, as
// avoided are. Pages may use them of persons.
var ofPersons = []term{
	{regexp.MustCompile(`(?i)\b(tells?|told|says|said)\b`), "reports, shows, defines"},
	{regexp.MustCompile(`(?i)\b(looks?|looking) (at|for|into|whether)\b`), "checks, polled, observed"},
	{regexp.MustCompile(`(?i)\banew\b`), "again"},
}

const root = "../.."

// TestMessages: what programs print, and the comments of the API's fields, contain no avoided
// words.
func TestMessages(t *testing.T) {
	for _, dir := range []string{"apis", "cmd", "functions", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files := token.NewFileSet()
			f, err := parser.ParseFile(files, path, nil, parser.ParseComments)
			if err != nil {
				return err
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
					if s, err := strconv.Unquote(l.Value); err == nil {
						checkMessage(t, files.Position(l.Pos()).String(), s)
					}
				}
				return true
			})
			if dir == "apis" {
				for _, c := range f.Comments {
					checkMessage(t, files.Position(c.Pos()).String(), c.Text())
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestPages: the pages of the documentation contain no avoided words.
func TestPages(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("there are no pages: %v", err)
	}
	for _, p := range append(pages, filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md"), filepath.Join(root, "SECURITY.md"), filepath.Join(root, "package/release/README.md")) {
		if err := checkLines(t, p); err != nil {
			t.Fatal(err)
		}
	}
}

// TestShipped: alerts, dashboards, manifests and examples contain no avoided words, nor do their
// comments.
func TestShipped(t *testing.T) {
	found := 0
	for _, dir := range []string{"compositions", "crossplane.yaml", "examples", "package"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !slices.Contains([]string{".json", ".yaml"}, filepath.Ext(path)) {
				return err
			}
			found++
			return checkLines(t, path)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found == 0 {
		t.Fatal("there are no manifests")
	}
}

// checkLines checks each line of a file.
func checkLines(t *testing.T, path string) error {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	n := 0
	for line := range strings.Lines(string(raw)) {
		n++
		check(t, fmt.Sprintf("%s:%d", path, n), line)
	}
	return nil
}

// notOurs are beginnings of comments of Kubernetes' and Crossplane's fields.
var notOurs = []string{"ObservedGeneration is the latest metadata.generation", "it can not recover from without human intervention"}

func check(t *testing.T, where, text string) {
	t.Helper()
	report(t, where, text, avoided)
}

func checkMessage(t *testing.T, where, text string) {
	t.Helper()
	report(t, where, text, slices.Concat(avoided, ofPersons))
}

func report(t *testing.T, where, text string, avoided []term) {
	t.Helper()
	// A single word is a name.
	if !strings.Contains(text, " ") || slices.ContainsFunc(notOurs, func(s string) bool { return strings.Contains(text, s) }) {
		return
	}
	for _, a := range avoided {
		if found := a.words.FindString(text); found != "" {
			t.Errorf("%s: %q: write %s", strings.TrimPrefix(where, root+"/"), found, a.instead)
		}
	}
}
