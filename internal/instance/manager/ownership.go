package manager

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/archive"
	"github.com/storeplane/storeplane/internal/instance/manager/lead"
	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
	"github.com/storeplane/storeplane/internal/instance/manager/volume"
)

// ownerFile is the file on a volume that contains the UID of the DatabaseCluster whose data is
// on it.
const ownerFile = "owner"

// errOccupied is the error for a volume with data that a restored cluster must not start with.
var errOccupied = errors.New("the volume holds data of another DatabaseCluster")

// takeOwnership takes ownership of the volume before PostgreSQL starts on it, or reports why not. A
// DatabaseCluster that is deleted may leave its volumes behind, and the next one of its name
// continues with their data: with the newest, which package lead finds. One that is restored
// from a backup must not: its first server would start with the old data, and it would go
// unnoticed that nothing was restored; another server would follow the first with data that
// has diverged from it. The members of a restored cluster have their own data, also after
// another DatabaseCluster has adopted all of them.
func (b *member) takeOwnership(ctx context.Context, next *instance.Member) {
	if b.owned.Load() {
		b.Note("decide again whether the server leads", b.reconsider(ctx))
		return
	}
	started := b.seen.Load() != nil
	g, err := b.ground(ctx)
	if !b.Note("read which cluster the server is of", err) {
		// Without the API server Patroni starts no server either. A server that runs already
		// is not stopped.
		b.owned.Store(started)
		return
	}
	if err := occupied(b.Volume, g.uid, g.desired); errors.Is(err, errOccupied) && !g.joined(b.Pod) {
		message := fmt.Sprintf("nothing is restored over the data on volume claim %s, which a deleted DatabaseCluster of this name has left: delete that volume claim and pod %s if its data is not needed, apply the claim without restoreFrom to go on with it, or restore under another name",
			instance.VolumeClaim(b.Pod), b.Pod)
		next.Message, next.Restore = message, &instance.RestoreState{Message: message, Failed: true}
		return
	}
	if !started && !b.decided(ctx, g, next) {
		return
	}
	// A volume that is full, for example, must not keep its server from starting.
	b.Note("own the volume", writeOwner(b.Volume, g.uid))
	b.owned.Store(true)
}

// decided reports whether the server may start beside others of its name.
func (b *member) decided(ctx context.Context, g *ground, next *instance.Member) bool {
	if err := b.compare(ctx, g); !b.Note("read what the server starts beside", err) {
		return false
	}
	next.Servers = g.servers
	v := lead.Decide(g.cluster)
	if v.Start && g.cluster.Primary {
		v.Held.Message = b.makeRoom(ctx, g)
		v.Start = v.Held.Message == ""
	}
	if v.First {
		v.Held.Message = b.stand(ctx, g)
		v.Start = v.Held.Message == ""
	}
	// A server that was chosen stays chosen while it is not known what another volume holds.
	if !v.First && !v.Unknown && !b.Note("withdraw the failover to this server", b.resign(ctx)) {
		return false
	}
	if !v.Start {
		next.Held = &v.Held
		if v.Held.Undecided && b.held != v.Held && g.speaks(b.Pod) {
			b.Event(ctx, corev1.EventTypeWarning, appsv1.ReasonLeaderUndecided, v.Held.Message)
		}
		b.held = v.Held
		return false
	}
	if !b.Note("have the server begin a timeline of its own", b.timeline(v.First, g)) {
		return false
	}
	if v.First {
		b.Event(ctx, corev1.EventTypeNormal, appsv1.ReasonVolumesCompared, fmt.Sprintf("%s leads with volume claim %s: timeline %d, position %s", b.Pod, instance.VolumeClaim(b.Pod), b.data.Timeline, b.data.Position))
	}
	return true
}

// timeline has a server that leads with what its volume holds begin a timeline of its own,
// since the cluster may have had a later one, which the archive may contain. Otherwise it
// undoes that.
func (b *member) timeline(first bool, g *ground) error {
	c := archive.Config{Volume: b.Volume}
	if alone := g.desired.Backup == nil; first && (g.led > 0 || !alone) {
		return c.AskTimeline(g.led, alone)
	}
	return c.ForgetTimeline()
}

