package manager

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/kube"
	"github.com/storeplane/storeplane/internal/instance/manager/volume"
)

// repositoryPeriod is how often the volume of the backups is checked.
const repositoryPeriod = time.Minute

// repositoryVolume is what the primary's manager has read of the volume of the backups, whose
// own pod has no permissions.
type repositoryVolume struct {
	// tried is when a volume was checked last, and of is which one.
	tried time.Time
	of    instance.Volume

	// known is true once the volume was read. words is what keeps it from expanding, or "".
	known bool
	words string
}

// due reports whether it is time to check again.
func (r *repositoryVolume) due(want instance.Volume, now time.Time) bool {
	return r.of != want || now.Sub(r.tried) >= repositoryPeriod
}

// growRepository expands the volume of the backups to the desired size.
func (p *primary) growRepository(ctx context.Context, desired *instance.Desired, now time.Time) {
	r := &p.repository
	if desired.Repository == nil {
		*r = repositoryVolume{known: true}
		return
	}
	want := *desired.Repository
	if !r.due(want, now) {
		return
	}
	r.of, r.tried = want, now
	claim, err := p.Kube.VolumeClaim(ctx, want.Claim)
	if !p.Note("check the volume of the backups", err) {
		return
	}
	growth, err := volume.Decide(claim, want.Storage)
	if !p.Note("read the size of the backups' volume", err) {
		return
	}
	r.known, r.words = true, growth.Message
	if !growth.Request {
		return
	}
	err = p.Kube.PatchStorage(ctx, want.Claim, want.Storage)
	p.Note("expand the volume of the backups", err)
	switch {
	case err == nil:
		p.Event(ctx, corev1.EventTypeNormal, appsv1.ReasonVolumeResize, "Expanding the volume of the backups to "+want.Storage)
	case kube.Refused(err):
		r.words = volume.Refusal(want.Storage, kube.Reason(err))
	}
}
