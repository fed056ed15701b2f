package manager

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/kube"
	"github.com/storeplane/storeplane/internal/instance/manager/roll"
)

// take a step, if it is still the one to take when the API server is asked
// anew.
func (p *primary) take(ctx context.Context, step roll.Step, raw string, desired *instance.Desired) {
	if step.Verb == roll.Wait {
		return
	}
	v, err := p.lookAgain(ctx, raw, desired)
	if !p.note("look at the servers again", err) {
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
		p.replace(ctx, pod, step.Words)
	case roll.HandOver:
		p.event(ctx, corev1.EventTypeNormal, appsv1.ReasonRollingUpdate, step.Words)
		drain(ctx, p.server.Archiver)
		p.note("hand over", p.patroni.Switchover(ctx, p.Pod, step.Pod))
	case roll.Restart:
		p.restart(ctx, pod, step.Words)
	}
}

// replace a pod: the StatefulSet's controller makes a new one. The primary's own
// hands over in its hook.
func (p *primary) replace(ctx context.Context, pod *corev1.Pod, words string) {
	err := p.kube.DeletePod(ctx, pod)
	if kube.Raced(err) {
		// It has changed since; the next pass looks again.
		return
	}
	if p.note("replace a pod", err) {
		p.event(ctx, corev1.EventTypeNormal, appsv1.ReasonRollingUpdate, words)
	}
}

// restart the server of a pod, which is this one last.
func (p *primary) restart(ctx context.Context, pod *corev1.Pod, words string) {
	client := p.patroni
	if pod.Name != p.Pod {
		client = p.remote(patroniOf(pod))
	}
	status, err := client.Status(ctx)
	if !p.note("ask "+pod.Name, err) {
		p.restarts.tried(pod.Name)
		return
	}
	if !status.PendingRestart {
		// What is known of others is some seconds old.
		return
	}
	p.event(ctx, corev1.EventTypeNormal, appsv1.ReasonRollingUpdate, words)
	p.restarts.tried(pod.Name)
	if pod.Name == p.Pod {
		// Without it the restart would write what is in memory while nobody
		// can.
		p.note("write a checkpoint", p.server.Checkpoint(ctx))
	}
	if p.note("restart "+pod.Name, client.Restart(ctx)) {
		p.restarts.restarted(pod.Name)
	}
}

// remind the standbys of what waits for their restart, after the primary's own.
// One that was restarted before keeps a limit that was lowered, since it may not
// have less than its primary, and Patroni looks again only when it reloads.
func (p *primary) remind(ctx context.Context, v *view) {
	if !p.restarts.recent(p.Pod, time.Now()) {
		return
	}
	for _, pod := range v.pods {
		if pod.Name != p.Pod && pod.Status.PodIP != "" {
			p.note("remind "+pod.Name, p.remote(patroniOf(pod)).Reload(ctx))
		}
	}
}
