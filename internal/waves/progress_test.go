package waves

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, time.November, 26, 12, 0, 0, 0, time.UTC)

// canariesFirst has a wave of canaries, and half an hour later one of half of all other claims.
var canariesFirst = []Wave{
	{Name: "canaries", Namespaces: &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "canary"}}, Pause: "30m"},
	{Name: "first", Percent: new(50)},
}

// labelsOf returns the labels of a namespace: canaries are in namespace canary.
func labelsOf(namespace string) map[string]string {
	if namespace == "canary" {
		return map[string]string{"stage": "canary"}
	}
	return nil
}

// web returns a WebApp that is ready with release v1.
func web(namespace, name string, change ...func(*Claim)) Claim {
	c := Claim{
		Kind: "WebApp", Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name), Release: "v1",
		Ready: true, ReadySince: noon.Add(-24 * time.Hour), Phase: "Running", Generation: 1, ReadyGeneration: 1,
	}
	for _, f := range change {
		f(&c)
	}
	return c
}

func pending(c *Claim) { c.Pending = "v2" }

func has(c *Claim) { c.Release, c.Pending = "v2", "" }

func degraded(c *Claim) { c.Ready, c.Phase = false, "Degraded" }

func failed(c *Claim) { c.Ready, c.Phase = false, "Failed" }

func edited(c *Claim) { c.Generation = 2 }

func aside(c *Claim) { c.IsAside = true }

// marked marks a claim that many minutes before noon.
func marked(m Mark, ago int) func(*Claim) {
	return func(c *Claim) { c.Wave, c.Mark, c.Since = "v2", m, noon.Add(-time.Duration(ago)*time.Minute) }
}

func of(owner Claim) func(*Claim) { return func(c *Claim) { c.Owner = owner.UID } }

