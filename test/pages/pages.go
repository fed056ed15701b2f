// Package pages keeps the parts of documents that are generated from code up to date: outputs
// recorded by tests, and JSON Schemas.
package pages

import (
	"bytes"
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/invopop/jsonschema"
)

// Root is the root of the repository, seen from a package two folders below it.
const Root = "../.."

var recording = regexp.MustCompile("(?s)<!-- ([a-z/]+/testdata/[a-z-]+\\.txt) -->\n```\n.*?```\n")

// Recordings checks that the recorded outputs in a page equal the golden files that the comments
// before them name. With update it writes them to the page instead.
func Recordings(t *testing.T, page string, update bool) {
	t.Helper()
	was, err := os.ReadFile(filepath.Join(Root, page))
	if err != nil {
		t.Fatal(err)
	}
	got := recording.ReplaceAllFunc(was, func(block []byte) []byte {
		name := string(recording.FindSubmatch(block)[1])
		text, err := os.ReadFile(filepath.Join(Root, name))
		if err != nil {
			t.Fatal(err)
		}
		return []byte("<!-- " + name + " -->\n```\n" + string(text) + "```\n")
	})
	keep(t, page, was, got, update)
}

// A Schema describes JSON that a command prints.
type Schema struct {
	// Of is a pointer to the Go type, and Dir is the folder of its package, relative to the root.
	Of  any
	Dir string

	// APIVersion and Kind form the ID of the schema, and Title is its title.
	APIVersion, Kind, Title string

	// Enums are the allowed values of string types.
	Enums map[reflect.Type][]any
}

// Schemas checks that a page is the JSON Schema of a type, with descriptions from the comments of
// its fields. With update it writes the page instead.
func Schemas(t *testing.T, page string, s Schema, update bool) {
	t.Helper()
	r := &jsonschema.Reflector{
		// New fields may be added within a version.
		AllowAdditionalProperties: true,
		Mapper: func(typ reflect.Type) *jsonschema.Schema {
			if values, ok := s.Enums[typ]; ok {
				return &jsonschema.Schema{Type: "string", Enum: values}
			}
			return nil
		},
	}
	if err := r.AddGoComments(path.Join("github.com/storeplane/storeplane", s.Dir), "."); err != nil {
		t.Fatal(err)
	}
	out := r.Reflect(s.Of)
	out.ID, out.Title = jsonschema.ID("https://"+s.APIVersion+"/"+s.Kind), s.Title
	got, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	was, err := os.ReadFile(filepath.Join(Root, page))
	if err != nil && !update {
		t.Fatal(err)
	}
	keep(t, page, was, append(got, '\n'), update)
}

func keep(t *testing.T, page string, was, got []byte, update bool) {
	t.Helper()
	if update && !bytes.Equal(was, got) {
		if err := os.WriteFile(filepath.Join(Root, page), got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(was), string(got)); diff != "" {
		t.Errorf("%s is not up to date: run this test with -update\n%s", page, diff)
	}
}
