package manager

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/roll"
)

// execute executes a step, if it is still the next one after reading from the API server again.
func (p *primary) execute(ctx context.Context, step roll.Step, raw string, desired *instance.Desired) {
	if step.Verb == roll.Wait {
		return
	}
	v, err := p.observeUncached(ctx, raw, desired)
	if !p.Note("observe the servers again", err) {
		return
	}
	if again := roll.Next(v.cluster); again.Verb != step.Verb || again.Pod != step.Pod {
		return
	}
	pod := v.pod(step.Pod)
	if pod == nil {
		return
	}
	switch step.Verb {
	case roll.Wait:
	case roll.Replace:
		p.Replace(ctx, pod, step.Message)
	case roll.HandOver:
		p.Event(ctx, corev1.EventTypeNormal, appsv1.ReasonRollingUpdate, step.Message)
		drain(ctx, p.server.Archiver)
		p.checkpoint(ctx)
		p.Note("hand over", p.patroni.Switchover(ctx, p.Pod, step.Pod))
	case roll.Restart:
		p.restart(ctx, pod, step.Message)
	}
}

// checkpoint has this server write what is in memory. Otherwise its shutdown would, while no client can write.
func (p *primary) checkpoint(ctx context.Context) {
	p.Note("write a checkpoint", p.server.Checkpoint(ctx))
}

// restart restarts the server of a pod. This server is restarted last.
func (p *primary) restart(ctx context.Context, pod *corev1.Pod, words string) {
	client := p.patroni
	if pod.Name != p.Pod {
		client = p.remote(patroniOf(pod))
	}
	status, err := client.Status(ctx)
	if !p.Note("ask "+pod.Name, err) {
		p.restarts.tried(pod.Name)
		return
	}
	if !status.PendingRestart {
		// The status by which the step was chosen may be some seconds old.
		return
	}
	p.Event(ctx, corev1.EventTypeNormal, appsv1.ReasonRollingUpdate, words)
	p.restarts.tried(pod.Name)
	if pod.Name == p.Pod {
		p.checkpoint(ctx)
	}
	if p.Note("restart "+pod.Name, client.Restart(ctx)) {
		p.restarts.restarted(pod.Name)
	}
}

// reloadStandbys has the standbys reload after the primary's own restart, so that Patroni checks
// again whether they need a restart. A standby that was restarted before the primary keeps a limit
// that was lowered, since a standby's must not be below the primary's, and Patroni checks that only
// on reload.
func (p *primary) reloadStandbys(ctx context.Context, v *view) {
	if !p.restarts.recent(p.Pod, time.Now()) {
		return
	}
	for _, pod := range v.pods {
		if pod.Name != p.Pod && pod.Status.PodIP != "" {
			p.Note("remind "+pod.Name, p.remote(patroniOf(pod)).Reload(ctx))
		}
	}
}
