package appconfig

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/internal/appconfig"
	"github.com/storeplane/storeplane/internal/podfailure"
)

// How long a pod must have run before its state means anything.
const (
	// trial is how long a ready pod without a readiness probe is unproven: it is ready before it
	// has done anything.
	trial = 10 * time.Second
	// blockade is how long the controller of a StatefulSet gets to replace a pod by itself.
	blockade = 10 * time.Second
)

// mostPods is how many pods of one workload are read.
const mostPods = 500

// inspect reads the pods of a target, if they can show anything. They are read from the API server:
// a cache of all pods would be large, and few matter at a time.
func (e *external) inspect(ctx context.Context, s *State, w *workload, t *Target) error {
	if !worthALook(s, w, t) {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(w.selector)
	if err != nil {
		return fmt.Errorf("cannot read the selector of %s: %w", w.Key, err)
	}
	pods := &corev1.PodList{}
	if err := e.kube.Reader.List(ctx, pods, client.InNamespace(s.AppConfig.Namespace), client.MatchingLabelsSelector{Selector: selector}, client.Limit(mostPods)); err != nil {
		return fmt.Errorf("cannot list the pods of %s: %w", w.Key, err)
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	l := podObserver{State: s, workload: w, target: t}
	for i := range pods.Items {
		l.observe(&pods.Items[i])
	}
	if l.suspect != nil && l.needsLog() {
		t.Pods.Fault = l.fault(e.lastWords(ctx, l.suspect, l.container, l.previous))
	}
	return nil
}

// worthALook reports whether to read the pods of a target: they matter while their bundle is being
// proven, and if something is wrong.
func worthALook(s *State, w *workload, t *Target) bool {
	known := &s.AppConfig.Status.AtProvider
	if t.Missing || t.Paused || !t.gated() || w.pods == 0 || w.selector == nil {
		return false
	}
	was := s.recorded(t.Key)
	if was == nil || known.Bundle == "" || t.Bundle != "" && t.Bundle != known.Bundle {
		return false
	}
	if !t.Health.IsHealthy() {
		return known.Pending != "" || was.State != configv1.TargetUpdated
	}
	return known.Pending != "" && was.State != configv1.TargetUpdated
}

// podObserver collects what the pods of one target show.
type podObserver struct {
	*State

	workload *workload
	target   *Target

	// suspect is the pod whose failure is reported, and container the one in it that fails.
	// previous is true if the log of the container's previous run shows why.
	suspect   *corev1.Pod
	container string
	previous  bool

	// fatal is true if the failure does not pass by itself.
	fatal bool
	words string
}

// observe evaluates one pod.
func (l *podObserver) observe(p *corev1.Pod) {
	if p.DeletionTimestamp != nil {
		return
	}
	a := l.AppConfig
	runs := appconfig.RunOf(a.Name, a.Spec.ForProvider.Application, p.Annotations, &p.Spec).Bundle
	ready := condition(p, corev1.PodReady)
	isReady := ready != nil && ready.Status == corev1.ConditionTrue
	if runs != l.target.Bundle {
		if !isReady && l.blocks(p, runs) {
			l.target.Pods.Blocking = append(l.target.Pods.Blocking, Pod{Name: p.Name, UID: string(p.UID)})
		}
		return
	}
	if isReady {
		since := ready.LastTransitionTime.Time
		if since.After(l.target.Pods.LastReady) {
			l.target.Pods.LastReady = since
		}
		if l.Now.Sub(since) < trial && !isProbed(p) {
			l.target.Pods.Unproven = true
		}
		return
	}
	l.suspects(p)
}

// suspects makes a pod that is not ready the suspect, unless there is one already. A fatal failure
// takes precedence over one that is not.
func (l *podObserver) suspects(p *corev1.Pod) {
	failure := podfailure.Of(p)
	fatal := isFatal(failure, l.target.Bundle)
	if l.suspect != nil && (l.fatal || !fatal) {
		return
	}
	l.suspect, l.fatal, l.words = p, fatal, failure.String()
	l.container, l.previous = culprit(p)
	if failure == nil {
		l.words = "is not ready"
		if l.container != "" {
			l.words = "container " + l.container + " is not ready"
		}
	}
	l.target.Pods.NotReady = "pod " + p.Name + ": " + l.words
}

// isFatal reports whether a failure is caused by the configuration, so that it does not pass by
// itself. A missing image or node may pass, and so may a bundle that is not created yet.
func isFatal(f *podfailure.Failure, bundle string) bool {
	if f == nil || f.Kind == podfailure.Unschedulable || f.Kind == podfailure.ImagePull {
		return false
	}
	return f.Missing == "" || f.Missing != bundle
}

// culprit returns the container that keeps a pod from being ready, and whether the log of its
// previous run shows why.
func culprit(p *corev1.Pod) (string, bool) {
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		through := s.State.Terminated != nil && s.State.Terminated.ExitCode == 0
		if s.Ready || through || s.Started != nil && *s.Started && slices.ContainsFunc(p.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == s.Name }) {
			continue
		}
		return s.Name, s.State.Running == nil && s.State.Terminated == nil && s.LastTerminationState.Terminated != nil
	}
	return "", false
}

