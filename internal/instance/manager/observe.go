package manager

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	k8sappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
	"github.com/storeplane/storeplane/internal/instance/manager/report"
	"github.com/storeplane/storeplane/internal/instance/manager/roll"
)

// view is the state of all servers.
type view struct {
	cluster  roll.Cluster
	pods     []*corev1.Pod
	standbys []instance.Standby
	timeline int64
}

// pod returns a pod by its name, or nil.
func (v *view) pod(name string) *corev1.Pod {
	i := slices.IndexFunc(v.pods, func(pod *corev1.Pod) bool { return pod.Name == name })
	if i < 0 {
		return nil
	}
	return v.pods[i]
}

// observe reads the state of all servers, with the objects of the watches.
func (p *primary) observe(ctx context.Context, raw string, desired *instance.Desired) (*view, error) {
	return p.observeWith(ctx, raw, desired, p.pods.List(), p.set.One())
}

// observeUncached reads the state of all servers with objects from the API server itself, before a
// step is executed.
func (p *primary) observeUncached(ctx context.Context, raw string, desired *instance.Desired) (*view, error) {
	set, err := p.Kube.StatefulSet(ctx, p.Scope)
	if err != nil {
		return nil, err
	}
	pods, err := p.Kube.Pods(ctx, p.selector())
	if err != nil {
		return nil, err
	}
	return p.observeWith(ctx, raw, desired, pods, set)
}

func (p *primary) observeWith(ctx context.Context, raw string, desired *instance.Desired, pods []*corev1.Pod, set *k8sappsv1.StatefulSet) (*view, error) {
	members, err := p.patroni.Cluster(ctx)
	if err != nil {
		return nil, err
	}
	// A server that was frozen may still take itself for the leader.
	if leader := members.Leader(); leader != p.Pod {
		return nil, fmt.Errorf("cannot speak for the cluster: its leader is %q", leader)
	}
	p.lead(members)
	followers, err := p.server.Followers(ctx)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	v := &view{pods: pods}
	if s := p.seen.Load(); s != nil {
		v.timeline = s.Timeline
		// Patroni's status of its own server is current, while its list of members is some
		// seconds old.
		if self := members.Member(p.Pod); self != nil {
			self.PendingRestart = s.PendingRestart
		}
	}
	v.cluster = p.servers(desired, pods, set, members, followers)
	v.cluster.Hold = p.parameters.hold()
	p.restarts.count(instance.Digest(raw), v.cluster.Servers)
	var names []string
	for _, s := range v.cluster.Servers {
		names = append(names, s.Pod)
	}
	v.standbys = p.lags.Standbys(names, p.Pod, followers, time.Now())
	return v, nil
}

// servers returns the cluster as package roll has it.
func (c Config) servers(desired *instance.Desired, pods []*corev1.Pod, set *k8sappsv1.StatefulSet, members *patroni.Cluster, followers map[string]report.Follower) roll.Cluster {
	return roll.Observe(c.Scope, c.Pod, desired, pods, set, func(s *roll.Server) {
		if f, ok := followers[s.Pod]; ok {
			s.Streaming, s.Synchronous, s.LagBytes = f.Streaming, f.Synchronous, f.Lag
		}
		if m := members.Member(s.Pod); m != nil {
			s.Restart = m.PendingRestart
		}
	})
}
