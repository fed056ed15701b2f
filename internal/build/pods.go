package build

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/json"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	platformv1 "github.com/storeplane/storeplane/apis/platform/v1"
	storeplanev1 "github.com/storeplane/storeplane/apis/storeplane/v1"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/label"
)

// Place sets where a pod is scheduled, as a claim declares it. Each kind of affinity that the claim
// has replaces the pod's own.
func Place(pod *corev1.PodSpec, o *appsv1.PodOptions) {
	pod.NodeSelector, pod.Tolerations, pod.PriorityClassName = o.NodeSelector, o.Tolerations, o.PriorityClassName
	if o.Affinity == nil || *o.Affinity == (corev1.Affinity{}) {
		return
	}
	affinity := *o.Affinity
	if own := pod.Affinity; own != nil {
		affinity = *own
		if a := o.Affinity.NodeAffinity; a != nil {
			affinity.NodeAffinity = a
		}
		if a := o.Affinity.PodAffinity; a != nil {
			affinity.PodAffinity = a
		}
		if a := o.Affinity.PodAntiAffinity; a != nil {
			affinity.PodAntiAffinity = a
		}
	}
	pod.Affinity = &affinity
}

// PodMeta returns the metadata of a pod with a claim's labels and annotations. Storeplane's own
// take precedence.
func PodMeta(labels, annotations map[string]string, o *appsv1.PodOptions) metav1.ObjectMeta {
	return metav1.ObjectMeta{Labels: beneath(labels, o.PodLabels), Annotations: beneath(annotations, o.PodAnnotations)}
}

// beneath adds more entries to own ones, which take precedence.
func beneath(own, more map[string]string) map[string]string {
	if len(more) == 0 {
		return own
	}
	return With(more, own)
}

// CheckPods returns an error, whose message begins with the field, for options that no pod can
// have. spec is the part of the claim that holds the options, as it was written: the API server
// accepts any affinity.
func CheckPods(o *appsv1.PodOptions, spec *structpb.Struct) error {
	if err := checkAffinity(o.Affinity, spec.GetFields()["affinity"].GetStructValue()); err != nil {
		return err
	}
	for _, k := range slices.Sorted(maps.Keys(o.PodLabels)) {
		if isReservedLabel(k) {
			return compose.Invalidf("podLabels: %s is not for claims to set: choose another key", k)
		}
		if faults := slices.Concat(validation.IsQualifiedName(k), validation.IsValidLabelValue(o.PodLabels[k])); len(faults) > 0 {
			return compose.Invalidf("podLabels: %s is no label: %s", k, faults[0])
		}
	}
	for _, k := range slices.Sorted(maps.Keys(o.PodAnnotations)) {
		if isReservedAnnotation(k) {
			return compose.Invalidf("podAnnotations: %s is not for claims to set: choose another key", k)
		}
		if faults := validation.IsQualifiedName(strings.ToLower(k)); len(faults) > 0 {
			return compose.Invalidf("podAnnotations: %s is no annotation: %s", k, faults[0])
		}
	}
	return nil
}

// affinityBytes is the largest size of an affinity: it is in the template of all pods.
const affinityBytes = 16 << 10

// checkAffinity returns an error for an affinity that is too large, that has unknown fields, which
// would be dropped silently, or that names other namespaces: the scheduler applies a required
// anti-affinity to other tenants' pods too, and by a preference a pod could choose a pod of another
// tenant to run beside.
func checkAffinity(a *corev1.Affinity, raw *structpb.Struct) error {
	if a == nil || raw == nil {
		return nil
	}
	text, err := raw.MarshalJSON()
	if err != nil {
		return compose.Invalidf("affinity cannot be read: %v", err)
	}
	if len(text) > affinityBytes {
		return compose.Invalidf("affinity may have at most %d bytes, has %d", affinityBytes, len(text))
	}
	if unknown, err := json.UnmarshalStrict(text, &corev1.Affinity{}); err != nil || len(unknown) > 0 {
		return compose.Invalidf("affinity is not that of core/v1: %v", cmp.Or(err, errors.Join(unknown...)))
	}
	var terms []corev1.PodAffinityTerm
	add := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		terms = append(terms, required...)
		for i := range preferred {
			terms = append(terms, preferred[i].PodAffinityTerm)
		}
	}
	if p := a.PodAffinity; p != nil {
		add(p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if p := a.PodAntiAffinity; p != nil {
		add(p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	for i := range terms {
		if len(terms[i].Namespaces) > 0 || terms[i].NamespaceSelector != nil {
			return compose.Invalidf("affinity may not have namespaces or namespaceSelector: pods of other namespaces are not for claims to name")
		}
	}
	return nil
}

// ownDomain reports whether a key is of a domain of Storeplane's labels and annotations, by which
// its programs identify pods.
func ownDomain(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return slices.Contains([]string{
		storeplanev1.GroupVersion.Group, appsv1.GroupVersion.Group, platformv1.GroupVersion.Group, backupv1.GroupVersion.Group, configv1.GroupVersion.Group,
	}, domain)
}

// isReservedLabel reports whether pods are selected by a label, or controllers identify theirs by
// it.
func isReservedLabel(key string) bool {
	domain, _, prefixed := strings.Cut(key, "/")
	if !prefixed {
		return slices.Contains([]string{label.Platform, "job-name", "controller-uid", "pod-template-hash", "controller-revision-hash"}, key)
	}
	for _, d := range []string{"kubernetes.io", "k8s.io"} {
		if domain == d || strings.HasSuffix(domain, "."+d) {
			return true
		}
	}
	return ownDomain(key)
}

// isReservedAnnotation reports whether Storeplane reads an annotation, or the annotation removes a
// pod's confinement.
func isReservedAnnotation(key string) bool {
	return ownDomain(key) || strings.HasPrefix(key, corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix)
}
