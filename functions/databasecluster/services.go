package databasecluster

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/storeplane/storeplane/internal/build"
)

// headlessService gives each server its own name, ready or not.
func (d *cluster) headlessService() *corev1.Service {
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: d.Meta(postgresql, appName),
		Spec: corev1.ServiceSpec{
			ClusterIP:                corev1.ClusterIPNone,
			PublishNotReadyAddresses: true,
			Selector:                 d.Selector(postgresql),
			Ports:                    []corev1.ServicePort{{Name: "postgresql", Port: port, TargetPort: intstr.FromString("postgresql")}},
		},
	}
}

// service follows a role wherever Patroni puts it.
func (d *cluster) service(role string) *corev1.Service {
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: d.Meta(role, appName),
		Spec: corev1.ServiceSpec{
			Selector: build.With(d.Selector(postgresql), map[string]string{roleLabel: role}),
			Ports:    []corev1.ServicePort{{Name: "postgresql", Port: port, TargetPort: intstr.FromString("postgresql")}},
		},
	}
}
