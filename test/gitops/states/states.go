// Package states reads and writes golden files with claims and managed resources in all their
// states, and with how a client is expected to judge each. The health checks of package/gitops
// are tested with these objects.
package states

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// An Expectation is how a client is expected to judge a state.
type Expectation string

// The expectations.
const (
	// Done means that the object is as its spec requests, and healthy.
	Done Expectation = "Done"
	// Working means that the object becomes done or healthy without a change by a user.
	Working Expectation = "Working"
	// Failed means that it does not.
	Failed Expectation = "Failed"
	// Degraded means that the object was done, and is less healthy now.
	Degraded Expectation = "Degraded"
	// Held means that a user has paused the object or made it hibernate.
	Held Expectation = "Held"
	// Deleting means that the object is being deleted.
	Deleting Expectation = "Deleting"
)

// A State is a named object with what is expected of it.
type State struct {
	Name   string                     `json:"name"`
	Expect Expectation                `json:"expect"`
	Object *unstructured.Unstructured `json:"object"`
}

// Of returns a state with the object o, which has its apiVersion and kind set. It removes fields
// that no tool reads or that change with each run.
func Of(t testing.TB, name string, expect Expectation, o any) State {
	t.Helper()
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	s := State{Name: name, Expect: expect, Object: &unstructured.Unstructured{Object: u}}
	unstructured.RemoveNestedField(s.Object.Object, "metadata", "creationTimestamp")
	// No tool reads the references to composed resources, which are in other golden files.
	unstructured.RemoveNestedField(s.Object.Object, "spec", "crossplane")
	// No tool reads this digest either, and it changes with generated passwords.
	unstructured.RemoveNestedField(s.Object.Object, "status", "inputs")
	conditions, _, _ := unstructured.NestedSlice(s.Object.Object, "status", "conditions")
	for _, c := range conditions {
		// The time changes with each run, because simulations do not keep it as an API server
		// does.
		if m, ok := c.(map[string]any); ok {
			delete(m, "lastTransitionTime")
		}
	}
	if len(conditions) > 0 {
		_ = unstructured.SetNestedSlice(s.Object.Object, conditions, "status", "conditions")
	}
	return s
}

// separator precedes each state in a file.
const separator = "---\n"

// Compare compares states, sorted by name, with those of a file. With update it writes them to
// the file instead.
func Compare(t testing.TB, file string, update bool, got []State) {
	t.Helper()
	slices.SortFunc(got, func(a, b State) int { return strings.Compare(a.Name, b.Name) })
	var text bytes.Buffer
	for _, s := range got {
		b, err := yaml.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString(separator)
		text.Write(b)
	}
	if update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text.String()); diff != "" {
		t.Errorf("%s: the states have changed (-want, +got). If that is meant, run the test with -update\n%s", file, diff)
	}
}

// Load reads the states of a file. It fails the test if there are none.
func Load(t testing.TB, file string) []State {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []State
	for text := range strings.SplitSeq(string(b), separator) {
		if text == "" {
			continue
		}
		var s State
		if err := yaml.Unmarshal([]byte(text), &s); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out = append(out, s)
	}
	if len(out) == 0 {
		t.Fatalf("%s has no states", file)
	}
	return out
}

// Kstatus returns the status that kstatus computes for an object.
func Kstatus(t testing.TB, o *unstructured.Unstructured) status.Status {
	t.Helper()
	r, err := status.Compute(o)
	if err != nil {
		t.Fatal(err)
	}
	return r.Status
}

// Allows reports whether a status of kstatus is right for the expectation.
func (e Expectation) Allows(s status.Status) bool {
	switch e {
	case Done:
		return s == status.CurrentStatus
	case Working:
		return s == status.InProgressStatus
	case Failed:
		return s == status.FailedStatus
	case Deleting:
		return s == status.TerminatingStatus
	case Degraded, Held:
		// kstatus has no status for these. An object that serves what its spec requests may be
		// Current.
		return s == status.CurrentStatus || s == status.InProgressStatus
	}
	return false
}
