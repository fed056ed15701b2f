package waves

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
)

// State is the state of a wave.
type State string

// States of a wave, in their order.
const (
	// Waiting means that the wave before is not done.
	Waiting State = "Waiting"
	// Upgrading means that the wave's claims are upgraded, each in its maintenance window if it has
	// one.
	Upgrading State = "Upgrading"
	// Halted means that a claim fails since it was admitted, or that no claim of the wave counts.
	// No later wave begins.
	Halted State = "Halted"
	// Pausing means that all claims are upgraded and ready, and the next wave begins after the
	// pause.
	Pausing State = "Pausing"
	// Done means that the next wave may begin.
	Done State = "Done"
)

const (
	// slow is the time after which the upgrade of a claim counts as failing. It is long, since
	// databases replace their servers one at a time.
	slow = 30 * time.Minute

	// unwell is the time after which a claim that is not ready before its wave begins counts as
	// unwell: an edit, or the release itself if it adds an object, takes less.
	unwell = 10 * time.Minute

	// pace is the interval in which claims of a wave are admitted. least, or share if that is more,
	// is how many families are admitted at once, so that not all claims of a cluster restart
	// together.
	pace  = time.Minute
	least = 10
	share = 10 // per cent

	// again is the interval in which an upgrade is checked although no claim has changed: a label
	// of a namespace may have.
	again = time.Minute
)

// Progress is the progress of an upgrade.
type Progress struct {
	// Release is the one that claims are upgraded to, or "" if none waits for it.
	Release string

	// Waves are in their order, the last of which is that of all other claims. Without a release
	// there are none.
	Waves []WaveProgress

	// Marks are those that are to be written into annotations of claims.
	Marks []Marked

	// Next is when to check again although no claim has changed, or zero.
	Next time.Time
}

// Marked is a claim, and the mark that it gets. Without a mark its annotations are removed.
type Marked struct {
	Claim

	To Mark
}

// WaveProgress is the progress of a wave. It counts a claim and those that it composes as one.
type WaveProgress struct {
	Name  string
	State State

	// Claims is the number of claims of the wave, Upgraded of those that are upgraded and ready,
	// and Aside of those that do not count: paused, deleted, new, or not ready before.
	Claims, Upgraded, Aside int

	// Failing are the claims that fail since they were admitted.
	Failing []Claim

	// Until is when the next wave begins, while this one pauses.
	Until time.Time
}

// Decide returns the progress of the upgrade of a cluster's claims to a release, and which claims
// to mark. labelsOf returns the labels of a namespace, or nil.
func Decide(waves []Wave, release string, claims []Claim, labelsOf func(namespace string) map[string]string, now time.Time) Progress {
	p := Progress{Marks: stale(claims, release)}
	if !isUnderWay(claims, release) {
		return p
	}
	p.Release, p.Next = release, now.Add(again)
	isOpen := true
	for _, w := range assign(waves, families(claims), labelsOf) {
		progress := w.progress(release, now)
		p.Marks = append(p.Marks, w.marks(release, isOpen && progress.State != Done, len(progress.Failing) == 0, now)...)
		if !isOpen {
			progress.State, progress.Failing, progress.Until = Waiting, nil, time.Time{}
		}
		if progress.State == Pausing && progress.Until.Before(p.Next) {
			p.Next = progress.Until
		}
		isOpen = isOpen && progress.State == Done
		p.Waves = append(p.Waves, progress)
	}
	return p
}

// isUnderWay reports whether a claim waits for a release, or was admitted and is not ready with it.
func isUnderWay(claims []Claim, release string) bool {
	return slices.ContainsFunc(claims, func(c Claim) bool {
		return !c.IsAside && (c.Pending == release || c.isUnder(release))
	})
}

// Target returns the release that claims are upgraded to, for a caller without the installed one:
// that of the claim under way that was marked last, or else the one that most claims wait for.
func Target(claims []Claim) string {
	var last Claim
	waiting, most := map[string]int{}, ""
	for _, c := range claims {
		if c.isUnder(c.Wave) && c.Since.After(last.Since) {
			last = c
		}
		if c.Pending == "" {
			continue
		}
		waiting[c.Pending]++
		if n := waiting[c.Pending] - waiting[most]; most == "" || n > 0 || n == 0 && c.Pending > most {
			most = c.Pending
		}
	}
	if last.Wave != "" {
		return last.Wave
	}
	return most
}

// stale returns the claims that were admitted to another release and never had it, to remove their
// marks: if that release comes again, it begins with the first wave. A claim that is not well keeps
// its mark, since that release may be the cause.
func stale(claims []Claim, release string) []Marked {
	var out []Marked
	for _, c := range claims {
		if c.Wave != "" && c.Wave != release && c.Release != c.Wave && c.isWell() {
			out = append(out, Marked{Claim: c})
		}
	}
	return out
}

// members are the families of a wave.
type members struct {
	Wave

	families []family
}

