package explain

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
	k8sappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/internal/health"
	"github.com/storeplane/storeplane/internal/podfailure"
)

// isManaged reports whether an object is a managed resource of the provider.
func isManaged(u *unstructured.Unstructured) bool {
	switch u.GroupVersionKind().Group {
	case backupv1.GroupVersion.Group, configv1.GroupVersion.Group:
		return u.GetKind() != backupv1.RestoreGrantKind
	}
	return false
}

// healthOf judges an object as claims do. A Deployment with an autoscaler is healthy while further
// pods start.
func (f *facts) healthOf(u *unstructured.Unstructured) health.Status {
	s, err := structpb.NewStruct(u.Object)
	if err != nil {
		return health.Status{State: health.Progressing, Message: "cannot be read: " + err.Error()}
	}
	if u.GetKind() == "Deployment" && f.isAutoscaled(u) {
		return health.Available(s)
	}
	return health.Of(s)
}

func (f *facts) isAutoscaled(u *unstructured.Unstructured) bool {
	return slices.ContainsFunc(f.Tree, func(o *unstructured.Unstructured) bool {
		name, _, _ := unstructured.NestedString(o.Object, "spec", "scaleTargetRef", "name")
		return o.GetKind() == "HorizontalPodAutoscaler" && name == u.GetName()
	})
}

// object returns what keeps an object that a claim composes from being healthy.
func (f *facts) object(u *unstructured.Unstructured) []Cause {
	switch {
	case isClaim(u):
		return f.problems(u)
	case isManaged(u):
		return list(f.managed(u))
	case f.healthOf(u).IsHealthy():
		return nil
	case u.GetDeletionTimestamp() != nil:
		return list(f.deletion(u))
	case u.GetKind() == "Deployment", u.GetKind() == "StatefulSet", u.GetKind() == "Job":
		return list(f.workload(u))
	}
	return []Cause{{Object: objectOf(u), Message: lower(f.healthOf(u).Message), rank: progressing}}
}

func list(c *Cause) []Cause {
	if c == nil {
		return nil
	}
	return []Cause{*c}
}

func lower(s string) string {
	if len(s) > 1 && strings.ToLower(s[1:2]) == s[1:2] {
		return strings.ToLower(s[:1]) + s[1:]
	}
	return s
}

// workload returns why the pods of a workload are not all ready, or do not exist.
func (f *facts) workload(u *unstructured.Unstructured) *Cause {
	pods := f.podsOf(u)
	if u.GetKind() == "Job" && len(pods) > 0 {
		// Earlier pods of the Job were replaced by a retry.
		pods = []*corev1.Pod{slices.MaxFunc(pods, func(a, b *corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })}
	}
	var found []*Cause
	for _, p := range pods {
		if c := f.pod(p); c != nil {
			found = append(found, c)
		}
	}
	if c := f.uncreated(u); c != nil {
		found = append(found, c)
	}
	if len(found) > 0 {
		return slices.MinFunc(found, func(a, b *Cause) int {
			return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.Object.Name, b.Object.Name))
		})
	}
	s := f.healthOf(u)
	c := &Cause{Object: objectOf(u), Message: lower(s.Message), rank: progressing}
	if s.State == health.Failed {
		c.rank = lasting
		c.Do = []string{"Check the logs of its pods, and edit the claim"}
	}
	return c
}

// uncreated returns why the pods of a workload are not created, or nil.
func (f *facts) uncreated(u *unstructured.Unstructured) *Cause {
	c := &Cause{Object: objectOf(u), rank: lasting}
	if failure := conditionOf(u, string(k8sappsv1.DeploymentReplicaFailure)); failure.status == "True" {
		c.Message, c.Since = podfailure.Uncreated(failure.message), failure.since
		c.Evidence = []Evidence{failure.evidence(u)}
	}
	by := u
	if u.GetKind() == "Deployment" {
		by = f.newestReplicaSet(u)
	}
	if by == nil {
		return nil
	}
	e := f.lastEvent(by, "FailedCreate")
	if e != nil && c.Message == "" {
		if done := f.lastEvent(by, "SuccessfulCreate"); done != nil && !seen(done).Before(seen(e)) {
			return nil
		}
		at := seen(e)
		c.Message, c.Since = podfailure.Uncreated(e.Message), &at
	}
	if c.Message == "" {
		return nil
	}
	if e != nil {
		c.Evidence = append(c.Evidence, eventEvidence(e))
	}
	c.Do = []string{"Change the claim, or what refuses its pods: a quota, a limit range, or the namespace's pod security"}
	f.quota(c, c.Message)
	return c
}

