package webapp

import (
	k8sappsv1 "k8s.io/api/apps/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
)

// live is what of the observed Deployment the status tells.
type live struct {
	Spec struct {
		Template struct {
			Spec struct {
				Containers []struct {
					Image string `json:"image"`
				} `json:"containers"`
			} `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
	Status k8sappsv1.DeploymentStatus `json:"status"`
}

func observe(c *compose.Claim) (live, error) {
	l := live{}
	_, err := c.ReadObserved(web, &l)
	return l, err
}

func (a *app) status(o compose.Outcome, l live) *appsv1.WebAppStatus {
	s := &appsv1.WebAppStatus{
		CommonStatus:      o.Common,
		Phase:             appsv1.WebAppPhase(o.Phase),
		Endpoint:          URL(a.Claim, a.Namespace, *a.port()),
		AvailableReplicas: l.Status.AvailableReplicas,
	}
	if cs := l.Spec.Template.Spec.Containers; len(cs) > 0 {
		s.Image = cs[0].Image
	}
	if a.spec.Ingress != nil {
		s.URL = build.IngressURL(*a.spec.Ingress)
	}
	return s
}
