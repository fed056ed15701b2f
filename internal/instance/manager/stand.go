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

// stand for leader of a cluster that has run, as the DatabaseCluster's annotation
// decides. Of those that Patroni knows of, failsafe mode lets no other server lead, quorum
// commit none that they do not vote for, and check_timeline none that never saw the last
// primary's timeline. Only a manual failover goes without them (Ha.is_healthiest_node of
// Patroni 4.0.7): Patroni removes it once a server leads. It returns why the server does
// not stand.
func (b *member) stand(ctx context.Context, g *ground) string {
	if b.data == nil || b.data.State != instance.DataWhole || g.system != "" && b.data.System != g.system {
		return "Volume claim " + b.volumeName() + ", which the annotation names, holds no database of this cluster. Remove the annotation, or name another volume claim: " + g.cluster.Annotation
	}
	if !b.note("note that the server is to lead", b.noteCandidate(g.cluster.Named)) {
		return "Waiting for volume claim " + b.volumeName() + ", on which nothing can be written: " + b.Pod + " is to lead"
	}
	err := b.kube.Annotate(ctx, b.failoverName(), map[string]any{"leader": nil, candidateAnnotation: b.Pod, "scheduled_at": nil})
	if !b.note("ask Patroni for a failover to this server", err) {
		return "Waiting for the API server: " + b.Pod + " is to lead"
	}
	return ""
}

// stands says whether this server stands for leader, and which volume claim the annotation
// named when it began to, if any.
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

// resign withdraws what stand asked for: Patroni keeps to it until a server leads, though the
// annotation is gone or names another volume meanwhile. What a person has asked Patroni
// for is left alone.
func (b *member) resign(ctx context.Context) error {
	if _, ok := b.stands(); !ok {
		return nil
	}
	failover, err := b.kube.ConfigMap(ctx, b.failoverName())
	if err != nil && !kube.Missing(err) {
		return err
	}
	if err == nil {
		a := failover.Annotations
		if a[candidateAnnotation] == b.Pod && a["leader"] == "" && a["scheduled_at"] == "" {
			err = ignore(b.kube.ReleaseLock(ctx, b.failoverName(), candidateAnnotation, b.Pod, time.Time{}), kube.ErrHeld)
			if err != nil {
				return err
			}
		}
	}
	return b.forgetCandidate()
}
