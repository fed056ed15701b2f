// Package pages keeps what documents have of the code up to date: outputs that tests have made,
// and JSON Schemas.
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

// Root of the repository, from a package two folders below it.
const Root = "../.."

var recording = regexp.MustCompile("(?s)<!-- ([a-z/]+/testdata/[a-z-]+\\.txt) -->\n```\n.*?```\n")

// Recordings of a page are those of the golden files that it names in comments before them. With
// update they become so.
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

// A Schema of JSON that a command prints.
type Schema struct {
	// Of is a pointer to the type, and Dir the folder of its package from the root.
	Of  any
	Dir string

	// APIVersion and Kind of the JSON, and Title of the page.
	APIVersion, Kind, Title string

	// Enums are the values of types of texts.
	Enums map[reflect.Type][]any
}

// Schemas are pages that are the JSON Schemas of types, with their comments. With update they
// become so.
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