// needsLog reports whether the rollout is about to fail because of this target.
func (l *podObserver) needsLog() bool {
	known := &l.AppConfig.Status.AtProvider
	if known.Pending == "" || known.Failed != nil {
		return false
	}
	if l.fatal {
		return true
	}
	was := l.recorded(l.target.Key)
	if was == nil || was.Since == nil || was.State != configv1.TargetProgressing {
		return false
	}
	since := was.Since.Time
	if l.target.Pods.LastReady.After(since) {
		since = l.target.Pods.LastReady
	}
	return l.Now.Sub(since) >= appconfig.Deadline(l.params())
}

// fault returns the failure of the suspect. It counts at once if it is fatal, and otherwise at the
// deadline.
func (l *podObserver) fault(log string) *Fault {
	return &Fault{Pod: l.suspect.Name, Container: l.container, Message: l.words, Log: log, Late: !l.fatal}
}

// blocks reports whether a pod that is not ready is in the way of a StatefulSet's update: its
// controller waits for pods to be ready before it replaces them. A pod of the last good bundle may
// become ready by itself, so it gets more time.
func (l *podObserver) blocks(p *corev1.Pod, runs string) bool {
	w, known := l.workload, &l.AppConfig.Status.AtProvider
	if w.Kind != configv1.StatefulSet || !w.observed || !w.replaces || runs == "" || ordinal(p.Name) < w.partition {
		return false
	}
	if f := known.Failed; f != nil && f.Bundle == runs {
		return true
	}
	if l.Now.Sub(p.CreationTimestamp.Time) < blockade {
		return false
	}
	if was := l.recorded(l.target.Key); was == nil || was.Since == nil || l.Now.Sub(was.Since.Time) < blockade {
		return false
	}
	if runs != known.LastGood {
		return true
	}
	return isFatal(podfailure.Of(p), runs) || l.Now.Sub(unreadySince(p)) >= appconfig.Deadline(l.params())/deadlineParts
}

// deadlineParts is how many parts the deadline has, of which a pod of the last good bundle gets one.
// The rest is for the pod that replaces it.
const deadlineParts = 3

func unreadySince(p *corev1.Pod) time.Time {
	if c := condition(p, corev1.PodReady); c != nil && c.LastTransitionTime.After(p.CreationTimestamp.Time) {
		return c.LastTransitionTime.Time
	}
	return p.CreationTimestamp.Time
}

// ordinal returns the ordinal of a StatefulSet's pod, or 0 if its name has none.
func ordinal(name string) int32 {
	n, err := strconv.ParseInt(name[strings.LastIndex(name, "-")+1:], 10, 32)
	if err != nil {
		return 0
	}
	return int32(n)
}

// isProbed reports whether each container has a readiness probe.
func isProbed(p *corev1.Pod) bool {
	return !slices.ContainsFunc(p.Spec.Containers, func(c corev1.Container) bool { return c.ReadinessProbe == nil })
}

func condition(p *corev1.Pod, t corev1.PodConditionType) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == t {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

// lastWords returns the last lines of a container's log, or "" if they cannot be read or could hold
// a secret that is not known.
func (e *external) lastWords(ctx context.Context, p *corev1.Pod, container string, previous bool) string {
	if container == "" || e.logs == nil {
		return ""
	}
	secrets := map[string][]byte{}
	for _, name := range appconfig.Secrets(&p.Spec) {
		s := &corev1.Secret{}
		if found, err := e.kube.Find(ctx, p.Namespace, name, s); err != nil || !found {
			return ""
		}
		for k, v := range s.Data {
			secrets[name+"/"+k] = v
		}
	}
	log, err := e.logs(ctx, p.Namespace, p.Name, container, previous)
	if err != nil && previous {
		log, err = e.logs(ctx, p.Namespace, p.Name, container, false)
	}
	if err != nil {
		return ""
	}
	return appconfig.LastWords(log, secrets)
}
