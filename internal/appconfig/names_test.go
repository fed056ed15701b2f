package appconfig

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
)

func TestAllow(t *testing.T) {
	type want struct {
		Allows bool
		Allow  string
	}
	cases := map[string]struct {
		reason string
		value  string
		want   want
	}{
		"None":   {reason: "Who says nothing allows nothing.", want: want{Allow: "shop"}},
		"Named":  {reason: "Its name is enough.", value: "shop", want: want{Allows: true, Allow: "shop"}},
		"Listed": {reason: "Several share one workload.", value: "vote, shop", want: want{Allows: true, Allow: "shop,vote"}},
		"Prefix": {reason: "Another name is another one.", value: "shopper,the-shop", want: want{Allow: "shop,shopper,the-shop"}},
		"Star":   {reason: "There is no word for all: who may make an AppConfig would be let in by it.", value: "*", want: want{Allow: "*,shop"}},
		"Empty":  {reason: "Commas alone name no AppConfig.", value: " , ,", want: want{Allow: "shop"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := map[string]string{configv1.AllowAnnotation: tc.value}
			if diff := cmp.Diff(tc.want, want{Allows: Allows(a, "shop"), Allow: Allow(a, "shop")}); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
