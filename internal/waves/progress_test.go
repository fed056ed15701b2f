package waves

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, time.November, 26, 12, 0, 0, 0, time.UTC)

// canaries first, then a tenth of all others, after half an hour.
var canariesFirst = []Wave{
	{Name: "canaries", Namespaces: &metav1.LabelSelector{MatchLabels: map[string]string{"stage": "canary"}}, Pause: "30m"},
	{Name: "first", Percent: 50},
}

// labelsOf namespaces: those of canaries have the label.
func labelsOf(namespace string) map[string]string {
	if namespace == "canary" {
		return map[string]string{"stage": "canary"}
	}
	return nil
}

// web is a WebApp that has been ready by release v1 for a day.
func web(namespace, name string, change ...func(*Claim)) Claim {
	c := Claim{
		Kind: "WebApp", Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name), Release: "v1",
		Ready: true, ReadySince: noon.Add(-24 * time.Hour), UpgradedSince: noon.Add(-24 * time.Hour), Phase: "Running",
	}
	for _, f := range change {
		f(&c)
	}
	return c
}

func pending(c *Claim) { c.Pending, c.UpgradedSince = "v2", noon.Add(-time.Hour) }

// admitted by its wave, an hour ago.
func admitted(c *Claim) { c.Wave, c.WaveBegan = "v2", noon.Add(-time.Hour) }

func upgradedAt(at time.Time) func(*Claim) {
	return func(c *Claim) { c.Release, c.Pending, c.UpgradedSince, c.ReadySince = "v2", "", at, at }
}

func failed(c *Claim) { c.Ready, c.Phase, c.ReadySince = false, "Degraded", noon.Add(-time.Minute) }

func unwell(c *Claim) { c.Ready, c.Phase = false, "Failed" }

func of(owner Claim) func(*Claim) { return func(c *Claim) { c.Owner = owner.UID } }

