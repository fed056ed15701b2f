package webapp

import (
	k8sappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
)

// live is what the function looks at of the observed Deployment.
type live struct {
	Spec struct {
		Replicas *int32 `json:"replicas"`
		Template struct {
			Spec struct {
				Containers []struct {
					Image   string                 `json:"image"`
					EnvFrom []corev1.EnvFromSource `json:"envFrom"`
				} `json:"containers"`
			} `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
	Status k8sappsv1.DeploymentStatus `json:"status"`

	// scaledByOther is true once somebody else has set the number of pods.
	scaledByOther bool

	// portNameTaken is true while somebody else's port of the Service has the
	// name of ours.
	portNameTaken bool
}

func observe(c *compose.Claim, port int32) (live, error) {
	l := live{}
	if _, err := c.ReadObserved(web, &l); err != nil {
		return l, err
	}
	l.scaledByOther = c.OwnedByOther(web, "f:spec", "f:replicas")
	var err error
	l.portNameTaken, err = portNameTaken(c, port)
	return l, err
}

// bundle of the claim's config that the pods run, or "".
func (l *live) bundle(s build.Scope) string {
	for _, c := range l.Spec.Template.Spec.Containers {
		if b := build.BundleIn(s, c.EnvFrom); b != "" {
			return b
		}
	}
	return ""
}

func (a *app) status(o compose.Outcome) *appsv1.WebAppStatus {
	s := &appsv1.WebAppStatus{
		CommonStatus:      o.Common,
		Phase:             appsv1.WebAppPhase(o.Phase),
		Endpoint:          URL(a.Claim, a.Namespace, *a.port()),
		AvailableReplicas: a.live.Status.AvailableReplicas,
		Config:            a.config.Status(o),
	}
	if cs := a.live.Spec.Template.Spec.Containers; len(cs) > 0 {
		s.Image = cs[0].Image
	}
	if a.spec.Ingress != nil {
		s.URL = build.IngressURL(*a.spec.Ingress)
	}
	return s
}
