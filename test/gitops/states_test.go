// Package gitops judges claims and managed resources as Flux and Argo CD do, by the health
// checks of package/gitops: never done while work goes on, never in progress at rest.
package gitops

import (
	"testing"

	"github.com/storeplane/storeplane/test/gitops/states"
)

// TestStates judges each golden state of each kind.
func TestStates(t *testing.T) {
	exprs := fluxExpressions(t)
	seen := map[string]int{}
	for _, file := range []string{
		"testdata/states.yaml",
		"../../internal/controller/appconfig/testdata/states.yaml",
		"../../internal/controller/backup/testdata/states.yaml",
		"../../internal/controller/restore/testdata/states.yaml",
	} {
		for _, s := range states.Load(t, file) {
			seen[kindOf(s.Object)]++
			if wrong := judge(t, exprs, s.Object).wrong(s.Expect); wrong != "" {
				t.Errorf("%s %s is %s: %s", s.Object.GetKind(), s.Name, s.Expect, wrong)
			}
			if health, message := argo(t, s.Object); message == "" && health != "Healthy" {
				t.Errorf("%s %s is %s, and Argo CD shows no message", s.Object.GetKind(), s.Name, health)
			}
			variants(t, exprs, s)
		}
	}
	const least = 8
	for _, k := range kinds {
		if seen[k] < least {
			t.Errorf("there are %d states of %s", seen[k], k)
		}
	}
}

// variants of a state, which are the same for every kind.
func variants(t *testing.T, exprs map[string]expressions, s states.State) {
	t.Helper()
	edited := s.Object.DeepCopy()
	edited.SetGeneration(edited.GetGeneration() + 1)
	if wrong := judge(t, exprs, edited).wrong(states.Working); s.Expect != states.Deleting && s.Expect != states.Held && wrong != "" {
		t.Errorf("%s %s was edited: %s", s.Object.GetKind(), s.Name, wrong)
	}
	paused := s.Object.DeepCopy()
	paused.SetAnnotations(map[string]string{"crossplane.io/paused": "true"})
	if v := judge(t, exprs, paused); s.Expect != states.Deleting && v.Argo != "Suspended" {
		t.Errorf("%s %s was paused: Argo CD calls it %s", s.Object.GetKind(), s.Name, v.Argo)
	}
	fresh := s.Object.DeepCopy()
	delete(fresh.Object, "status")
	// Only an expression helps before a claim has a status. One of the provider has it.
	if v := judge(t, exprs, fresh); s.Expect != states.Deleting && s.Expect != states.Held && (v.Argo != "Progressing" || v.Flux != "Unknown") {
		t.Errorf("%s %s has no status yet: %v", s.Object.GetKind(), s.Name, v)
	}
}