func TestDecide(t *testing.T) {
	type want struct {
		Release string
		States  map[string]State
		Admit   []string
		Next    time.Duration
	}
	shop := web("shop", "store", func(c *Claim) { c.Kind = "EcommercePlatform" })
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
			want:   want{Release: "v2", States: map[string]State{"canaries": Upgrading, "first": Waiting, "others": Waiting}, Admit: []string{"canary/a"}},
		},
		"NotComposedYet": {
			reason: "A claim that Crossplane has not composed by the release yet is composed, and waited for.",
			claims: []Claim{web("canary", "a"), web("shop", "b", pending)},
			want:   want{Release: "v2", States: map[string]State{"canaries": Upgrading, "first": Waiting, "others": Waiting}, Admit: []string{"canary/a"}},
		},
		"Admitted": {
			reason: "A claim that knows is not told again.",
			claims: []Claim{web("canary", "a", pending, admitted), web("shop", "b", pending)},
			want:   want{Release: "v2", States: map[string]State{"canaries": Upgrading, "first": Waiting, "others": Waiting}},
		},
		"Pauses": {
			reason: "After a wave comes its pause.",
			claims: []Claim{web("canary", "a", admitted, upgradedAt(noon.Add(-10*time.Minute))), web("shop", "b", pending)},
			want:   want{Release: "v2", States: map[string]State{"canaries": Pausing, "first": Waiting, "others": Waiting}, Next: 20 * time.Minute},
		},
		"GoesOn": {
			reason: "After the pause comes the next wave, with half of the claims, rounded up.",
			claims: []Claim{web("canary", "a", admitted, upgradedAt(noon.Add(-30*time.Minute))), web("shop", "b", pending), web("shop", "c", pending), web("shop", "d", pending)},
			want:   want{Release: "v2", States: map[string]State{"canaries": Done, "first": Upgrading, "others": Waiting}, Admit: []string{"shop/b", "shop/c"}},
		},
		"Empty": {
			reason: "A wave without claims holds up nothing.",
			claims: []Claim{web("shop", "b", pending)},
			want:   want{Release: "v2", States: map[string]State{"canaries": Done, "first": Upgrading, "others": Waiting}, Admit: []string{"shop/b"}},
		},
		"Halts": {
			reason: "A claim that is Degraded since its upgrade halts all waves after its own.",
			claims: []Claim{web("canary", "a", admitted, upgradedAt(noon.Add(-40*time.Minute)), failed), web("canary", "z", admitted, pending), web("shop", "b", pending)},
			want:   want{Release: "v2", States: map[string]State{"canaries": Halted, "first": Waiting, "others": Waiting}},
		},
		"HaltsWhileUpgrading": {
			reason: "So does one that has failed on its way.",
			claims: []Claim{web("canary", "a", admitted, pending, failed), web("shop", "b", pending)},
			want:   want{Release: "v2", States: map[string]State{"canaries": Halted, "first": Waiting, "others": Waiting}},
		},
		"UnwellBefore": {
			reason: "A claim that was not ready before its wave began says nothing of the release.",
			claims: []Claim{web("canary", "a", unwell, admitted, pending), web("canary", "z", admitted, upgradedAt(noon.Add(-time.Hour))), web("shop", "b", pending)},
			want:   want{Release: "v2", States: map[string]State{"canaries": Done, "first": Upgrading, "others": Waiting}, Admit: []string{"shop/b"}},
		},
		"Aside": {
			reason: "Nor is anything to be expected of one that is paused.",
			claims: []Claim{web("canary", "a", func(c *Claim) { c.IsAside = true }), web("shop", "b", pending)},
			want:   want{Release: "v2", States: map[string]State{"canaries": Done, "first": Upgrading, "others": Waiting}, Admit: []string{"shop/b"}},
		},
		"Family": {
			reason: "What a shop composes is upgraded with it, also where the shop itself does not change.",
			claims: []Claim{shop, web("shop", "store-backend", of(shop), pending), web("shop", "store-frontend", of(shop), pending)},
			want:   want{Release: "v2", States: map[string]State{"canaries": Done, "first": Upgrading, "others": Waiting}, Admit: []string{"shop/store", "shop/store-backend", "shop/store-frontend"}},
		},
		"FamilyFails": {
			reason: "A part of a shop that fails halts.",
			claims: []Claim{
				web("canary", "store", func(c *Claim) { c.UID = shop.UID }, admitted, upgradedAt(noon.Add(-time.Hour))),
				web("canary", "store-backend", of(shop), admitted, upgradedAt(noon.Add(-time.Hour)), failed), web("shop", "b", pending),
			},
			want: want{Release: "v2", States: map[string]State{"canaries": Halted, "first": Waiting, "others": Waiting}},
		},
		"Newest": {
			reason: "Where two releases wait, the one that was reported last is the target.",
			claims: []Claim{web("canary", "a", pending, func(c *Claim) { c.Pending, c.UpgradedSince = "v3", noon }), web("canary", "b", pending, admitted)},
			want:   want{Release: "v3", States: map[string]State{"canaries": Upgrading, "first": Waiting, "others": Waiting}, Admit: []string{"canary/a", "canary/b"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := Decide(canariesFirst, tc.claims, labelsOf, noon)
			got := want{Release: p.Release}
			for _, w := range p.Waves {
				if got.States == nil {
					got.States = map[string]State{}
				}
				got.States[w.Name] = w.State
			}
			for _, c := range p.Admit {
				got.Admit = append(got.Admit, c.Namespace+"/"+c.Name)
			}
			if slices.Sort(got.Admit); !p.Next.IsZero() {
				got.Next = p.Next.Sub(noon)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nDecide(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// fleet is a cluster of claims that are upgraded when they may be.
type fleet struct {
	claims []Claim
	bad    types.UID // what the release breaks
	now    time.Time
}

// step has each claim that knows of the release do what it does then.
func (f *fleet) step(p Progress) {
	for _, a := range p.Admit {
		i := slices.IndexFunc(f.claims, func(c Claim) bool { return c.UID == a.UID })
		f.claims[i].Wave, f.claims[i].WaveBegan = p.Release, f.now
	}
	for i := range f.claims {
		c := &f.claims[i]
		if c.Wave != "v2" || c.Release == "v2" {
			continue
		}
		c.Release, c.Pending, c.UpgradedSince = "v2", "", f.now
		if c.UID == f.bad {
			c.Ready, c.Phase, c.ReadySince = false, "Failed", f.now
		}
	}
}

// TestPropertyWaves: whatever the waves, no wave begins before the one before is upgraded, ready and
// has paused; a release that breaks a claim reaches no later wave; and one that breaks none reaches
// all claims.
func TestPropertyWaves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list []Wave
		for i := range rapid.IntRange(0, 4).Draw(t, "waves") {
			w := Wave{Name: fmt.Sprint("wave-", i), Percent: rapid.IntRange(0, 100).Draw(t, "percent"), Pause: rapid.SampledFrom([]string{"", "10m", "2h"}).Draw(t, "pause")}
			if rapid.Bool().Draw(t, "selects") {
				w.Namespaces = &metav1.LabelSelector{MatchLabels: map[string]string{"stage": rapid.SampledFrom([]string{"canary", "none"}).Draw(t, "stage")}}
			}
			list = append(list, w)
		}
		if err := Check(list); err != nil {
			t.Fatal(err)
		}
		f := &fleet{now: noon}
		for i := range rapid.IntRange(1, 12).Draw(t, "claims") {
			c := web(rapid.SampledFrom([]string{"canary", "shop"}).Draw(t, "namespace"), fmt.Sprint("claim-", i), pending)
			if i > 0 && rapid.Bool().Draw(t, "is composed") {
				c.Owner = f.claims[rapid.IntRange(0, i-1).Draw(t, "owner")].UID
			}
			f.claims = append(f.claims, c)
		}
		if rapid.Bool().Draw(t, "is bad") {
			f.bad = f.claims[rapid.IntRange(0, len(f.claims)-1).Draw(t, "bad")].UID
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
		for range 100 {
			p := Decide(list, f.claims, labelsOf, f.now)
			for _, a := range p.Admit {
				for _, c := range f.claims {
					if waveOf[c.UID] >= waveOf[a.UID] {
						continue
					}
					if c.Release != "v2" || !c.Ready {
						t.Fatalf("%s of wave %d begins, and %s of wave %d is not upgraded and ready", a.Name, waveOf[a.UID], c.Name, waveOf[c.UID])
					}
					if waveOf[c.UID] < len(list) && f.now.Sub(c.UpgradedSince) < list[waveOf[c.UID]].pause() {
						t.Fatalf("%s begins in the pause after %s", a.Name, c.Name)
					}
				}
			}
			if f.step(p); !p.Next.IsZero() {
				f.now = p.Next
				continue
			}
			f.now = f.now.Add(time.Minute)
		}
		for _, c := range f.claims {
			want := f.bad == "" || waveOf[c.UID] <= waveOf[f.bad]
			if got := c.Release == "v2"; got != want {
				t.Fatalf("%s of wave %d: upgraded %t, want %t", c.Name, waveOf[c.UID], got, want)
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
		"Much":   {reason: "There is no more than all.", waves: []Wave{{Name: "a", Percent: 101}}, want: "[0].percent must be from 1 to 100, is 101"},
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
