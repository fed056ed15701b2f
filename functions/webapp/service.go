package webapp

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/storeplane/storeplane/internal/compose"
)

// portName is the name of the Service's port, and of the container's.
const portName = "http"

func (a *app) service() *corev1.Service {
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: a.Meta(web, a.name()),
		Spec: corev1.ServiceSpec{
			Selector: a.Selector(web),
			Ports:    []corev1.ServicePort{{Name: a.servicePortName(), Port: *a.port(), TargetPort: intstr.FromString(portName)}},
		},
	}
}

// servicePortName returns portName, or another name while an entry of the Service with another port
// has that name, after a user has edited the port. Server-side apply cannot remove such an entry,
// as it identifies entries by their port and their owners, and the API server refuses two entries
// of one name. With another name the Service serves at its port again.
func (a *app) servicePortName() string {
	if a.live.portNameTaken {
		return fmt.Sprintf("%s-%d", portName, *a.port())
	}
	return portName
}

// portNameTaken reports whether an entry of the observed Service that belongs to another field
// manager has the name portName and another port.
func portNameTaken(c *compose.Claim, port int32) (bool, error) {
	s := struct {
		Spec struct {
			Ports []corev1.ServicePort `json:"ports"`
		} `json:"spec"`
	}{}
	if _, err := c.ReadObserved(service, &s); err != nil {
		return false, err
	}
	for _, p := range s.Spec.Ports {
		entry := fmt.Sprintf(`k:{"port":%d,"protocol":"TCP"}`, p.Port)
		if p.Name == portName && p.Port != port && c.OwnedByOther(service, "f:spec", "f:ports", entry) {
			return true, nil
		}
	}
	return false, nil
}
