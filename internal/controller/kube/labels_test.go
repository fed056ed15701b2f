package kube

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestInherit(t *testing.T) {
	cases := map[string]struct {
		reason string
		from   map[string]string
		want   map[string]string
	}{
		"OfNobody": {reason: "What stands alone has nothing to pass on.", want: map[string]string{"app.kubernetes.io/name": "backup"}},
		"OfAClaim": {
			reason: "What a claim makes is found by it, and nothing else is passed on.",
			from:   map[string]string{"app.kubernetes.io/name": "postgresql", "app.kubernetes.io/component": "backup", "platform": "store", "team": "a"},
			want:   map[string]string{"app.kubernetes.io/name": "backup", "app.kubernetes.io/component": "backup", "platform": "store"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			labels := map[string]string{"app.kubernetes.io/name": "backup"}
			if diff := cmp.Diff(tc.want, Inherit(labels, &metav1.ObjectMeta{Labels: tc.from})); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
