package manager

import (
	"context"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/instance"
)

// silentAfter is for how long the pod that archives binary logs may report nothing: it does each instance.ArchiveStep.
const silentAfter = 2*instance.ArchiveStep + time.Minute

// silent is why nothing counts as archived while the pod reports nothing.
const silent = "the pod that archives binary logs has reported nothing for 11 minutes: see the pods with label app.kubernetes.io/component=archive"

// archived returns the state of the archive of binary logs, or nil without one.
func (p *primary) archived(desired *instance.Desired, before *instance.Archive, now time.Time) *instance.Archive {
	if desired.Backup == nil {
		return nil
	}
	return archiveOf(p.archive.One(), before, p.began, now)
}

// part gives the data another identifier where it lacks what is archived of it: what is written next does not continue that, and
// a restore that applied both would make what there never was. The archive begins again with it, and so do the backups.
func (p *primary) part(ctx context.Context, a *instance.Archive) {
	replaced := p.parting.pass(a, p.began, func(system string) (sent, replaced bool) {
		sent, err := p.server.RenewSystem(ctx, system)
		return sent, p.Note("give the data another identifier", err)
	})
	if replaced {
		p.Event(ctx, corev1.EventTypeWarning, appsv1.ReasonArchiveGap, parted)
	}
}

// parting is the identifier of data for which a statement was sent that replaces it, until that is known to have succeeded, or "".
type parting string

// pass has the identifier of data replaced where a report has found that it lacks what is archived, by renew, which returns
// whether the statement was sent, and whether the server is known to have another identifier now: by this statement, or by one
// whose answer was lost. It reports, once, that the identifier was replaced.
func (p *parting) pass(a *instance.Archive, began time.Time, renew func(system string) (sent, replaced bool)) bool {
	// The archive may be of data with another identifier by now: the statement was executed after its answer was not waited for
	// any more.
	done := *p != "" && a != nil && a.System != "" && *p != parting(a.System)
	if parts(a, began) {
		sent, replaced := renew(a.System)
		if sent {
			*p = parting(a.System)
		}
		done = done || replaced && *p == parting(a.System)
	}
	if done {
		*p = ""
	}
	return done
}

// parts reports whether a report has found that the data of this primary, which it is since a time, lacks what is archived. An
// older report may be of other data.
func parts(a *instance.Archive, began time.Time) bool {
	return a != nil && a.Parted && a.System != "" && a.Reported != nil && a.Reported.After(began)
}

// parted is what an event about another history states.
const parted = "The data lacks transactions that are archived, as an older state of a volume does: it counts as another history from now on, of which a backup starts automatically. Earlier backups and what is archived after them can be restored by restoreFrom.systemIdentifier"

// grace is for how long a new primary's manager goes on with the last report: after a hibernation the pod has just started.
const grace = time.Minute

// archiveOf returns what the pod that archives binary logs has reported in a ConfigMap, and that it fails if it has
// reported nothing for long, given the last report of a primary and since when there is this one.
func archiveOf(reports *corev1.ConfigMap, before *instance.Archive, began, now time.Time) *instance.Archive {
	a := &instance.Archive{}
	if reports != nil {
		// A report that cannot be parsed is written again.
		_ = json.Unmarshal([]byte(reports.Data[instance.ArchiveKey]), a)
	}
	last := began
	if a.Reported != nil {
		last = *a.Reported
		resume(a, before)
	}
	switch {
	case now.Sub(last) > silentAfter && now.Sub(began) < grace:
		return before
	case now.Sub(last) > silentAfter:
		a.Failing, a.Since = silent, a.Recoverable
	case a.Reported == nil:
		return before
	}
	return a
}

// resume completes a report of a pod that has started again, and does not know yet how far the archive is.
func resume(a, before *instance.Archive) {
	if before == nil {
		return
	}
	if a.System == "" {
		a.System, a.BackedUp, a.Gaps = before.System, before.BackedUp, before.Gaps
	}
	if a.Recoverable == nil && a.BackedUp && !a.Open() && a.System == before.System {
		a.Recoverable = before.Recoverable
	}
}
