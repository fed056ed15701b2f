package ecommerceplatform

import (
	"fmt"
	"path"

	corev1 "k8s.io/api/core/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/pki"
)

const (
	// certificateDir is the folder with Redis' certificate.
	certificateDir = "/etc/storeplane/certificate"

	// certificateVersionAnnotation is an annotation of the pods that changes with the certificate,
	// so that they are replaced: Redis reads it only when it starts.
	certificateVersionAnnotation = "storeplane.example.com/certificate-version"
)

func (s *shop) cacheHasTLS() bool {
	c := s.spec.Cache
	return c == nil || c.TLS == nil || c.TLS.Enabled == nil || *c.TLS.Enabled
}

// drawCacheTLS reads the certificates of the cache, generates missing ones, and
// renews those that expire soon.
func (s *shop) drawCacheTLS(c *compose.Claim) (err error) {
	if s.cacheServesTLS = s.storesTLS(c); !s.cacheHasTLS() && !s.cacheServesTLS {
		return nil
	}
	if s.cacheCertificates, err = s.certifyCache(c); err != nil {
		return err
	}
	s.cacheCertificateVersion = certificateVersion(c, s.cacheSalt, s.cacheCertificates.Server.Certificate)
	return nil
}

// storesTLS reports whether pods that start find TLS in the Secret of the cache. When TLS is turned
// on or off, pods are replaced only once the Secret has changed.
func (s *shop) storesTLS(c *compose.Claim) bool {
	secret := c.Observed(cacheSecret)
	if secret == nil || c.IsReview() {
		return s.cacheHasTLS()
	}
	_, ok := compose.SecretValue(secret, build.KeyAuthority)
	return ok
}

func (s *shop) certifyCache(c *compose.Claim) (build.Certificates, error) {
	return build.Certify(c, build.Holders{Authority: cacheTLS, Server: cacheTLS}, s.Name(cache), s.cacheNames(), pki.StaticServer)
}

// certificateVersion returns a digest of the stored certificate, which pods read, as
// storedVersion does of the password.
func certificateVersion(c *compose.Claim, salt, certificate string) string {
	if secret := c.Observed(cacheTLS); secret != nil && !c.IsReview() {
		certificate, _ = compose.SecretValue(secret, build.KeyCertificate)
	}
	return build.KeyedDigest(salt, certificate)
}

// cacheNames returns the names under which a client can verify the cache.
func (s *shop) cacheNames() []string {
	name := s.Name(cache)
	return []string{name, name + "." + s.Namespace, s.cacheHost(), s.cacheHost() + ".cluster.local"}
}

// cacheCertificate returns the Secret with the certificate of Redis. Clients read the authority in
// the Secret with the password.
func (s *shop) cacheCertificate() *corev1.Secret {
	meta := s.Meta(cache, cacheApp)
	meta.Name += "-tls"
	return build.Secret(meta, s.cacheCertificates.Values())
}

// cacheCertificateVolume returns the volume with what Redis reads, without the authority's key.
func (s *shop) cacheCertificateVolume() corev1.Volume {
	return corev1.Volume{Name: "certificate", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName:  s.cacheCertificate().Name,
		DefaultMode: new(int32(0o440)),
		Items:       []corev1.KeyToPath{{Key: build.KeyCertificate, Path: build.KeyCertificate}, {Key: build.KeyPrivate, Path: build.KeyPrivate}},
	}}}
}

// redisTLS returns the configuration by which Redis refuses connections without TLS. Clients
// authenticate by the password and need no certificate.
func redisTLS() string {
	return fmt.Sprintf(`port 0
tls-port %d
tls-cert-file %s
tls-key-file %s
tls-auth-clients no
`, cachePort, path.Join(certificateDir, build.KeyCertificate), path.Join(certificateDir, build.KeyPrivate))
}

// cacheAuthority returns the volume that the backend mounts to verify the cache.
func (s *shop) cacheAuthority() appsv1.Volume {
	return appsv1.Volume{Name: "cache-authority", MountPath: "/etc/storeplane/" + s.Name(cache), Secret: &corev1.SecretVolumeSource{
		SecretName: s.Name(cache), Items: []corev1.KeyToPath{{Key: build.KeyAuthority, Path: build.KeyAuthority}},
	}}
}