// assign assigns each family to the first wave that takes it.
func assign(waves []Wave, all []family, labelsOf func(string) map[string]string) []members {
	out := make([]members, 0, len(waves)+1)
	for _, w := range append(slices.Clone(waves), Wave{Name: Others}) {
		selector, err := w.selector()
		if err != nil {
			selector = labels.Nothing() // Check has refused such waves.
		}
		var taken, rest []family
		for _, f := range all {
			if selector.Matches(labels.Set(labelsOf(f[0].Namespace))) {
				taken = append(taken, f)
			} else {
				rest = append(rest, f)
			}
		}
		if w.Percent != nil {
			n := (len(taken)**w.Percent + 99) / 100
			taken, rest = taken[:n], append(rest, taken[n:]...)
			slices.SortFunc(rest, byHash)
		}
		out, all = append(out, members{w, taken}), rest
	}
	return out
}

// progress returns the progress of the wave, as if all waves before it were done.
func (m members) progress(release string, now time.Time) WaveProgress {
	p := WaveProgress{Name: m.Name, State: Done, Claims: len(m.families)}
	var last time.Time
	for _, f := range m.families {
		s, at, failing := f.state(release, now)
		switch s {
		case isAside:
			p.Aside++
		case isUpgraded:
			p.Upgraded++
			if at.After(last) {
				last = at
			}
		case isUpgrading:
			if failing != nil {
				p.Failing = append(p.Failing, *failing)
			}
		}
	}
	if last.After(now) {
		last = now // Only the clock of the provider counts.
	}
	switch until := last.Add(m.pause()); {
	case len(p.Failing) > 0 || p.Claims > 0 && p.Aside == p.Claims:
		p.State = Halted
	case p.Upgraded+p.Aside < p.Claims:
		p.State = Upgrading
	case until.After(now):
		p.State, p.Until = Pausing, until
	}
	return p
}

// state is the state of a family in its upgrade.
type state int

const (
	isUpgrading state = iota
	isUpgraded
	isAside
)

// state returns the state of a family, since when it is upgraded, and which of its claims fails:
// the last one, since the claims that a claim composes name the cause.
func (f family) state(release string, now time.Time) (state, time.Time, *Claim) {
	counts, upgraded := 0, 0
	var at time.Time
	var failing *Claim
	for i := range f {
		c := &f[i]
		isPart := c.Wave == release && c.Mark != ""
		switch {
		case c.IsAside || isPart && c.Mark == Unwell || !isPart && !c.needs(release) && !c.has(release):
			continue
		case isPart && c.Mark == Upgraded:
			upgraded++
			if c.Since.After(at) {
				at = c.Since
			}
		case !isPart && c.has(release) && c.isWell():
			upgraded++ // The release has changed nothing of its pods, or its team has edited it.
		case !isPart && c.has(release):
			continue
		case c.isUnder(release) && c.fails(now):
			failing = c
		}
		counts++
	}
	switch {
	case counts == 0:
		return isAside, at, nil
	case upgraded == counts:
		return isUpgraded, at, nil
	}
	return isUpgrading, at, failing
}

// fails reports whether a claim under way fails: it has Failed with the release, or has not become
// ready with it in time, or it has not got the release in time and has Failed or is refused.
func (c Claim) fails(now time.Time) bool {
	isSlow := now.Sub(c.Since) > slow
	if c.Mark == Rolling {
		return isSlow || c.Phase == appsv1.PhaseFailed && c.isSettled()
	}
	return isSlow && (c.Phase == appsv1.PhaseFailed || c.IsRefused)
}

// marks returns the marks of the wave's claims. While it is the wave's turn, claims that do not
// stay ready are marked as Rolling again, and, unless one fails, claims are admitted, a limited
// number at a time.
func (m members) marks(release string, isTurn, admits bool, now time.Time) []Marked {
	room := max(least, len(m.families)*share/100)
	for _, f := range m.families {
		if slices.ContainsFunc(f, func(c Claim) bool { return c.Wave == release && c.Mark != Upgraded && now.Sub(c.Since) < pace }) {
			room--
		}
	}
	if !isTurn || !admits {
		room = 0
	}
	var out []Marked
	for _, f := range m.families {
		begins := false
		for _, c := range f {
			isPart := c.Wave == release && c.Mark != ""
			switch {
			case c.IsAside:
			case isPart && c.Mark != Upgraded && c.has(release) && c.isWell():
				out = append(out, Marked{c, Upgraded})
			case isPart && c.Mark == Admitted && c.has(release), isPart && c.Mark == Upgraded && isTurn && c.isSettled() && (!c.Ready || c.isBad()):
				out = append(out, Marked{c, Rolling})
			case !isPart && room > 0 && c.needs(release):
				if to := c.admission(now); to != "" {
					begins = true
					out = append(out, Marked{c, to})
				}
			}
		}
		if begins {
			room--
		}
	}
	return out
}

// admission returns the mark with which a claim enters its wave, or "" while its state is not yet
// certain. A claim that is not well since its wave upgraded it to another release is to be repaired
// by this one.
func (c Claim) admission(now time.Time) Mark {
	switch {
	case c.isWell() || c.isUnder(c.Wave):
		return Admitted
	case now.Sub(c.ReadySince) < unwell:
		return ""
	}
	return Unwell
}
