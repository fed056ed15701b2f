package waves

import (
	"cmp"
	"hash/fnv"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// State of a wave.
type State string

// The states, in their order.
const (
	// Waiting for the wave before.
	Waiting State = "Waiting"
	// Upgrading: its claims are upgraded, each in its maintenance window if it has one.
	Upgrading State = "Upgrading"
	// Halted: a claim that was upgraded is Degraded or Failed. No other wave begins.
	Halted State = "Halted"
	// Pausing: all claims are upgraded and ready, and the next wave begins after its pause.
	Pausing State = "Pausing"
	// Done: the next wave may begin.
	Done State = "Done"
)

// Progress of an upgrade.
type Progress struct {
	// Release that claims are upgraded to, or "" where no claim waits for one.
	Release string

	// Waves in their order, the last of which is that of all other claims. Without a release they
	// are empty.
	Waves []WaveProgress

	// Admit are the claims whose wave has begun and that do not know it yet.
	Admit []Claim

	// Next is when to look again though no claim has changed, or zero.
	Next time.Time
}

// WaveProgress is how far a wave is. It counts claims with those that they compose as one.
type WaveProgress struct {
	Name  string
	State State

	// Claims of the wave; of these those that are upgraded and ready, and those that do not
	// count: paused, deleted, refused, or not ready since before the wave began.
	Claims, Upgraded, Aside int

	// Failing are those that are Degraded or Failed since they were upgraded.
	Failing []Claim

	// Until the next wave begins, while it pauses.
	Until time.Time
}

// Decide how far the upgrade of a cluster's claims is, and which are to be upgraded now. A namespace
// has labels, or nil.
func Decide(waves []Wave, claims []Claim, labelsOf func(namespace string) map[string]string, now time.Time) Progress {
	p := Progress{Release: target(claims)}
	if p.Release == "" {
		return p
	}
	isOpen := true
	for _, w := range assign(waves, families(claims), labelsOf) {
		progress := w.progress(p.Release, now)
		if !isOpen {
			progress.State, progress.Until = Waiting, time.Time{}
		} else {
			p.Admit = append(p.Admit, w.unaware(p.Release)...)
		}
		if progress.State == Pausing {
			p.Next = progress.Until
		}
		isOpen = isOpen && progress.State == Done
		p.Waves = append(p.Waves, progress)
	}
	return p
}

// target is the release that claims wait for: that of the claim which has reported one last, where
// there are several.
func target(claims []Claim) string {
	var last Claim
	for _, c := range claims {
		if c.Pending == "" || c.IsAside {
			continue
		}
		if at := c.UpgradedSince.Compare(last.UpgradedSince); last.Pending == "" || at > 0 || at == 0 && c.Pending > last.Pending {
			last = c
		}
	}
	return last.Pending
}

// family is a claim that a user has filed, first, and all that it composes.
type family []Claim

// families of claims, in an order that stays: by a hash of the first one's UID.
func families(claims []Claim) []family {
	byUID := make(map[types.UID]Claim, len(claims))
	for _, c := range claims {
		byUID[c.UID] = c
	}
	root := func(c Claim) types.UID {
		for range len(claims) {
			owner, ok := byUID[c.Owner]
			if !ok {
				break
			}
			c = owner
		}
		return c.UID
	}
	all := map[types.UID]family{}
	for _, c := range claims {
		uid := root(c)
		if uid == c.UID {
			all[uid] = append(family{c}, all[uid]...)
			continue
		}
		all[uid] = append(all[uid], c)
	}
	out := make([]family, 0, len(all))
	for _, f := range all {
		slices.SortFunc(f[1:], func(a, b Claim) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b family) int {
		return cmp.Or(cmp.Compare(hash(a[0].UID), hash(b[0].UID)), cmp.Compare(a[0].UID, b[0].UID))
	})
	return out
}

func hash(uid types.UID) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(uid))
	return h.Sum64()
}

// members of a wave.
type members struct {
	Wave

	families []family
}

// assign each family to the first wave that takes it.
func assign(waves []Wave, all []family, labelsOf func(string) map[string]string) []members {
	out := make([]members, 0, len(waves)+1)
	for _, w := range append(slices.Clone(waves), Wave{Name: Others}) {
		selector, err := w.selector()
		if err != nil {
			selector = labels.Nothing() // It was checked.
		}
		var taken, rest []family
		for _, f := range all {
			if selector.Matches(labels.Set(labelsOf(f[0].Namespace))) {
				taken = append(taken, f)
			} else {
				rest = append(rest, f)
			}
		}
		if w.Percent > 0 {
			n := (len(taken)*w.Percent + 99) / 100
			taken, rest = taken[:n], append(rest, taken[n:]...)
		}
		slices.SortFunc(rest, func(a, b family) int {
			return cmp.Or(cmp.Compare(hash(a[0].UID), hash(b[0].UID)), cmp.Compare(a[0].UID, b[0].UID))
		})
		out, all = append(out, members{w, taken}), rest
	}
	return out
}

// progress of the wave, as if all before it were done.
func (m members) progress(release string, now time.Time) WaveProgress {
	p := WaveProgress{Name: m.Name, State: Done, Claims: len(m.families)}
	var last time.Time
	for _, f := range m.families {
		switch s, at := f.state(release); s {
		case isAside:
			p.Aside++
		case isUpgraded:
			p.Upgraded++
			if at.After(last) {
				last = at
			}
		case isFailing:
			p.Failing = append(p.Failing, f.worst())
		}
	}
	switch until := last.Add(m.pause()); {
	case len(p.Failing) > 0:
		p.State = Halted
	case p.Upgraded+p.Aside < p.Claims:
		p.State = Upgrading
	case until.After(now):
		p.State, p.Until = Pausing, until
	}
	return p
}

// unaware are the claims of the wave that do not know that it has begun.
func (m members) unaware(release string) []Claim {
	var out []Claim
	for _, f := range m.families {
		for _, c := range f {
			if c.Wave != release && !c.IsAside {
				out = append(out, c)
			}
		}
	}
	return out
}

// state of a family in its upgrade.
type state int

const (
	isUpgrading state = iota
	isUpgraded
	isFailing
	isAside
)

// state of a family, and when it was upgraded and ready, where it is. A claim that was not ready
// before its wave began says nothing of the release.
func (f family) state(release string) (state, time.Time) {
	at := time.Time{}
	isDone, isReady, hasFailed := true, true, false
	for _, c := range f {
		wasUnwell := c.Wave == release && !c.Ready && c.ReadySince.Before(c.WaveBegan)
		if c.IsAside || wasUnwell {
			return isAside, at
		}
		isDone = isDone && c.Release == release && c.Pending == ""
		isReady = isReady && c.Ready
		isPart := c.Release == release || c.Wave == release
		hasFailed = hasFailed || isPart && !c.Ready && (c.Phase == "Degraded" || c.Phase == "Failed")
		for _, t := range []time.Time{c.ReadySince, c.UpgradedSince, c.WaveBegan} {
			if t.After(at) {
				at = t
			}
		}
	}
	switch {
	case hasFailed:
		return isFailing, at
	case isDone && isReady:
		return isUpgraded, at
	}
	return isUpgrading, at
}

// worst claim of a family that fails: the one that is composed, where there is one, names the cause.
func (f family) worst() Claim {
	for _, c := range slices.Backward(f) {
		if !c.Ready && (c.Phase == "Degraded" || c.Phase == "Failed") {
			return c
		}
	}
	return f[0]
}
