// Package states keeps what claims and managed resources look like in all their states,
// with what a client is to make of each: the golden objects on which the health checks of
// package/gitops are run.
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

// An Expectation of a client.
type Expectation string

// The expectations.
const (
	// Done is what was asked for, and healthy.
	Done Expectation = "Done"
	// Working gets done, or healthy, by itself.
	Working Expectation = "Working"
	// Failed does not.
	Failed Expectation = "Failed"
	// Degraded was done, and is not as well as it was.
	Degraded Expectation = "Degraded"
	// Held waits for who has paused it, or has it sleep.
	Held Expectation = "Held"
	// Deleting is on its way out.
	Deleting Expectation = "Deleting"
)

// A State of an object.
type State struct {
	Name   string                     `json:"name"`
	Expect Expectation                `json:"expect"`
	Object *unstructured.Unstructured `json:"object"`
}

// Of an object, whose type is known.
func Of(t testing.TB, name string, expect Expectation, o any) State {
	t.Helper()
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	s := State{Name: name, Expect: expect, Object: &unstructured.Unstructured{Object: u}}
	unstructured.RemoveNestedField(s.Object.Object, "metadata", "creationTimestamp")
	// No tool judges by what is composed, which other golden files have.
	unstructured.RemoveNestedField(s.Object.Object, "spec", "crossplane")
	// Nor by this digest, which is also of passwords that are drawn anew.
	unstructured.RemoveNestedField(s.Object.Object, "status", "inputs")
	conditions, _, _ := unstructured.NestedSlice(s.Object.Object, "status", "conditions")
	for _, c := range conditions {
		// Simulations do not keep them as an API server does.
		if m, ok := c.(map[string]any); ok {
			delete(m, "lastTransitionTime")
		}
	}
	if len(conditions) > 0 {
		_ = unstructured.SetNestedSlice(s.Object.Object, conditions, "status", "conditions")
	}
	return s
}

// separator of the states of a file.
const separator = "---\n"

// Compare states with those of a file, or write them there.
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

// Load the states of a file.
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

// Kstatus of an object.
func Kstatus(t testing.TB, o *unstructured.Unstructured) status.Status {
	t.Helper()
	r, err := status.Compute(o)
	if err != nil {
		t.Fatal(err)
	}
	return r.Status
}

// Allows tells whether kstatus may say so of what is expected.
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
		// kstatus has no word for either. What serves what was asked for is current.
		return s == status.CurrentStatus || s == status.InProgressStatus
	}
	return false
}
