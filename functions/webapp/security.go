package webapp

import (
	"slices"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	corev1 "k8s.io/api/core/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
)

// volumesGroup is the group that may write to volume claims. Containers run in it,
// whatever user their image names.
const volumesGroup = 65532

// labelEnforce is the label of a namespace that names the pod security standard which its pods must
// meet: https://kubernetes.io/docs/concepts/security/pod-security-admission/.
const labelEnforce = "pod-security.kubernetes.io/enforce"

// namespaceRequirement is the name under which the claim's namespace is requested.
const namespaceRequirement = "namespace"

func (a *app) isBaseline() bool { return a.spec.PodSecurity == appsv1.PodSecurityBaseline }

// checkSecurity refuses a claim whose pods its namespace would reject. Only a claim with
// podSecurity baseline requests its namespace.
func (a *app) checkSecurity(c *compose.Claim) error {
	if !a.isBaseline() {
		return nil
	}
	namespaces, known := c.Require(namespaceRequirement, &fnv1.ResourceSelector{
		ApiVersion: "v1", Kind: "Namespace", Match: &fnv1.ResourceSelector_MatchName{MatchName: a.Namespace},
	})
	if !known {
		return compose.ErrPending
	}
	for _, ns := range namespaces {
		labels := ns.GetFields()["metadata"].GetStructValue().GetFields()["labels"].GetStructValue().GetFields()
		if labels[labelEnforce].GetStringValue() == string(appsv1.PodSecurityRestricted) {
			return compose.Invalidf("podSecurity may not be baseline in namespace %s, whose label %s is restricted: use an image that runs as a user other than root, or another namespace", a.Namespace, labelEnforce)
		}
	}
	return nil
}

// podSecurity returns the security context of a pod. With baseline the image's user may be root.
func (a *app) podSecurity() *corev1.PodSecurityContext {
	ctx := build.PodSecurity(0, 0)
	if a.isBaseline() {
		ctx.RunAsNonRoot = nil
	}
	ctx.RunAsUser = a.spec.RunAsUser
	if slices.ContainsFunc(a.spec.Volumes, func(v appsv1.Volume) bool { return v.PersistentVolumeClaim != nil }) {
		ctx.FSGroup = new(int64(volumesGroup))
		ctx.FSGroupChangePolicy = new(corev1.FSGroupChangeOnRootMismatch)
	}
	return ctx
}

// containerSecurity returns the security context of each container.
func (a *app) containerSecurity() *corev1.SecurityContext {
	if a.isBaseline() {
		return build.BaselineSecurity()
	}
	return build.ContainerSecurity()
}
