package group

import "testing"

func TestMayLead(t *testing.T) {
	members := func(versions ...string) []Member {
		var out []Member
		for _, v := range versions {
			out = append(out, Member{Version: v})
		}
		return out
	}
	cases := map[string]struct {
		reason  string
		members []Member
		want    bool
	}{
		"Same":    {reason: "All run one version.", members: members("9.7.4", "9.7.4", "9.7.4"), want: true},
		"Newer":   {reason: "Another member could not read what it writes.", members: members("9.7.10", "9.7.4", "9.7.10")},
		"Older":   {reason: "Newer members can read what it writes.", members: members("9.7.4", "9.7.10"), want: true},
		"Unknown": {reason: "The group decides.", members: members("", "9.7.4"), want: true},
		"Others":  {reason: "A member that has not reported its version is no obstacle.", members: members("9.7.4", ""), want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := (&Report{Members: tc.members}).MayLead(&tc.members[0]); got != tc.want {
				t.Errorf("%s\nwant %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}
