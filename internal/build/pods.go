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
	"github.com/storeplane/storeplane/internal/compose"
)

// Place a pod where a claim wants it. Each sort of affinity that the claim has
// takes the place of the pod's own.
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

// PodMeta is the metadata of a pod with a claim's labels and annotations beneath
// Storeplane's own.
func PodMeta(labels, annotations map[string]string, o *appsv1.PodOptions) metav1.ObjectMeta {
	return metav1.ObjectMeta{Labels: beneath(labels, o.PodLabels), Annotations: beneath(annotations, o.PodAnnotations)}
}

// beneath puts more entries under own ones.
func beneath(own, more map[string]string) map[string]string {
	if len(more) == 0 {
		return own
	}
	return With(more, own)
}

// CheckPods returns an error, whose message begins with the field, for options that no pod
// can have. spec is what the claim says where the options are: the API server takes an
// affinity as it is.
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

// affinityBytes is how long an affinity may be: it is in the template of all pods.
const affinityBytes = 16 << 10

// checkAffinity refuses one that has unknown fields, which would be dropped without a word, and
// one that speaks of other namespaces: the scheduler holds other tenants' pods to a required
// anti-affinity, and by a preference a pod gets beside the one that it chooses.
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

// ownDomain of Storeplane's labels and annotations, by which its programs know pods.
func ownDomain(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return slices.Contains([]string{"storeplane.example.com", "apps.example.com", "platform.example.com", "backup.example.com", "config.example.com"}, domain)
}

// isReservedLabel tells whether pods are selected by a label, or controllers know theirs by it.
func isReservedLabel(key string) bool {
	domain, _, prefixed := strings.Cut(key, "/")
	if !prefixed {
		return slices.Contains([]string{LabelPlatform, "job-name", "controller-uid", "pod-template-hash", "controller-revision-hash"}, key)
	}
	for _, d := range []string{"kubernetes.io", "k8s.io"} {
		if domain == d || strings.HasSuffix(domain, "."+d) {
			return true
		}
	}
	return ownDomain(key)
}

// isReservedAnnotation tells whether an annotation is read by Storeplane, or takes a pod's
// confinement away.
func isReservedAnnotation(key string) bool {
	return ownDomain(key) || strings.HasPrefix(key, corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix)
}