// newestReplicaSet returns the ReplicaSet of a Deployment that has pods and the highest revision,
// which a rollback gives to an older ReplicaSet. It is nil where there is none.
func (f *facts) newestReplicaSet(u *unstructured.Unstructured) *unstructured.Unstructured {
	revision := func(s *unstructured.Unstructured) int {
		n, _ := strconv.Atoi(s.GetAnnotations()["deployment.kubernetes.io/revision"])
		return n
	}
	var newest *unstructured.Unstructured
	for _, s := range f.children(u) {
		if s.GetKind() == "ReplicaSet" && count(s, "spec", "replicas") > 0 && (newest == nil || revision(s) > revision(newest)) {
			newest = s
		}
	}
	return newest
}

// waits are the reasons of managed resources that pass by themselves.
var waits = []string{
	backupv1.ReasonWaiting, backupv1.ReasonRunning, backupv1.ReasonChecking, backupv1.ReasonNoBackup, backupv1.ReasonVerificationPending,
	backupv1.ReasonEscrowPending, configv1.ReasonRollingOut, configv1.ReasonDebouncing, appsv1.ReasonPending,
}

// managed returns why a managed resource is not ready, or nil.
func (f *facts) managed(u *unstructured.Unstructured) *Cause {
	ready, synced := conditionOf(u, "Ready"), conditionOf(u, "Synced")
	switch {
	case u.GetDeletionTimestamp() != nil:
		return f.deletion(u)
	case isPaused(u):
		return paused(u)
	case ready.status == "" && synced.status == "":
		at := u.GetCreationTimestamp().Time
		if f.Now.Sub(at) < observedWithin {
			return nil
		}
		return f.unobserved(&Cause{Object: objectOf(u), Message: "Storeplane's provider has not observed it", Since: &at, rank: lasting}, "Provider")
	case synced.isOld(u) || ready.isOld(u):
		at := editedAt(u)
		if at == nil || f.Now.Sub(*at) < observedWithin {
			return nil
		}
		return f.unobserved(&Cause{Object: objectOf(u), Message: "Storeplane's provider has not observed its newest edit", Since: at, rank: lasting}, "Provider")
	case synced.status == "False":
		return f.reported(u, synced)
	case ready.status != "True":
		return f.reported(u, ready)
	}
	return nil
}

func (f *facts) reported(u *unstructured.Unstructured, by condition) *Cause {
	c := &Cause{Object: objectOf(u), Message: cmp.Or(by.message, by.typ+" is "+by.status+", reason "+by.reason), Since: by.since, rank: reported, Evidence: []Evidence{by.evidence(u)}}
	if slices.Contains(waits, by.reason) {
		c.rank = progressing
	}
	if job := newestOf(f.jobsFor(u)); job != nil && !f.healthOf(job).IsHealthy() {
		if of := f.workload(job); of != nil && of.rank == lasting {
			c.Evidence = append(c.Evidence, of.Evidence...)
			if c.rank == progressing {
				of.Evidence = c.Evidence
				return of
			}
		}
	}
	c.Do = managedRemedy(by.reason)
	return c
}

// jobsFor returns the Jobs of a managed resource: its own, those of its CronJobs, and for a Backup
// those that have its name as a label.
func (f *facts) jobsFor(u *unstructured.Unstructured) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, c := range f.below(u)[1:] {
		if c.GetKind() == "Job" {
			out = append(out, c)
		}
	}
	for _, j := range f.Made {
		if u.GetKind() == backupv1.BackupKind && j.GetKind() == "Job" && j.GetLabels()[backupv1.BackupLabel] == u.GetName() && !slices.Contains(out, j) {
			out = append(out, j)
		}
	}
	return out
}

// cronJob returns why the newest Job of a CronJob has failed or is failing.
func (f *facts) cronJob(u *unstructured.Unstructured) []Cause {
	job := newestOf(f.children(u))
	if job == nil || f.healthOf(job).IsHealthy() {
		return nil
	}
	c := f.workload(job)
	if c == nil || c.rank != lasting {
		return nil
	}
	c.Message = "of CronJob " + u.GetName() + ": " + c.Message
	return list(c)
}
