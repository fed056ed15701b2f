package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/internal/appconfig"
	"github.com/storeplane/storeplane/internal/plan"
	"github.com/storeplane/storeplane/internal/podfailure"
)

// longest is the largest length of a message or of evidence, in bytes.
const longest = 512

// pod returns why a pod is not ready, or nil.
func (f *facts) pod(p *corev1.Pod) *Cause {
	if n := f.node(p.Spec.NodeName); n != nil {
		if c := f.nodeOf(p, n); c != nil {
			return c
		}
	}
	why := podfailure.Why(p, f.Now)
	if why == nil {
		return nil
	}
	c := &Cause{Object: podObject(p), Message: why.String(), Since: podSince(p, why), rank: lasting, Do: remedy(why), Evidence: f.podEvidence(p, why)}
	switch why.Kind {
	case podfailure.Preparing:
		f.preparing(c)
	case podfailure.Unready, podfailure.Initializing:
		c.rank = passing
	case podfailure.Stopped: // Its owner leaves it behind and creates another one.
		c.rank = progressing
	case podfailure.Unschedulable:
		f.unscheduled(p, c)
	case podfailure.ImagePull, podfailure.ContainerStart, podfailure.OutOfMemory, podfailure.CrashLoop:
	}
	return c
}

// preparing ranks a pod that is being prepared: as passing where an event reports what is missing,
// and else as progressing, since its images may still be pulled.
func (f *facts) preparing(c *Cause) {
	c.rank = passing
	if !slices.ContainsFunc(c.Evidence, func(e Evidence) bool { return e.Source == FromEvent }) {
		c.rank, c.Message, c.Do = progressing, "is being prepared: its volumes, its network, or its images", nil
	}
}

// nodeOf returns the cause of a pod whose node is not ready, or nil.
func (f *facts) nodeOf(p *corev1.Pod, n *corev1.Node) *Cause {
	for _, c := range n.Status.Conditions {
		if c.Type != corev1.NodeReady || c.Status == corev1.ConditionTrue {
			continue
		}
		at := c.LastTransitionTime.Time
		node := plan.Object{APIVersion: "v1", Kind: "Node", Name: n.Name}
		return &Cause{
			Object: podObject(p), Message: "its node " + n.Name + " is not ready: " + cmp.Or(c.Message, c.Reason, string(c.Status)), Since: &at, rank: lasting,
			Evidence: []Evidence{{Source: FromNode, Object: node, At: &at, Text: fmt.Sprintf("Ready=%s %s: %s", c.Status, c.Reason, c.Message)}},
			Do:       []string{"Repair node " + n.Name + ", or delete it: its pods are created again elsewhere once it is gone"},
		}
	}
	return nil
}

// podSince returns when a pod's failure began.
func podSince(p *corev1.Pod, why *podfailure.Failure) *time.Time {
	if why.Kind == podfailure.Unschedulable {
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled {
				return &c.LastTransitionTime.Time
			}
		}
	}
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		crashed := why.Kind == podfailure.CrashLoop || why.Kind == podfailure.OutOfMemory
		if at := ended(s); crashed && s.Name == why.Container && at != nil {
			return at
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status != corev1.ConditionTrue && !c.LastTransitionTime.IsZero() {
			return &c.LastTransitionTime.Time
		}
	}
	if p.CreationTimestamp.IsZero() {
		return nil
	}
	return &p.CreationTimestamp.Time
}

// telling are the reasons of the events that explain failures of a kind.
var telling = map[podfailure.Kind][]string{
	podfailure.Unschedulable:  {"FailedScheduling"},
	podfailure.Initializing:   {},
	podfailure.Preparing:      {"FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox", "NetworkNotReady"},
	podfailure.Unready:        {"Unhealthy"},
	podfailure.Stopped:        {"Evicted", "Preempted", "Preempting", "NodeShutdown", "Killing"},
	podfailure.ImagePull:      {"Failed", "ErrImageNeverPull", "InspectFailed"},
	podfailure.ContainerStart: {"Failed"},
	podfailure.OutOfMemory:    {"BackOff"},
	podfailure.CrashLoop:      {"Failed", "BackOff"},
}

