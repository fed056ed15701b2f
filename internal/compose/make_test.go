package compose

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
)

// TestMake: the function Make of a component is called only if its object is needed, and once in a
// pass.
func TestMake(t *testing.T) {
	db := Component{Name: "db", Object: deployment("db", "db:1")}
	late := Component{Name: "web", Object: deployment("web", "web:1")}
	cases := map[string]struct {
		reason   string
		once     bool
		observed map[string]*structpb.Struct
		made     int
		want     []string
	}{
		"Withheld": {reason: "What waits is not made.", observed: map[string]*structpb.Struct{"db": observe(db)}, want: []string{"db"}},
		"Released": {reason: "It is once it need not wait any more.", observed: map[string]*structpb.Struct{"db": madeHealthy(observe(db))}, made: 1, want: []string{"db", "web"}},
		"Observed": {reason: "What exists is made always.", observed: map[string]*structpb.Struct{"db": observe(db), "web": observe(late)}, made: 1, want: []string{"db", "web"}},
		"Starting": {reason: "Also while it is not ready.", once: true, observed: map[string]*structpb.Struct{"db": observe(db), "web": observe(late)}, want: []string{"db", "web"}},
		"Kept":     {reason: "What is applied once is kept as it is.", once: true, observed: map[string]*structpb.Struct{"db": observe(db), "web": broken(observe(late))}, want: []string{"db", "web"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			made := 0
			plan := func() *Plan {
				web := Component{Name: "web", After: []string{"db"}, Once: tc.once, Make: func() Object { made++; return deployment("web", "web:1") }}
				return &Plan{Components: []Component{db, web}}
			}
			rsp := Respond(request(t, 1, nil, tc.observed), planned(plan()), ReviewSource{})
			if diff := cmp.Diff(tc.want, names(rsp.GetDesired().GetResources())); diff != "" {
				t.Errorf("%s\nRespond(): -want, +got:\n%s", tc.reason, diff)
			}
			if made != tc.made {
				t.Errorf("%s\nRespond(): want it to be made %d times, got %d", tc.reason, tc.made, made)
			}

			// The response is the same as if the object had been given directly.
			early := Component{Name: "web", After: []string{"db"}, Once: tc.once, Object: deployment("web", "web:1")}
			want := Respond(request(t, 1, nil, tc.observed), planned(&Plan{Components: []Component{db, early}}), ReviewSource{})
			if a, b := bytesOf(want), bytesOf(rsp); a != b {
				t.Errorf("%s\nwant what is made of an object, got:\n%v\nwant:\n%v", tc.reason, rsp, want)
			}
		})
	}
}

// TestMakeErrors: an object that Make returns is checked like one that is given directly.
func TestMakeErrors(t *testing.T) {
	late := func(o Object) Component { return Component{Name: "b", Make: func() Object { return o }} }
	cases := map[string]struct {
		reason string
		late   Component
		want   string
	}{
		"Fine":       {reason: "All is well.", late: late(configMap("b", ""))},
		"Nothing":    {reason: "It makes nothing.", late: late(nil), want: "cannot compose: component b has no object"},
		"SameObject": {reason: "It makes what there is already.", late: late(configMap("a", "other")), want: "cannot compose: components a and b are both ConfigMap shop-a"},
		"Name":       {reason: "It makes what is not named after the claim.", late: late(withName("b")), want: `cannot compose: component b is named "b", not shop-<component>`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Decide(claimOf(nil), &Plan{Components: []Component{{Name: "a", Object: configMap("a", "")}, tc.late}})
			if errorText(err) != tc.want {
				t.Errorf("%s\nDecide(): want error %q, got %q", tc.reason, tc.want, errorText(err))
			}
		})
	}
}

// TestMakeAgain: an object that is refused is refused each time that it is needed in a pass.
func TestMakeAgain(t *testing.T) {
	for name, o := range map[string]Object{"Named": withName("b"), "Nothing": nil} {
		t.Run(name, func(t *testing.T) {
			d := &Decision{claim: claimOf(nil), objects: objects{}}
			c := &Component{Name: "web", Make: func() Object { return o }}
			first, second := d.make(c), d.make(c)
			if first == nil || second == nil || first.Error() != second.Error() {
				t.Errorf("want the same error twice, got %v and %v", first, second)
			}
		})
	}
}
