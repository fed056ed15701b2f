package compose

import (
	"testing"
)

func TestCheck(t *testing.T) {
	c := func(name string, after ...string) Component {
		return Component{Name: name, Object: configMap(name, ""), After: after}
	}
	cases := map[string]struct {
		reason     string
		components []Component
		want       string
	}{
		"Empty":       {reason: "A plan may be empty."},
		"Chain":       {reason: "A chain in any order is fine.", components: []Component{c("c", "b"), c("b", "a"), c("a")}},
		"Diamond":     {reason: "Two ways to one component are no cycle.", components: []Component{c("d", "b", "c"), c("b", "a"), c("c", "a"), c("a")}},
		"NamedTwice":  {reason: "To come after one thing twice is clumsy, not wrong.", components: []Component{c("b", "a", "a"), c("a")}},
		"NoName":      {reason: "A component needs a name.", components: []Component{c("a"), {Object: configMap("b", "")}}, want: "cannot compose: component 1 has no name"},
		"NoObject":    {reason: "A component needs an object.", components: []Component{{Name: "a"}}, want: "cannot compose: component a has no object"},
		"Duplicate":   {reason: "Two components of one name would be one resource.", components: []Component{c("a"), c("b"), c("a")}, want: "cannot compose: two components are named a"},
		"SameObject":  {reason: "Two components that are one object would overwrite each other for ever.", components: []Component{c("a"), {Name: "b", Object: configMap("a", "other")}}, want: "cannot compose: components a and b are both ConfigMap shop-a"},
		"OtherKind":   {reason: "One name for two kinds is fine.", components: []Component{c("a"), {Name: "b", Object: deployment("a", "")}}},
		"NotPrefixed": {reason: "Objects are named after the claim.", components: []Component{{Name: "a", Object: withName("other-a")}}, want: `cannot compose: component a is named "other-a", not shop-<component>`},
		"ClaimOnly":   {reason: "The claim's name alone is no component's.", components: []Component{{Name: "a", Object: withName("shop")}}, want: `cannot compose: component a is named "shop", not shop-<component>`},
		"LongerClaim": {reason: "Another claim's name that starts alike is another's.", components: []Component{{Name: "a", Object: withName("shops-a")}}, want: `cannot compose: component a is named "shops-a", not shop-<component>`},
		"NoObjName":   {reason: "An object without a name would get one that cannot be predicted.", components: []Component{{Name: "a", Object: withName("")}}, want: `cannot compose: component a is named "", not shop-<component>`},
		"Dangling":    {reason: "To come after what is not declared is a mistake.", components: []Component{c("a", "b")}, want: "cannot compose: component a comes after b, which is not declared"},
		"DanglingChange": {
			reason:     "So it is for changes.",
			components: []Component{{Name: "a", Object: configMap("a", ""), ChangeAfter: []string{"b"}}},
			want:       "cannot compose: component a comes after b, which is not declared",
		},
		"Itself":    {reason: "Nothing comes after itself.", components: []Component{c("a", "a")}, want: "cannot compose: components wait for each other: a after a"},
		"Two":       {reason: "Two that wait for each other never start.", components: []Component{c("a", "b"), c("b", "a")}, want: "cannot compose: components wait for each other: a after b after a"},
		"Tail":      {reason: "Only the cycle is named, not the way to it.", components: []Component{c("x", "a"), c("a", "b"), c("b", "c"), c("c", "a")}, want: "cannot compose: components wait for each other: a after b after c after a"},
		"ByChanges": {reason: "A cycle through changes never ends either.", components: []Component{c("a", "b"), {Name: "b", Object: configMap("b", ""), ChangeAfter: []string{"a"}}}, want: "cannot compose: components wait for each other: a after b after a"},
		"Aside":     {reason: "A cycle is found beside a part that is fine.", components: []Component{c("ok"), c("fine", "ok"), c("a", "b", "fine"), c("b", "fine", "a")}, want: "cannot compose: components wait for each other: a after b after a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := check(claimName, &Plan{Components: tc.components})
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("%s\ncheck(): want %q, got %q", tc.reason, tc.want, got)
			}
			if IsInvalid(err) {
				t.Errorf("%s\nIt is our error, not the claim's", tc.reason)
			}
		})
	}
}

func withName(name string) Object {
	o := configMap("", "")
	o.SetName(name)
	return o
}