func (f *facts) podEvidence(p *corev1.Pod, why *podfailure.Failure) []Evidence {
	var out []Evidence
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if s.Name == why.Container {
			out = append(out, Evidence{Source: FromContainer, Object: podObject(p), At: ended(s), Text: "container " + stateOf(s)})
		}
	}
	if e := f.lastEvent(f.byName[named{"Pod", p.Name}], telling[why.Kind]...); e != nil {
		out = append(out, eventEvidence(e))
	}
	if log := f.Logs[Container{Pod: p.Name, Name: why.Container}]; log != "" {
		out = append(out, Evidence{Source: FromLog, Object: podObject(p), Text: appconfig.LastWords(log, nil)})
	}
	return out
}

func ended(s corev1.ContainerStatus) *time.Time {
	for _, t := range []*corev1.ContainerStateTerminated{s.State.Terminated, s.LastTerminationState.Terminated} {
		if t != nil && !t.FinishedAt.IsZero() {
			return &t.FinishedAt.Time
		}
	}
	return nil
}

// stateOf describes the state of a container.
func stateOf(s corev1.ContainerStatus) string {
	var b strings.Builder
	b.WriteString(s.Name)
	switch {
	case s.State.Waiting != nil:
		b.WriteString(" waits: " + s.State.Waiting.Reason)
	case s.State.Running != nil:
		b.WriteString(" runs")
	case s.State.Terminated != nil:
		fmt.Fprintf(&b, " has ended with exit code %d (%s)", s.State.Terminated.ExitCode, s.State.Terminated.Reason)
	}
	if t := s.LastTerminationState.Terminated; t != nil {
		fmt.Fprintf(&b, "; it ended before with exit code %d (%s)", t.ExitCode, t.Reason)
	}
	if s.RestartCount > 0 {
		fmt.Fprintf(&b, "; restarts: %d", s.RestartCount)
	}
	return b.String()
}

func eventEvidence(e *corev1.Event) Evidence {
	at := seen(e)
	return Evidence{
		Source: FromEvent, At: &at, Text: e.Reason + ": " + strings.Join(strings.Fields(e.Message), " "),
		Object: plan.Object{APIVersion: e.InvolvedObject.APIVersion, Kind: e.InvolvedObject.Kind, Namespace: e.InvolvedObject.Namespace, Name: e.InvolvedObject.Name},
	}
}

// unscheduled explains a pod that cannot be scheduled by its unbound volume, where it has one.
func (f *facts) unscheduled(p *corev1.Pod, c *Cause) {
	for _, v := range p.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		u := f.byName[named{"PersistentVolumeClaim", v.PersistentVolumeClaim.ClaimName}]
		if u == nil {
			continue
		}
		// A volume that is bound only once its pod is scheduled is no cause.
		of := f.volume(u)
		if of != nil && (len(of.Evidence) > 1 || strings.Contains(c.Message, "unbound")) {
			c.Message = "cannot be scheduled: PersistentVolumeClaim " + u.GetName() + " " + of.Message
			c.Evidence = append(c.Evidence, of.Evidence...)
			c.Do = of.Do
			return
		}
	}
}

// volume returns why a PersistentVolumeClaim is not bound, or nil where it is.
func (f *facts) volume(u *unstructured.Unstructured) *Cause {
	phase := statusText(u, "phase")
	if phase == string(corev1.ClaimBound) {
		return nil
	}
	class, _, _ := unstructured.NestedString(u.Object, "spec", "storageClassName")
	c := &Cause{
		Object: objectOf(u), Message: "is not bound to a volume", rank: lasting,
		Evidence: []Evidence{{Source: FromVolume, Object: objectOf(u), Text: "phase " + cmp.Or(phase, "not reported") + ", StorageClass " + cmp.Or(class, "none: the cluster has no default")}},
		Do:       []string{"Name a StorageClass in storageClassName that exists and has room (kubectl get storageclass)"},
	}
	if e := f.lastEvent(u, "ProvisioningFailed", "FailedBinding", "VolumeMismatch"); e != nil {
		c.Message += ": " + eventEvidence(e).Text
		c.Evidence = append(c.Evidence, eventEvidence(e))
	}
	return c
}
