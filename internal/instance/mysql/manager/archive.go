package manager

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/storeplane/storeplane/internal/instance"
)

// silentAfter is for how long the pod that archives binary logs may report nothing: it does each instance.ArchiveStep.
const silentAfter = 2*instance.ArchiveStep + time.Minute

// silent is why nothing counts as archived while the pod reports nothing.
const silent = "the pod that archives binary logs has reported nothing for 11 minutes: see the pods with label app.kubernetes.io/component=archive"

// archived returns the state of the archive of binary logs, or nil without one.
func (p *primary) archived(desired *instance.Desired, now time.Time) *instance.Archive {
	switch {
	case desired.Backup == nil:
		p.archiving = time.Time{}
	case p.archiving.IsZero():
		p.archiving = now
	}
	if p.archiving.IsZero() {
		return nil
	}
	return archiveOf(p.archive.One(), p.archiving, now)
}

// archiveOf returns what the pod that archives binary logs has reported in a ConfigMap, and that it fails if it has
// reported nothing for long, given since when it is to.
func archiveOf(reports *corev1.ConfigMap, since, now time.Time) *instance.Archive {
	a := &instance.Archive{}
	if reports != nil {
		// A report that cannot be parsed is written again.
		_ = json.Unmarshal([]byte(reports.Data[instance.ArchiveKey]), a)
	}
	last := since
	if a.Recoverable != nil && a.Recoverable.After(since) {
		last = *a.Recoverable
	}
	switch {
	case a.Failing != "":
	case now.Sub(last) > silentAfter:
		a.Failing, a.Since = silent, a.Recoverable
	case a.Recoverable == nil:
		return nil
	}
	return a
}
