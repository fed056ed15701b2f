package golden

import (
	"slices"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/test/gitops/states"
)

// verdicts are the statuses that kstatus computes for each write of each claim of an example,
// while it converges.
type verdicts map[string][]status.Status

func (v verdicts) see(t *testing.T) func(*unstructured.Unstructured) {
	t.Helper()
	return func(claim *unstructured.Unstructured) {
		name := claim.GetKind() + "/" + claim.GetName()
		v[name] = append(v[name], states.Kstatus(t, claim))
	}
}

// check checks that each claim is in progress until it is current, and changes only once.
func (v verdicts) check(t *testing.T) {
	t.Helper()
	if len(v) == 0 {
		t.Error("no claim was written")
	}
	for claim, all := range v {
		if got := slices.Compact(slices.Clone(all)); !slices.Equal(got, []status.Status{status.InProgressStatus, status.CurrentStatus}) {
			t.Errorf("kstatus calls %s %v, one after the other", claim, got)
		}
	}
}