func TestDecide(t *testing.T) {
	type want struct {
		States string
		Marks  []string
		Next   time.Duration
	}
	shop := web("shop", "store", func(c *Claim) { c.Kind = "EcommercePlatform" })
	inCanary := func(c *Claim) { c.UID = shop.UID }
	const minute = time.Minute
	cases := map[string]struct {
		reason string
		claims []Claim
		want   want
	}{
		"Rest": {
			reason: "Where no claim waits there is nothing to do.",
			claims: []Claim{web("canary", "a"), web("shop", "b")},
		},
		"Begins": {
			reason: "The first wave begins at once, and the others wait for it.",
			claims: []Claim{web("canary", "a", pending), web("shop", "b", pending), web("shop", "c")},
			want:   want{"Upgrading Waiting Waiting", []string{"canary/a Admitted"}, minute},
		},
		"NotComposedYet": {
			reason: "A claim that Crossplane has not composed by the release yet is composed, and waited for.",
			claims: []Claim{web("canary", "a"), web("shop", "b", pending)},
			want:   want{"Upgrading Waiting Waiting", []string{"canary/a Admitted"}, minute},
		},
		"Rolls": {
			reason: "A claim that is Degraded while its pods are replaced does not fail yet, and is not done.",
			claims: []Claim{web("canary", "a", marked(Rolling, 20), has, degraded), web("shop", "b", pending)},
			want:   want{"Upgrading Waiting Waiting", nil, minute},
		},
		"BeginsToRoll": {
			reason: "From when it has the release its time counts, not from when its wave began: it has waited for its window.",
			claims: []Claim{web("canary", "a", marked(Admitted, 7200), has, degraded), web("shop", "b", pending)},
			want:   want{"Upgrading Waiting Waiting", []string{"canary/a Rolling"}, minute},
		},
		"Window": {
			reason: "While it waits for its window nothing fails.",
			claims: []Claim{web("canary", "a", marked(Admitted, 7200), pending), web("shop", "b", pending)},
			want:   want{"Upgrading Waiting Waiting", nil, minute},
		},
		"Upgraded": {
			reason: "One that is ready with the release is marked.",
			claims: []Claim{web("canary", "a", marked(Admitted, 20), has), web("shop", "b", pending)},
			want:   want{"Upgrading Waiting Waiting", []string{"canary/a Upgraded"}, minute},
		},
		"Pauses": {
			reason: "After a wave comes its pause.",
			claims: []Claim{web("canary", "a", marked(Upgraded, 10), has), web("shop", "b", pending)},
			want:   want{"Pausing Waiting Waiting", nil, minute},
		},
		"PausesEdited": {
			reason: "An edit of a claim that is upgraded does not begin the pause anew.",
			claims: []Claim{web("canary", "a", marked(Upgraded, 29), has, edited, degraded), web("shop", "b", pending)},
			want:   want{"Pausing Waiting Waiting", nil, minute},
		},
		"PausesNot": {
			reason: "One that does not stay ready does.",
			claims: []Claim{web("canary", "a", marked(Upgraded, 29), has, degraded), web("shop", "b", pending)},
			want:   want{"Pausing Waiting Waiting", []string{"canary/a Rolling"}, minute},
		},
		"DegradedReady": {
			reason: "Also one that is Ready and Degraded, as a database is whose archiving fails.",
			claims: []Claim{web("canary", "a", marked(Upgraded, 29), has, func(c *Claim) { c.Phase = "Degraded" }), web("shop", "b", pending)},
			want:   want{"Pausing Waiting Waiting", []string{"canary/a Rolling"}, minute},
		},
		"GoesOn": {
			reason: "After the pause comes the next wave, with half of the claims, rounded up.",
			claims: []Claim{web("canary", "a", marked(Upgraded, 30), has), web("shop", "b", pending), web("shop", "c", pending), web("shop", "d", pending)},
			want:   want{"Done Upgrading Waiting", []string{"shop/b Admitted", "shop/c Admitted"}, minute},
		},
		"LaterFailure": {
			reason: "What becomes of a wave that is done is not the release's any more.",
			claims: []Claim{web("canary", "a", marked(Upgraded, 300), has, failed), web("shop", "b", pending)},
			want:   want{"Done Upgrading Waiting", []string{"shop/b Admitted"}, minute},
		},
		"Empty": {
			reason: "A wave without claims holds up nothing.",
			claims: []Claim{web("shop", "b", pending)},
			want:   want{"Done Upgrading Waiting", []string{"shop/b Admitted"}, minute},
		},
		"Halts": {
			reason: "A claim that has Failed by the release halts, also its own wave.",
			claims: []Claim{web("canary", "a", marked(Rolling, 1), has, failed), web("canary", "z", pending), web("shop", "b", pending)},
			want:   want{"Halted Waiting Waiting", nil, minute},
		},
		"HaltsSlowly": {
			reason: "So does one that is not ready half an hour later.",
			claims: []Claim{web("canary", "a", marked(Rolling, 31), has, degraded), web("shop", "b", pending)},
			want:   want{"Halted Waiting Waiting", nil, minute},
		},
		"Stuck": {
			reason: "So does one that cannot get the release: the API server refuses its pods, or it is refused itself.",
			claims: []Claim{web("canary", "a", marked(Admitted, 31), pending, failed), web("shop", "b", pending)},
			want:   want{"Halted Waiting Waiting", nil, minute},
		},
		"FailsEdited": {
			reason: "An edit of a claim that fails, or its refusal, lets nothing pass.",
			claims: []Claim{web("canary", "a", marked(Rolling, 31), has, failed, edited, func(c *Claim) { c.IsRefused = true }), web("shop", "b", pending)},
			want:   want{"Halted Waiting Waiting", nil, minute},
		},
		"Unwell": {
			reason: "A claim that was not well before its wave began says nothing of the release.",
			claims: []Claim{web("canary", "a", pending, degraded), web("canary", "y", pending, edited), web("canary", "z", marked(Upgraded, 60), has), web("shop", "b", pending)},
			want:   want{"Upgrading Waiting Waiting", []string{"canary/a Unwell", "canary/y Unwell"}, minute},
		},
		"UnwellYet": {
			reason: "A claim that is not ready for a moment is waited for: the release itself may be why.",
			claims: []Claim{web("canary", "a", pending, degraded, func(c *Claim) { c.ReadySince = noon.Add(-time.Minute) }), web("canary", "z", marked(Upgraded, 60), has), web("shop", "b", pending)},
			want:   want{"Upgrading Waiting Waiting", nil, minute},
		},
		"Legacy": {
			reason: "One that was composed by a release that said nothing is no new one.",
			claims: []Claim{web("canary", "a", func(c *Claim) { c.Release = "" }), web("shop", "b", pending)},
			want:   want{"Upgrading Waiting Waiting", []string{"canary/a Admitted"}, minute},
		},
		"UnwellThen": {
			reason: "Nor does it once it is marked.",
			claims: []Claim{web("canary", "a", marked(Unwell, 60), has, failed), web("canary", "z", marked(Upgraded, 60), has), web("shop", "b", pending)},
			want:   want{"Done Upgrading Waiting", []string{"shop/b Admitted"}, minute},
		},
		"UnwellAll": {
			reason: "Where no claim of a wave counts nothing has tried the release.",
			claims: []Claim{web("canary", "a", marked(Unwell, 60), has, failed), web("shop", "b", pending)},
			want:   want{"Halted Waiting Waiting", nil, minute},
		},
		"UnwellWell": {
			reason: "One that gets well counts.",
			claims: []Claim{web("canary", "a", marked(Unwell, 60), has), web("shop", "b", pending)},
			want:   want{"Halted Waiting Waiting", []string{"canary/a Upgraded"}, minute},
		},
		"Repair": {
			reason: "A claim that another release has broken counts: this one is to repair it.",
			claims: []Claim{web("canary", "a", marked(Rolling, 60), has, failed, func(c *Claim) { c.Wave, c.Release = "v1.9", "v1.9" }), web("shop", "b", pending)},
			want:   want{"Upgrading Waiting Waiting", []string{"canary/a Admitted"}, minute},
		},
		"Aside": {
			reason: "Nothing is to be expected of one that is paused.",
			claims: []Claim{web("canary", "a", pending, aside), web("canary", "b", marked(Upgraded, 60), has), web("shop", "b", pending)},
			want:   want{"Done Upgrading Waiting", []string{"shop/b Admitted"}, minute},
		},
		"New": {
			reason: "A claim that is created meanwhile is composed by the release, and waits for nothing.",
			claims: []Claim{web("canary", "a", marked(Upgraded, 60), has), web("canary", "n", func(c *Claim) { c.Release, c.Ready, c.Phase, c.ReadyGeneration = "", false, "", 0 }), web("shop", "b", pending)},
			want:   want{"Done Upgrading Waiting", []string{"shop/b Admitted"}, minute},
		},
		"Unchanged": {
			reason: "A claim that fails, and whose pods the release has not changed, is none of its business.",
			claims: []Claim{web("canary", "a", has, failed), web("canary", "b", has), web("shop", "b", pending)},
			want:   want{"Done Upgrading Waiting", []string{"shop/b Admitted"}, minute},
		},
		"Family": {
			reason: "What a shop composes is upgraded with it, also where the shop itself does not change.",
			claims: []Claim{shop, web("shop", "store-backend", of(shop), pending), web("shop", "store-frontend", of(shop), pending)},
			want:   want{"Done Upgrading Waiting", []string{"shop/store Admitted", "shop/store-backend Admitted", "shop/store-frontend Admitted"}, minute},
		},
		"FamilyFails": {
			reason: "A part of a shop that fails halts, also where another part is paused.",
			claims: []Claim{
				web("canary", "store", inCanary, marked(Upgraded, 60), has), web("canary", "store-backend", of(shop), marked(Rolling, 60), has, failed),
				web("canary", "store-search", of(shop), aside), web("shop", "b", pending),
			},
			want: want{"Halted Waiting Waiting", nil, minute},
		},
		"Stale": {
			reason: "A claim that was admitted to a release and never had it waits anew if that comes again.",
			claims: []Claim{web("shop", "b", func(c *Claim) { c.Wave, c.Mark, c.Since = "v3", Admitted, noon })},
			want:   want{"", []string{"shop/b "}, 0},
		},
		"Future": {
			reason: "A time that a tenant writes delays nothing for longer than a pause.",
			claims: []Claim{web("canary", "a", marked(Upgraded, -1000000), has), web("shop", "b", pending)},
			want:   want{"Pausing Waiting Waiting", nil, minute},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := Decide(canariesFirst, "v2", tc.claims, labelsOf, noon)
			got := want{}
			var states []string
			for _, w := range p.Waves {
				states = append(states, string(w.State))
			}
			got.States = strings.Join(states, " ")
			for _, c := range p.Marks {
				got.Marks = append(got.Marks, c.Namespace+"/"+c.Name+" "+string(c.To))
			}
			if slices.Sort(got.Marks); !p.Next.IsZero() {
				got.Next = p.Next.Sub(noon)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nDecide(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDecidePace: the claims of a large wave are not all admitted at once.
func TestDecidePace(t *testing.T) {
	var claims []Claim
	for i := range 300 {
		c := web("shop", fmt.Sprint("claim-", i), pending)
		if i%2 == 0 {
			degraded(&c)
		}
		claims = append(claims, c)
	}
	now, minutes := noon, 0
	for ; minutes < 60; minutes++ {
		for range 5 { // Decide is called with each change of a claim.
			p := Decide([]Wave{{Name: "all"}}, "v2", claims, labelsOf, now)
			for _, m := range p.Marks {
				i := slices.IndexFunc(claims, func(c Claim) bool { return c.UID == m.UID })
				claims[i].Wave, claims[i].Mark, claims[i].Since = "v2", m.To, now
			}
		}
		admitted := 0
		for _, c := range claims {
			if c.Mark != "" {
				admitted++
			}
		}
		if most := 30 * (minutes + 1); admitted > most {
			t.Fatalf("after %d min %d claims are admitted, want %d at most", minutes, admitted, most)
		}
		if admitted == len(claims) {
			break
		}
		now = now.Add(pace)
	}
	if minutes > 10 {
		t.Errorf("all are admitted after %d min, want ten", minutes)
	}
}

func TestTarget(t *testing.T) {
	cases := map[string]struct {
		reason string
		claims []Claim
		want   string
	}{
		"None":     {reason: "At rest there is none.", claims: []Claim{web("shop", "a")}},
		"Pending":  {reason: "What most wait for.", claims: []Claim{web("shop", "a", pending), web("shop", "b", pending), web("shop", "c", func(c *Claim) { c.Pending = "v3" })}, want: "v2"},
		"Admitted": {reason: "What one was admitted to.", claims: []Claim{web("shop", "a", pending), web("shop", "c", func(c *Claim) { c.Wave, c.Mark, c.Since = "v3", Admitted, noon })}, want: "v3"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Target(tc.claims); got != tc.want {
				t.Errorf("%s\nTarget(): want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

// fleet simulates the claims of a cluster. Crossplane composes claims from time to time, and those
// that were annotated at once. Their pods are replaced over some minutes, in which they are not
// ready.
type fleet struct {
	claims []Claim
	ready  []int // minutes until each claim is ready, if the release does not break it

	release string
	breaks  types.UID
	now     time.Time

	// admitted are the UIDs of the claims whose wave has begun. All were healthy before any
	// release.
	admitted []types.UID
}

func (f *fleet) index(uid types.UID) int {
	return slices.IndexFunc(f.claims, func(c Claim) bool { return c.UID == uid })
}

// step simulates one minute.
func (f *fleet) step(t *rapid.T, p Progress) {
	for _, m := range p.Marks {
		c := &f.claims[f.index(m.UID)]
		if c.Since = f.now; m.To == "" {
			c.Wave, c.Mark = "", ""
			continue
		}
		if c.Wave != f.release {
			f.admitted = append(f.admitted, c.UID)
		}
		c.Wave, c.Mark = f.release, m.To
	}
	for i := range f.claims {
		c := &f.claims[i]
		switch isComposed := c.Wave == f.release || rapid.IntRange(0, 9).Draw(t, "composed") == 0; {
		case isComposed && c.Release != f.release && c.Wave == f.release:
			c.Release, c.Pending, c.Ready, c.ReadySince, c.Phase = f.release, "", false, f.now, "Degraded"
			f.ready[i] = rapid.IntRange(1, 20).Draw(t, "roll")
		case isComposed && c.Release != f.release && c.Pending != f.release:
			c.Pending = f.release
			if c.Ready && rapid.Bool().Draw(t, "adds an object") {
				c.Ready, c.ReadySince, f.ready[i] = false, f.now, 2
			}
		case isComposed:
			c.Pending = ""
		}
		if f.ready[i]--; f.ready[i] == 0 && (c.Release != f.release || c.UID != f.breaks) {
			c.Ready, c.ReadySince, c.Phase = true, f.now, "Running"
		}
	}
	f.now = f.now.Add(time.Minute)
}

// TestPropertyWaves: whatever the waves and the sequence of releases, a release that breaks a
// healthy claim reaches no claim of a later wave, and one that breaks none reaches all claims.
func TestPropertyWaves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list []Wave
		for i := range rapid.IntRange(0, 4).Draw(t, "waves") {
			w := Wave{Name: fmt.Sprint("wave-", i), Pause: rapid.SampledFrom([]string{"", "10m", "2h"}).Draw(t, "pause")}
			if rapid.Bool().Draw(t, "is part") {
				w.Percent = new(rapid.IntRange(1, 100).Draw(t, "percent"))
			}
			if rapid.Bool().Draw(t, "selects") {
				w.Namespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"stage": rapid.SampledFrom([]string{"canary", "none"}).Draw(t, "stage")}}
			}
			list = append(list, w)
		}
		if err := Check(list); err != nil {
			t.Fatal(err)
		}
		f := &fleet{now: noon}
		for i := range rapid.IntRange(1, 10).Draw(t, "claims") {
			c := web(rapid.SampledFrom([]string{"canary", "shop"}).Draw(t, "namespace"), fmt.Sprint("claim-", i))
			if i > 0 && rapid.Bool().Draw(t, "is composed") {
				c.Owner = f.claims[rapid.IntRange(0, i-1).Draw(t, "owner")].UID
			}
			f.claims, f.ready = append(f.claims, c), append(f.ready, 0)
		}
		waveOf := map[types.UID]int{}
		for i, w := range assign(list, families(f.claims), labelsOf) {
			for _, family := range w.families {
				for _, c := range family {
					if _, twice := waveOf[c.UID]; twice {
						t.Fatalf("%s is in two waves", c.Name)
					}
					waveOf[c.UID] = i
				}
			}
		}
		if len(waveOf) != len(f.claims) {
			t.Fatalf("of %d claims %d are in a wave", len(f.claims), len(waveOf))
		}
		for i, minutes := range []int{rapid.IntRange(1, 400).Draw(t, "minutes"), 1000} {
			f.release, f.admitted, f.breaks = fmt.Sprint("v", i+2), nil, ""
			if rapid.Bool().Draw(t, "breaks") {
				f.breaks = f.claims[rapid.IntRange(0, len(f.claims)-1).Draw(t, "broken")].UID
			}
			for range minutes {
				f.step(t, Decide(list, f.release, f.claims, labelsOf, f.now))
			}
			for _, uid := range f.admitted {
				if f.breaks != "" && slices.Contains(f.admitted, f.breaks) && waveOf[uid] > waveOf[f.breaks] {
					t.Fatalf("%s breaks %s of wave %d, and %s of wave %d was admitted", f.release, f.breaks, waveOf[f.breaks], uid, waveOf[uid])
				}
			}
		}
		for _, c := range f.claims {
			if f.breaks == "" && (c.Release != f.release || !c.Ready) {
				t.Fatalf("%s of wave %d has %s, and ready is %t: want %s", c.UID, waveOf[c.UID], c.Release, c.Ready, f.release)
			}
		}
	})
}

func TestCheck(t *testing.T) {
	cases := map[string]struct {
		reason string
		waves  []Wave
		want   string
	}{
		"None":   {reason: "Without waves all claims are upgraded at once."},
		"Valid":  {reason: "All fields.", waves: canariesFirst},
		"Name":   {reason: "Each has a name.", waves: []Wave{{}}, want: `[0].name must be of lower case letters, digits and hyphens, 63 at most, is ""`},
		"Twice":  {reason: "Of its own.", waves: []Wave{{Name: "a"}, {Name: "a"}}, want: `[1].name is "a", as that of another wave: each needs a name of its own`},
		"Others": {reason: "One name is taken.", waves: []Wave{{Name: "others"}}, want: `[0].name is "others", which is the name of the wave of claims that are in no other one: choose another name`},
		"Little": {reason: "A wave takes some.", waves: []Wave{{Name: "a", Percent: new(0)}}, want: "[0].percent must be from 1 to 100, is 0"},
		"Much":   {reason: "There is no more than all.", waves: []Wave{{Name: "a", Percent: new(101)}}, want: "[0].percent must be from 1 to 100, is 101"},
		"Pause":  {reason: "A duration has a unit.", waves: []Wave{{Name: "a", Pause: "30"}}, want: `[0].pause must be a duration of a week at most, like 30m, is "30"`},
		"Long":   {reason: "A wave that pauses for ever is a mistake.", waves: []Wave{{Name: "a", Pause: "200h"}}, want: `[0].pause must be a duration of a week at most, like 30m, is "200h"`},
		"Selector": {
			reason: "A selector is one of labels.", waves: []Wave{{Name: "a", Namespaces: &metav1.LabelSelector{MatchLabels: map[string]string{"not a key": "x"}}}},
			want: `[0].namespaces is no selector of labels: key: Invalid value: "not a key": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := Check(tc.waves); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nCheck(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCheckFields(t *testing.T) {
	cases := map[string]struct {
		reason string
		wave   map[string]any
		want   string
	}{
		"Known":    {reason: "What there is.", wave: map[string]any{"name": "a", "percent": 10, "pause": "1h", "namespaces": map[string]any{"matchLabels": map[string]any{"a": "b"}}}},
		"Percent":  {reason: "A misspelt part would be all.", wave: map[string]any{"name": "a", "percnt": 10}, want: "[0].percnt is no field of a wave: it has name, namespaces, pause, percent"},
		"Selector": {reason: "So would a misspelt selector.", wave: map[string]any{"name": "a", "namespaces": map[string]any{"labels": 1}}, want: "[0].namespaces.labels is no field of a selector: it has matchLabels, matchExpressions"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := CheckFields([]map[string]any{tc.wave}); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("%s\nCheckFields(): want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}
