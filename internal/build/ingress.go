package build

import (
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
)

// Ingress returns an Ingress of one host for one Service. An issued certificate is stored in the
// Secret <claim>-tls unless the claim names another.
func Ingress(s Scope, meta metav1.ObjectMeta, in appsv1.Ingress, defaultClass, service string, port int32) *networkingv1.Ingress {
	ing := &networkingv1.Ingress{
		TypeMeta:   metav1.TypeMeta{APIVersion: networkingv1.SchemeGroupVersion.String(), Kind: "Ingress"},
		ObjectMeta: meta,
		Spec: networkingv1.IngressSpec{
			Rules: []networkingv1.IngressRule{{
				Host: in.Host,
				IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
					Paths: []networkingv1.HTTPIngressPath{{
						Path:     "/",
						PathType: new(networkingv1.PathTypePrefix),
						Backend: networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{
							Name: service,
							Port: networkingv1.ServiceBackendPort{Number: port},
						}},
					}},
				}},
			}},
		},
	}
	ing.Annotations = in.Annotations
	class := in.ClassName
	if class == "" {
		class = defaultClass
	}
	if class != "" {
		ing.Spec.IngressClassName = &class
	}
	if in.TLS != nil {
		secret := in.TLS.SecretName
		if secret == "" {
			secret = s.Name("tls")
		}
		ing.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{in.Host}, SecretName: secret}}
		if in.TLS.Issuer != "" {
			ing.Annotations = With(ing.Annotations, map[string]string{appsv1.AnnotationClusterIssuer: in.TLS.Issuer})
		}
	}
	return ing
}

// IngressURL returns the URL of an ingress.
func IngressURL(in appsv1.Ingress) string {
	if in.TLS != nil || in.Gateway != nil && strings.HasPrefix(in.Gateway.SectionName, "https") {
		return "https://" + in.Host
	}
	return "http://" + in.Host
}
