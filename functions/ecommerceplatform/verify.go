package ecommerceplatform

import (
	"slices"
	"strings"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	corev1 "k8s.io/api/core/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/functions/databasecluster"
	"github.com/storeplane/storeplane/internal/compose"
)

// connectionRequirement is the name under which that Secret is requested.
const connectionRequirement = "database-connection"

// connectsBy returns the key of the database's connection Secret that the backend reads. A backend
// that already runs with appsv1.ConnectionURI changes to appsv1.ConnectionVerified only once the
// Secret has that key. Otherwise its next pods could not start while the database's claim is paused
// or refused.
func (s *shop) connectsBy(c *compose.Claim) (string, error) {
	if !s.verifiable() {
		return appsv1.ConnectionURI, nil
	}
	running := appsv1.WebApp{}
	found, err := c.ReadObserved(backend, &running)
	if err != nil {
		return "", err
	}
	secret := databasecluster.ConnectionSecret(s.Name(database))
	if !found || c.IsReview() || !slices.ContainsFunc(running.Spec.Env, func(e corev1.EnvVar) bool { return readsKey(&e, secret, appsv1.ConnectionURI) }) {
		return appsv1.ConnectionVerified, nil
	}
	namespace := c.Namespace()
	secrets, _ := c.Require(connectionRequirement, &fnv1.ResourceSelector{
		ApiVersion: "v1", Kind: "Secret", Namespace: &namespace,
		Match: &fnv1.ResourceSelector_MatchName{MatchName: secret},
	})
	for _, found := range secrets {
		if _, ok := compose.SecretValue(found, appsv1.ConnectionVerified); ok {
			return appsv1.ConnectionVerified, nil
		}
	}
	return appsv1.ConnectionURI, nil
}

// readsKey reports whether a variable is read from a key of a Secret.
func readsKey(e *corev1.EnvVar, secret, key string) bool {
	return e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil && e.ValueFrom.SecretKeyRef.Name == secret && e.ValueFrom.SecretKeyRef.Key == key
}

// verifiable reports whether the backend can connect by appsv1.ConnectionVerified. It cannot if the
// claim sets the URI itself, brings a certificate, whose authority and names are its own, or has
// volumes that leave no room for the database's authority.
func (s *shop) verifiable() bool {
	d := s.spec.Database
	if len(unset([]string{envDatabaseURL}, s.spec.Backend.Env)) == 0 || d != nil && d.TLS != nil && d.TLS.SecretName != "" {
		return false
	}
	return fits(s.spec.Backend.Volumes, databasecluster.Authority(s.Name(database)))
}

// verifiesCache reports whether the backend connects to the cache by its Secret, including a claim
// that names the Secret itself.
func (s *shop) verifiesCache() bool {
	if !s.hasCache() {
		return false
	}
	i := slices.IndexFunc(s.spec.Backend.Env, func(e corev1.EnvVar) bool { return e.Name == envRedisURL })
	return i < 0 || readsKey(&s.spec.Backend.Env[i], s.Name(cache), appsv1.ConnectionURI)
}

// checkCacheAuthority refuses a backend that would have a cache with TLS and
// nothing to verify it by.
func (s *shop) checkCacheAuthority() error {
	own := s.cacheAuthority()
	if !s.verifiesCache() || !s.cacheHasTLS() || fits(s.backendVolumes(), own) {
		return nil
	}
	return compose.Invalidf("backend.volumes leave no room for volume %s at %s, by which the backend verifies the cache: remove or move one, or set cache.tls.enabled to false", own.Name, own.MountPath)
}

// backendVolumes returns the claim's own volumes, and that of the database's authority if the
// backend verifies the database.
func (s *shop) backendVolumes() []appsv1.Volume {
	volumes := slices.Clone(s.spec.Backend.Volumes)
	if s.connection == appsv1.ConnectionVerified {
		volumes = append(volumes, databasecluster.Authority(s.Name(database)))
	}
	return volumes
}

// fits reports whether there is room for a volume beside others: their number,
// names and paths allow it.
func fits(volumes []appsv1.Volume, own appsv1.Volume) bool {
	return len(volumes) < mostVolumes && !slices.ContainsFunc(volumes, func(v appsv1.Volume) bool {
		return v.Name == own.Name || strings.HasPrefix(own.MountPath+"/", v.MountPath+"/") || strings.HasPrefix(v.MountPath, own.MountPath+"/")
	})
}
