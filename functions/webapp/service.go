package webapp

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func (a *app) service() *corev1.Service {
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: a.Meta(web, a.name()),
		Spec: corev1.ServiceSpec{
			Selector: a.Selector(web),
			Ports:    []corev1.ServicePort{{Name: "http", Port: *a.port(), TargetPort: intstr.FromString("http")}},
		},
	}
}
