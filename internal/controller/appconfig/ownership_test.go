package appconfig

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
)

// TestUnowned: bundles that an earlier AppConfig left behind get the claim that has adopted it as
// owner.
func TestUnowned(t *testing.T) {
	owned := func(uid types.UID) []metav1.OwnerReference {
		return []metav1.OwnerReference{{Kind: "EcommercePlatform", Name: "store", UID: uid, Controller: new(true)}}
	}
	object := func(owners []metav1.OwnerReference) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{OwnerReferences: owners}}
	}
	cases := map[string]struct {
		reason string
		owner  []metav1.OwnerReference
		object []metav1.OwnerReference
		want   []string
	}{
		"Owned":   {reason: "It goes with the claim.", owner: owned("new"), object: owned("new")},
		"Orphan":  {reason: "It was left behind.", owner: owned("new"), want: []string{"ConfigMap", "Secret"}},
		"Former":  {reason: "It is of a claim that is gone.", owner: owned("new"), object: owned("old"), want: []string{"ConfigMap", "Secret"}},
		"NoClaim": {reason: "An AppConfig of its own has no claim to go with."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := &configv1.AppConfig{ObjectMeta: metav1.ObjectMeta{Name: "store-config", OwnerReferences: tc.owner}}
			x := existing{
				configs: map[string]*metav1.PartialObjectMetadata{"b": object(tc.object)},
				secrets: map[string]*metav1.PartialObjectMetadata{"b": object(tc.object)},
			}
			var got []string
			for _, m := range x.unowned(a) {
				got = append(got, m.Kind)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nunowned(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
