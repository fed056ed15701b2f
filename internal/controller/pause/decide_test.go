package pause

import (
	"maps"
	"testing"

	"pgregory.net/rapid"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
)

const store = "EcommercePlatform store"

func TestDecide(t *testing.T) {
	cases := map[string]struct {
		reason      string
		annotations map[string]string
		with        string
		want        action
	}{
		"Nothing":       {reason: "Neither it nor its claim is paused.", want: leave},
		"Pause":         {reason: "It is paused with its claim.", with: store, want: pause},
		"Paused":        {reason: "It is paused already, and is not written to again.", annotations: map[string]string{paused: "true", appsv1.PausedWithAnnotation: store}, with: store, want: leave},
		"PausedByHand":  {reason: "A user paused it before: it is paused with its claim as well, in case the user resumes it first.", annotations: map[string]string{paused: "true"}, with: store, want: pause},
		"TakenAway":     {reason: "Its claim is still paused.", annotations: map[string]string{appsv1.PausedWithAnnotation: store}, with: store, want: pause},
		"Resume":        {reason: "Its claim goes on, or is gone.", annotations: map[string]string{paused: "true", appsv1.PausedWithAnnotation: store}, want: resume},
		"ByHandAlone":   {reason: "Its claim was never paused.", annotations: map[string]string{paused: "true"}, want: leave},
		"Exempt":        {reason: "A person wants it to go on.", annotations: map[string]string{paused: "false"}, with: store, want: leave},
		"ExemptLater":   {reason: "A person wants it to go on after all.", annotations: map[string]string{paused: "false", appsv1.PausedWithAnnotation: store}, with: store, want: leave},
		"ExemptResumed": {reason: "The mark goes with the pause.", annotations: map[string]string{paused: "false", appsv1.PausedWithAnnotation: store}, want: resume},
		"AnotherClaim":  {reason: "The mark says with which claim it is paused.", annotations: map[string]string{paused: "true", appsv1.PausedWithAnnotation: "WebApp store"}, with: store, want: pause},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := decide(tc.annotations, tc.with); got != tc.want {
				t.Errorf("%s\nwant %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}

// object simulates the annotations of an object under server-side apply: each has a value and
// owners, and is removed with its last owner.
type object struct {
	values map[string]string
	owners map[string]map[string]bool
}

func (o *object) set(who, key, value string) {
	if v, ok := o.values[key]; ok && v == value {
		return // the value is unchanged, so no owner is recorded
	}
	o.values[key], o.owners[key] = value, map[string]bool{who: true}
}

func (o *object) remove(key string) {
	delete(o.values, key)
	delete(o.owners, key)
}

// apply applies annotations with force, as the controller does.
func (o *object) apply(who string, annotations map[string]string) {
	for k, v := range annotations {
		if o.values[k] != v {
			o.owners[k] = map[string]bool{}
		}
		o.values[k], o.owners[k][who] = v, true
	}
	for k := range maps.Clone(o.values) {
		if _, ok := annotations[k]; ok {
			continue
		}
		if delete(o.owners[k], who); len(o.owners[k]) == 0 {
			o.remove(k)
		}
	}
}

// TestPauseComesAndGoes: whatever a user does to an object and to its claim, in any order, the
// object is paused while its claim is, unless the user has exempted it. Once the claim is resumed,
// the object is as the user left it.
func TestPauseComesAndGoes(t *testing.T) {
	const us, person = "us", "person"
	rapid.Check(t, func(t *rapid.T) {
		o := &object{values: map[string]string{}, owners: map[string]map[string]bool{}}
		with, wish := "", ""
		reconcile := func() {
			if a := decide(o.values, with); a != leave {
				o.apply(us, a.annotations(with))
			}
			if again := decide(o.values, with); again != leave {
				t.Fatalf("one pass is not enough: %s is left to do for %v", again, o.values)
			}
		}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"pause claim", "resume claim", "pause", "exempt", "clear", "reconcile"}).Draw(t, "step") {
			case "pause claim":
				with = store
			case "resume claim":
				with = ""
			case "pause":
				if o.values[paused] != "true" {
					wish = "true"
				}
				o.set(person, paused, "true")
			case "exempt":
				wish = "false"
				o.set(person, paused, "false")
			case "clear":
				wish = ""
				o.remove(paused)
			case "reconcile":
				reconcile()
			}
		}
		reconcile()
		want := wish
		if with != "" && wish != "false" {
			want = "true"
		}
		if got := o.values[paused]; got != want {
			t.Fatalf("with the claim paused by %q and a person's wish of %q: want %q, got %q", with, wish, want, got)
		}
		if _, marked := o.values[appsv1.PausedWithAnnotation]; with == "" && marked {
			t.Fatalf("the claim goes on, and the mark is still there: %v", o.values)
		}
	})
}