// reconsider decides again about a server that waits to lead, for the archive or for Patroni
// to promote it. That may take long: meanwhile the annotation may be removed or name another
// volume, backups may be disabled, or another server may lead.
func (b *member) reconsider(ctx context.Context) error {
	c := archive.Config{Volume: b.Volume}
	status := b.seen.Load()
	waits := c.TimelineState() != nil && status == nil
	named, stands := b.stands()
	switch {
	case status != nil && status.Leads():
		return errors.Join(b.forgetCandidate(), c.ForgetBegun())
	case waits, b.withdrawn, stands:
	case status != nil && status.ReplicationState == patroni.StateStreaming:
		return c.ForgetBegun()
	default:
		return nil
	}
	g, err := b.ground(ctx)
	if err != nil {
		return err
	}
	if err := b.compare(ctx, g); err != nil {
		return err
	}
	v := lead.Decide(g.cluster)
	switch chosen := len(g.cluster.Members) == 0 && !g.cluster.Primary && (named == "" || named == g.cluster.Named); {
	case v.First:
		return b.again(ctx, g, waits)
	case chosen && !waits && !b.withdrawn:
		// The server was chosen for the newest volume. That another volume cannot be read at
		// the moment, as while its pod is replaced, changes nothing.
		return nil
	}
	// The status may be a second old.
	if now, err := b.patroni.Status(ctx); err == nil && now.Leads() {
		return nil
	}
	if err := b.resign(ctx); err != nil {
		return err
	}
	if v.Start && !waits && !b.withdrawn && c.Begun() == 0 {
		// The server is a member as before.
		return nil
	}
	pod, err := b.Kube.Self(ctx, b.Pod)
	if err != nil {
		return err
	}
	// The pod is deleted also if the server has stopped waiting in this moment.
	b.withdrawn = true
	if waits {
		if err := c.WithdrawTimeline(); err != nil {
			return err
		}
	}
	return b.Kube.DeletePod(ctx, pod)
}

// again has a server wait to lead. It stands again if it is no candidate any more: because it
// was withdrawn and named again since, or because another server was named in between, stood in
// its place, and resigned.
func (b *member) again(ctx context.Context, g *ground, waits bool) error {
	candidate, err := b.candidate(ctx)
	if err != nil {
		return err
	}
	if b.withdrawn || !candidate {
		// Patroni removes the failover once the server leads, and the status may be a second old.
		if now, err := b.patroni.Status(ctx); err == nil && now.Leads() {
			return nil
		}
		if message := b.stand(ctx, g); message != "" {
			return errors.New(message)
		}
	}
	b.withdrawn = false
	if !waits {
		return nil
	}
	return b.timeline(true, g)
}

// makeRoom makes room for a copy of the primary if the volume holds data that cannot follow
// it. If the data cannot be set aside, it returns a message and the server is held, except for
// data that pg_rewind can rewind: which server is the primary has been decided.
func (b *member) makeRoom(ctx context.Context, g *ground) string {
	switch {
	case b.data == nil:
		return ""
	case b.data.State == instance.DataUnreadable:
		return b.clear(ctx, "unreadable", "holds data that cannot be read: "+b.data.Problem)
	case b.data.State == instance.DataWhole && g.system != "" && b.data.System != g.system:
		return b.clearOther(ctx)
	case b.data.State == instance.DataWhole && g.system != "":
		return b.clearBranch(ctx, g)
	}
	return ""
}

// clear sets aside data that no server can start with.
func (b *member) clear(ctx context.Context, why, holds string) string {
	where, err := volume.SetAside(archive.Config{Volume: b.Volume}.DataDir(), why)
	if !b.Note("set the data aside", err) {
		return fmt.Sprintf("volume claim %s %s, and it cannot be set aside for a copy of the primary: enlarge the volume claim, or delete volume claim and pod %s if that data is not needed", instance.VolumeClaim(b.Pod), holds, b.Pod)
	}
	b.Event(ctx, corev1.EventTypeWarning, appsv1.ReasonDataSetAside, fmt.Sprintf("%s copies the primary: volume claim %s %s. That data is set aside in folder %s", b.Pod, instance.VolumeClaim(b.Pod), holds, filepath.Base(where)))
	return ""
}

