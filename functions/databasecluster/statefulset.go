package databasecluster

import (
	k8sappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/label"
)

// configHashAnnotation is an annotation of the pods with a hash of the configuration, so that a
// change of it replaces them.
const configHashAnnotation = "storeplane.example.com/config-hash"

// statefulSet returns the StatefulSet of the servers, with the volume claim templates that it
// already has: the API server refuses a change of them, and with it all other changes. Volumes
// that are created from an old template are expanded by their pod's instance manager before
// anything is written on them.
func (d *cluster) statefulSet() *k8sappsv1.StatefulSet {
	templates := d.live.set.Spec.VolumeClaimTemplates
	if len(templates) == 0 {
		templates = []corev1.PersistentVolumeClaim{d.volumeClaim()}
	}

	meta := d.Meta(d.server, d.server)
	meta.Labels[label.Version] = d.release.Tag
	labels := d.Labels(d.server, d.server)
	labels[d.traits.ScopeLabel] = d.Name(d.server)

	return &k8sappsv1.StatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: k8sappsv1.SchemeGroupVersion.String(), Kind: "StatefulSet"},
		ObjectMeta: meta,
		Spec: k8sappsv1.StatefulSetSpec{
			Replicas:    new(d.replicas()),
			ServiceName: d.Name(d.server),
			Selector:    &metav1.LabelSelector{MatchLabels: d.Selector(d.server)},
			// Patroni orders its servers itself, and after an outage no server may wait
			// for one that waits for it.
			PodManagementPolicy:                  k8sappsv1.ParallelPodManagement,
			RevisionHistoryLimit:                 new(int32(5)),
			UpdateStrategy:                       d.updateStrategy(),
			PersistentVolumeClaimRetentionPolicy: d.retention(),
			VolumeClaimTemplates:                 templates,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: build.PodMeta(labels, map[string]string{configHashAnnotation: build.Digest(d.configuration.Restarts)}, &d.spec.PodOptions),
				Spec:       d.pod(),
			},
		},
	}
}

// replicas returns the number of pods. It is lowered only once the servers that would be removed
// hold nothing that is needed: neither the primary, nor the only synchronous standby. This is also
// true of hibernated servers: all that there were are started first. Servers that are started to
// compare the volumes of an earlier cluster are removed in the same way.
func (d *cluster) replicas() int32 {
	have, want := d.live.set.Spec.Replicas, d.size()
	if want > 0 {
		want = max(want, d.live.compared())
	}
	if have == 0 {
		have = d.live.last()
	}
	if want > 0 && have > want && !d.mayShrink() {
		return have
	}
	return want
}

// mayShrink reports whether the servers that stay include the primary and, with synchronous
// replication, a synchronous standby. It counts only what was reported after the instance manager
// beside a primary has read the current size: an earlier report may be of a primary that has handed
// over since. The preStop hook of a server that becomes primary later makes it hand over first.
func (d *cluster) mayShrink() bool {
	l := d.live
	if l.cluster.Applied != instance.Digest(d.desired) {
		return false
	}
	stays := map[string]bool{}
	for i := range d.spec.Size {
		stays[d.podName(i)] = true
	}
	if l.set.Status.ReadyReplicas == 0 || !stays[l.cluster.Primary] {
		return false
	}
	if d.spec.Size == 1 || !d.synchronous() {
		return true
	}
	for _, s := range l.cluster.Standbys {
		if s.Synchronous && stays[s.Name] {
			return true
		}
	}
	return false
}

// updateStrategy returns OnDelete for several servers: the instance manager of the primary
// replaces the standbys first, and hands over before its own server is replaced. While no
// server is ready there is no manager to do that and nothing to wait for, and the StatefulSet
// replaces the pods itself. It is also OnDelete until no pod of several is left but one: a
// StatefulSet that lost replicas replaces the one that stays while it removes the others, and
// its preStop hook would have no server to hand over to.
func (d *cluster) updateStrategy() k8sappsv1.StatefulSetUpdateStrategy {
	l := d.live
	dead := l.exists && l.set.Status.ReadyReplicas == 0 && l.isOutdated()
	if max(d.replicas(), d.spec.Size, l.set.Status.Replicas) > 1 && !dead {
		return k8sappsv1.StatefulSetUpdateStrategy{Type: k8sappsv1.OnDeleteStatefulSetStrategyType}
	}
	return k8sappsv1.StatefulSetUpdateStrategy{Type: k8sappsv1.RollingUpdateStatefulSetStrategyType}
}

// retention returns the policy for the volumes. Scaling down keeps them: scaling
// up again finds its data.
func (d *cluster) retention() *k8sappsv1.StatefulSetPersistentVolumeClaimRetentionPolicy {
	r := &k8sappsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
		WhenDeleted: k8sappsv1.DeletePersistentVolumeClaimRetentionPolicyType,
		WhenScaled:  k8sappsv1.RetainPersistentVolumeClaimRetentionPolicyType,
	}
	if d.profile.KeepVolumes {
		r.WhenDeleted = k8sappsv1.RetainPersistentVolumeClaimRetentionPolicyType
	}
	return r
}

func (d *cluster) volumeClaim() corev1.PersistentVolumeClaim {
	pvc := corev1.PersistentVolumeClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Name: instance.DataVolume, Labels: d.Labels(d.server, d.server)},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			// storage has checked the quantity.
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(d.storage)}},
		},
	}
	class := d.spec.StorageClassName
	if class == "" {
		class = d.settings.StorageClassName
	}
	if class != "" {
		pvc.Spec.StorageClassName = &class
	}
	return pvc
}
