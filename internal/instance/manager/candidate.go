package manager

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/kube"
)

// candidateAnnotation of Patroni's ConfigMap for failovers names the server that is to lead.
const candidateAnnotation = "member"

// stand makes this server a candidate for leader by a manual failover, and returns "", or why
// it does not. That the server is to lead was decided from the volumes or by the
// DatabaseCluster's annotation. Patroni's checks could prevent it: failsafe mode lets only
// members lead that Patroni has recorded, quorum commit only a server for which those members
// vote, and check_timeline only one that has seen the last primary's timeline. A manual
// failover skips these checks (Ha.is_healthiest_node of Patroni 4.0.7). Patroni removes it
// once a server leads.
func (b *member) stand(ctx context.Context, g *ground) string {
	if b.data == nil || b.data.State != instance.DataWhole || g.system != "" && b.data.System != g.system {
		return "Volume claim " + instance.VolumeClaim(b.Pod) + ", which the annotation names, holds no database of this cluster. Remove the annotation, or name another volume claim: " + g.cluster.Annotation
	}
	if !b.Note("note that the server is to lead", b.noteCandidate(g.cluster.Named)) {
		return "Waiting for volume claim " + instance.VolumeClaim(b.Pod) + ", on which nothing can be written: " + b.Pod + " is to lead"
	}
	err := b.Kube.Annotate(ctx, instance.FailoverName(b.Scope), map[string]any{"leader": nil, candidateAnnotation: b.Pod, "scheduled_at": nil})
	if !b.Note("ask Patroni for a failover to this server", err) {
		return "Waiting for the API server: " + b.Pod + " is to lead"
	}
	return ""
}

// stands reports whether this server stands for leader, and which volume claim the annotation
// named when it began to, or "".
func (b *member) stands() (named string, _ bool) {
	data, err := os.ReadFile(b.candidateFile())
	return string(data), err == nil
}

func (b *member) noteCandidate(named string) error {
	if err := os.WriteFile(b.candidateFile(), []byte(named), 0o600); err != nil {
		return fmt.Errorf("cannot note that the server is to lead: %w", err)
	}
	return nil
}

func (b *member) forgetCandidate() error {
	if err := os.Remove(b.candidateFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot forget that the server was to lead: %w", err)
	}
	return nil
}

func (b *member) candidateFile() string { return filepath.Join(b.Volume, instance.CandidateFile) }

// resign withdraws the failover of stand, which Patroni keeps until a server leads, even if
// the annotation is removed or names another volume meanwhile. A failover that a user has
// requested is kept.
func (b *member) resign(ctx context.Context) error {
	if _, ok := b.stands(); !ok {
		return nil
	}
	candidate, err := b.candidate(ctx)
	if err != nil {
		return err
	}
	if candidate {
		err := ignore(b.Kube.ReleaseLock(ctx, instance.FailoverName(b.Scope), candidateAnnotation, b.Pod, time.Time{}), kube.ErrHeld)
		if err != nil {
			return err
		}
	}
	return b.forgetCandidate()
}

// candidate reports whether Patroni is to have this server lead by a failover as stand requests it.
func (b *member) candidate(ctx context.Context) (bool, error) {
	failover, err := b.Kube.ConfigMap(ctx, instance.FailoverName(b.Scope))
	if kube.Missing(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	a := failover.Annotations
	return a[candidateAnnotation] == b.Pod && a["leader"] == "" && a["scheduled_at"] == "", nil
}
