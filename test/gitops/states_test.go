// Package gitops tests how Flux, Argo CD and kubectl judge claims and managed resources, by the
// health checks of package/gitops: never done while work is in progress, and never in progress
// when none is.
package gitops

import (
	"testing"

	"github.com/storeplane/storeplane/test/gitops/states"
)

// TestStates: each golden state of each kind is judged as expected, and so are its variants.
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

// variants tests variants of a state that are the same for every kind: edited, paused, and
// without a status.
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
	// A new claim has no status, and only the expressions keep it from being judged as done. A
	// managed resource has one by default, with observedGeneration -1.
	if v := judge(t, exprs, fresh); s.Expect != states.Deleting && s.Expect != states.Held && (v.Argo != "Progressing" || v.Flux != "Unknown") {
		t.Errorf("%s %s has no status yet: %v", s.Object.GetKind(), s.Name, v)
	}
}
