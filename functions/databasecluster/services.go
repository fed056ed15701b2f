package databasecluster

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/instance"
)

// headlessService returns the Service that gives each server its own name, ready or not.
func (d *cluster) headlessService() *corev1.Service {
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: d.Meta(d.server, d.server),
		Spec: corev1.ServiceSpec{
			ClusterIP:                corev1.ClusterIPNone,
			PublishNotReadyAddresses: true,
			Selector:                 d.Selector(d.server),
			Ports:                    []corev1.ServicePort{{Name: d.server, Port: d.traits.Port, TargetPort: intstr.FromString(d.server)}},
		},
	}
}

// service returns the Service that follows a role, on whichever server it is.
func (d *cluster) service(role string) *corev1.Service {
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: d.Meta(role, d.server),
		Spec: corev1.ServiceSpec{
			Selector: build.With(d.Selector(d.server), map[string]string{instance.RoleLabel: role}),
			Ports:    []corev1.ServicePort{{Name: d.server, Port: d.traits.Port, TargetPort: intstr.FromString(d.server)}},
		},
	}
}
