package ecommerceplatform

import (
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/functions/databasecluster"
	"github.com/storeplane/storeplane/functions/webapp"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/label"
)

// Environment variables by which the tiers find each other.
const (
	envBackendURL  = "BACKEND_URL"
	envDatabaseURL = "DATABASE_URL"
	envRedisURL    = "REDIS_URL"

	// envRedisCA is the path of the file with the authority that signed the cache's certificate.
	envRedisCA = "REDIS_CA_FILE"

	// envRedisVersion is not for the application: a change of it replaces the pods, which read the
	// password only when they start.
	envRedisVersion = "REDIS_URL_VERSION"
)

// backend returns the WebApp of the backend. It reaches database and cache by Secrets, and only the
// frontend's pods can reach it.
func (s *shop) backend() *appsv1.WebApp {
	b := &s.spec.Backend
	env := []corev1.EnvVar{build.FromSecret(envDatabaseURL, databasecluster.ConnectionSecret(s.Name(database)), s.connection)}
	if s.hasCache() && !slices.ContainsFunc(b.Env, func(e corev1.EnvVar) bool { return e.Name == envRedisURL }) {
		env = append(env, build.FromSecret(envRedisURL, s.Name(cache), appsv1.ConnectionURI), corev1.EnvVar{Name: envRedisVersion, Value: s.cacheVersion})
	}
	volumes := s.backendVolumes()
	if own := s.cacheAuthority(); s.verifiesCache() && s.cacheServesTLS {
		volumes = append(volumes, own)
		env = append(env, corev1.EnvVar{Name: envRedisCA, Value: path.Join(own.MountPath, build.KeyAuthority)})
	}
	wa := s.webApp(backend, &b.Workload, b.Replicas, env)
	wa.Spec.Volumes = volumes
	wa.Spec.Migration = b.Migration
	wa.Spec.CronJobs = b.CronJobs
	wa.Spec.Workers = b.Workers
	wa.Spec.Clients = map[string]string{label.Instance: s.Name(frontend)}
	return wa
}

// frontend returns the WebApp of the frontend. All pods of the namespace can reach it and, with an
// ingress, the ingress controller.
func (s *shop) frontend() *appsv1.WebApp {
	f := &s.spec.Frontend
	url := webapp.URL(s.Name(backend), s.Namespace, port(&s.spec.Backend.Workload))
	return s.webApp(frontend, &f.Workload, f.Replicas, []corev1.EnvVar{{Name: envBackendURL, Value: url}})
}

func (s *shop) webApp(component string, w *appsv1.Workload, replicas *int32, env []corev1.EnvVar) *appsv1.WebApp {
	wa := &appsv1.WebApp{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.GroupVersion.String(), Kind: appsv1.WebAppKind},
		ObjectMeta: s.Meta(component, "webapp"),
		Spec: appsv1.WebAppSpec{
			Workload:    *w,
			Environment: environment(&s.spec),
			Replicas:    replicas,
			Maintenance: s.spec.Maintenance,
		},
	}
	wa.Annotations = s.allowance
	if !s.monitored() {
		wa.Spec.Metrics = nil
	}
	wa.Spec.EnvFrom = build.EnvFrom(s.bundles.shall[component], w.EnvFrom)
	if replicas == nil && w.Autoscaling == nil {
		wa.Spec.Replicas = &s.profile.Replicas
	}
	// A variable that the claim sets itself takes precedence.
	wa.Spec.Env = slices.DeleteFunc(env, func(e corev1.EnvVar) bool {
		return slices.ContainsFunc(w.Env, func(own corev1.EnvVar) bool { return own.Name == e.Name })
	})
	wa.Spec.Env = append(wa.Spec.Env, w.Env...)
	return wa
}

// ingress returns the component that leads to the frontend: an Ingress, or an HTTPRoute if
// the claim names a Gateway.
func (s *shop) ingress() compose.Component {
	meta, in := s.Meta(ingress, "ingress"), *s.spec.Ingress
	service, port := webapp.ServiceName(s.Name(frontend)), port(&s.spec.Frontend.Workload)
	after := []string{frontend}
	if in.Gateway != nil {
		return compose.Component{
			Name: build.RouteComponent, Part: ingress, After: after, Health: build.RouteHealth,
			Make: func() compose.Object { return build.HTTPRoute(meta, in, service, port) },
		}
	}
	return compose.Component{Name: ingress, After: after, Make: func() compose.Object {
		return build.Ingress(s.Scope, meta, in, s.settings.Ingress.ClassName, service, port)
	}}
}

// ingressPolicy lets the ingress controller reach the frontend's pods, which otherwise only pods of
// the namespace can reach.
func (s *shop) ingressPolicy() *networkingv1.NetworkPolicy {
	np := build.NetworkPolicy(s.Scope, ingress, "ingress", build.Admit{
		From:  []networkingv1.NetworkPolicyPeer{build.Namespace(s.settings.Ingress.Namespace)},
		Ports: []int32{port(&s.spec.Frontend.Workload)},
	})
	np.Spec.PodSelector.MatchLabels = webapp.PodLabels(s.Name(frontend))
	return np
}
