package instance_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/instance"
)

func TestNegotiate(t *testing.T) {
	speaks := func(versions ...int) map[string]instance.Member {
		out := map[string]instance.Member{}
		for i, v := range versions {
			out[instance.Pod("orders-postgresql", int32(i))] = instance.Member{Protocol: v}
		}
		return out
	}
	type want struct {
		Version int
		All     bool
	}
	cases := map[string]struct {
		reason         string
		members        map[string]instance.Member
		oldest, newest int
		want           want
	}{
		"None":     {reason: "A cluster without servers is told in the newest.", oldest: 2, newest: 3, want: want{3, true}},
		"Same":     {reason: "As is one whose managers are of this release.", members: speaks(3, 3), oldest: 2, newest: 3, want: want{3, true}},
		"Older":    {reason: "One that speaks the version before is told in that.", members: speaks(3, 2), oldest: 2, newest: 3, want: want{2, true}},
		"Newer":    {reason: "After a rollback managers understand what the function speaks.", members: speaks(4), oldest: 2, newest: 3, want: want{3, true}},
		"TooOld":   {reason: "One that is two releases behind cannot be told.", members: speaks(3, 1), oldest: 2, newest: 3, want: want{2, false}},
		"Unspoken": {reason: "A manager that reports no version speaks the first.", members: speaks(0), oldest: 1, newest: 1, want: want{1, true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			version, all := instance.Negotiate(tc.members, tc.oldest, tc.newest)
			if diff := cmp.Diff(tc.want, want{version, all}); diff != "" {
				t.Errorf("%s\nNegotiate(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCheckProtocol(t *testing.T) {
	const text = "the function speaks version 4 of the protocol, and this instance manager those from 2 to 3: upgrade the claim with storeplane upgrade, or install the release that its pods are of"
	for version, want := range map[int]string{2: "", 3: "", 4: text} {
		d := instance.Desired{Protocol: version}
		got := ""
		if err := d.CheckProtocol(2, 3); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("version %d: want error %q, got %q", version, want, got)
		}
	}
	if err := (&instance.Desired{}).CheckProtocol(instance.OldestProtocol, instance.Protocol); err != nil {
		t.Errorf("what the release before told is understood, got %v", err)
	}
}
