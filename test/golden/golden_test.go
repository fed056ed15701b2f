// Package golden compares what every example is rendered to with golden files, so that a review
// of a change shows what it changes for users. Update the files with
//
//	go test ./test/golden -update
//
// and read the difference.
package golden

import (
	"bytes"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/apis"
	"github.com/storeplane/storeplane/compositions"
	"github.com/storeplane/storeplane/functions"
	"github.com/storeplane/storeplane/internal/render"
	"github.com/storeplane/storeplane/internal/xrd"
)

var update = flag.Bool("update", false, "Write the golden files anew.")

const examples = "../../examples"

// The files of an example's folder under testdata.
const (
	onceFile     = "render.yaml"
	convergeFile = "converge.yaml"
)

func renderer(t testing.TB) *render.Renderer {
	t.Helper()
	s, err := xrd.Load(apis.Definitions)
	if err != nil {
		t.Fatal(err)
	}
	return &render.Renderer{Schemas: s, Compositions: compositions.Files, Function: functions.New(functions.WithReview())}
}

// example is a claim of the examples, with the other objects of its file.
type example struct {
	render.Input

	name string
}

// claims returns the claims of all examples. The other objects in a claim's file, such as an
// EnvironmentConfig, are in the simulated cluster.
func claims(t testing.TB, r *render.Renderer) []example {
	t.Helper()
	out := make([]example, 0)
	err := filepath.WalkDir(examples, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		all, err := render.Load(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(examples, strings.TrimSuffix(path, ".yaml"))
		if err != nil {
			return err
		}
		out = append(out, claimsOf(r, name, all)...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func claimsOf(r *render.Renderer, name string, all []*unstructured.Unstructured) []example {
	isClaim := func(u *unstructured.Unstructured) bool { return r.Schemas.Has(u.GroupVersionKind()) }
	others := slices.DeleteFunc(slices.Clone(all), isClaim)
	out := make([]example, 0)
	for _, u := range all {
		if isClaim(u) {
			out = append(out, example{name: name, Input: render.Input{Claim: u, Cluster: others}})
		}
	}
	if len(out) > 1 {
		for i := range out {
			out[i].name = filepath.Join(name, out[i].Claim.GetName())
		}
	}
	return out
}

func TestExamples(t *testing.T) {
	r := renderer(t)
	seen := map[string]bool{}
	for _, e := range claims(t, r) {
		seen[e.name] = true
		t.Run(e.name, func(t *testing.T) {
			once, err := r.Once(t.Context(), e.Input)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, filepath.Join("testdata", e.name, onceFile), once)

			watched := *r
			seen := verdicts{}
			watched.Written = seen.see(t)
			converged, err := watched.Converged(t.Context(), e.Input)
			if err != nil {
				t.Fatal(err)
			}
			seen.check(t)
			compare(t, filepath.Join("testdata", e.name, convergeFile), converged)

			again, err := r.Converged(t.Context(), e.Input)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(converged, again) {
				t.Errorf("The same claim gives the same bytes: %s", cmp.Diff(string(converged), string(again)))
			}
		})
	}
	if len(seen) == 0 {
		t.Errorf("There are no examples under %s", examples)
	}
	checkLeftovers(t, seen)
}

func compare(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("There is no golden file yet: %v", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s: what the example becomes has changed (-want, +got). If that is meant, run: go test ./test/golden -update\n%s", path, diff)
	}
}

// checkLeftovers reports golden files whose example no longer exists, and removes them with
// -update.
func checkLeftovers(t *testing.T, seen map[string]bool) {
	t.Helper()
	err := filepath.WalkDir("testdata", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || (e.Name() != onceFile && e.Name() != convergeFile) {
			return err
		}
		name, err := filepath.Rel("testdata", filepath.Dir(path))
		if err != nil || seen[name] {
			return err
		}
		if *update {
			return os.Remove(path)
		}
		t.Errorf("%s is of no example", path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