// clearBranch sets aside data that has diverged from the primary's: pg_rewind would overwrite
// it, and it may hold writes that were acknowledged. If there is no room for both, pg_rewind
// may overwrite it.
func (b *member) clearBranch(ctx context.Context, g *ground) string {
	history, err := b.remote(g.address).History(ctx)
	if !b.Note("read the primary's history", err) {
		return "Waiting for the history of the primary's timelines"
	}
	if !history.Complete(g.timeline) && b.beside.since(g.address, g.timeline) < startWithin {
		return "Waiting for the history of the primary's timelines"
	}
	if !lead.Diverged(b.data, g.timeline, history.Ancestors) {
		return ""
	}
	where, err := volume.SetAside(archive.Config{Volume: b.Volume}.DataDir(), "branch")
	if !b.Note("set a diverged branch aside", err) && b.data.Timeline == g.timeline {
		// pg_rewind compares only the numbers of timelines, and would do nothing.
		return fmt.Sprintf("volume claim %s went on without the primary on a timeline of the same number, %d, and has no room to set that aside for a copy of the primary: enlarge it, or delete volume claim and pod %s if what it has beyond the primary is not needed", instance.VolumeClaim(b.Pod), g.timeline, b.Pod)
	}
	if err != nil {
		b.Event(ctx, corev1.EventTypeWarning, appsv1.ReasonDataSetAside, fmt.Sprintf("%s is rewound to the primary: what volume claim %s has from timeline %d, position %s, is not set aside: %v", b.Pod, instance.VolumeClaim(b.Pod), b.data.Timeline, b.data.Position, err))
		return ""
	}
	b.Event(ctx, corev1.EventTypeWarning, appsv1.ReasonDataSetAside, fmt.Sprintf("%s copies the primary: volume claim %s went on without it, to timeline %d, position %s. That data is set aside in folder %s", b.Pod, instance.VolumeClaim(b.Pod), b.data.Timeline, b.data.Position, filepath.Base(where)))
	return ""
}

// beside is the primary beside which a server starts. Its history is written a moment after
// its promotion.
type beside struct {
	address  string
	timeline int64
	first    time.Time
}

// since returns for how long this primary has been seen on this timeline.
func (b *beside) since(address string, timeline int64) time.Duration {
	if b.first.IsZero() || b.address != address || b.timeline != timeline {
		*b = beside{address: address, timeline: timeline, first: time.Now()}
	}
	return time.Since(b.first)
}

// clearOther sets aside another database than the primary's, with which Patroni would exit at
// once, again and again.
func (b *member) clearOther(ctx context.Context) string {
	where, err := volume.SetAside(archive.Config{Volume: b.Volume}.DataDir(), "other")
	if !b.Note("set another database aside", err) {
		return fmt.Sprintf("volume claim %s holds another database than the primary's, with system identifier %s, and has no room for both: enlarge it, or delete volume claim and pod %s if that database is not needed", instance.VolumeClaim(b.Pod), b.data.System, b.Pod)
	}
	b.Event(ctx, corev1.EventTypeWarning, appsv1.ReasonDataSetAside, fmt.Sprintf("%s copies the primary: the database that was on volume claim %s, with system identifier %s, is set aside in folder %s", b.Pod, instance.VolumeClaim(b.Pod), b.data.System, filepath.Base(where)))
	return ""
}

// occupied returns errOccupied for a volume with data of another DatabaseCluster that a
// restored one must not start with.
func occupied(volume, uid string, d *instance.Desired) error {
	before, err := os.ReadFile(filepath.Join(volume, ownerFile)) //nolint:gosec // the volume is the pod's
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot read whose the volume is: %w", err)
	}
	if string(before) == uid {
		return nil
	}
	data, err := os.ReadDir(archive.Config{Volume: volume}.DataDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot list the data folder: %w", err)
	}
	// Volumes from before ownerFile have no owner, and may be those of a cluster that was
	// restored then.
	if len(data) > 0 && (d.Restoring || d.Restored && len(before) > 0) {
		return errOccupied
	}
	return nil
}

// writeOwner writes the UID of a DatabaseCluster on a volume.
func writeOwner(volume, uid string) error {
	name := filepath.Join(volume, ownerFile)
	before, err := os.ReadFile(name) //nolint:gosec // the volume is the pod's
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot read whose the volume is: %w", err)
	}
	if uid == "" || string(before) == uid {
		return nil
	}
	// Files of the restore of another cluster are not needed.
	if err := (archive.Config{Volume: volume}).ForgetRestore(); err != nil {
		return err
	}
	if err := os.WriteFile(name, []byte(uid), 0o600); err != nil {
		return fmt.Errorf("cannot write whose the volume is: %w", err)
	}
	return nil
}
