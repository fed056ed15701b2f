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
	// certificateDir is where Redis has its certificate.
	certificateDir = "/etc/storeplane/certificate"

	// certificateVersionAnnotation on the pods replaces them with their certificate, which
	// Redis reads once.
	certificateVersionAnnotation = "storeplane.example.com/certificate-version"
)

func (s *shop) cacheHasTLS() bool {
	c := s.spec.Cache
	return c == nil || c.TLS == nil || c.TLS.Enabled == nil || *c.TLS.Enabled
}

// drawCacheTLS reads the certificates of the cache, and renews what of them does not hold for
// long any more.
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

// storesTLS tells whether pods that start find TLS in the Secret of the cache. Where it is
// turned on or off, they are replaced once the Secret has it, and not before that, too.
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

// certificateVersion is of the certificate that is stored, as with the password: pods read
// that.
func certificateVersion(c *compose.Claim, salt, certificate string) string {
	if secret := c.Observed(cacheTLS); secret != nil && !c.IsReview() {
		certificate, _ = compose.SecretValue(secret, build.KeyCertificate)
	}
	return build.KeyedDigest(salt, certificate)
}

// cacheNames under which a client may verify the cache.
func (s *shop) cacheNames() []string {
	name := s.Name(cache)
	return []string{name, name + "." + s.Namespace, s.cacheHost(), s.cacheHost() + ".cluster.local"}
}

// cacheCertificate is for Redis. Clients have the authority in the Secret with the password.
func (s *shop) cacheCertificate() *corev1.Secret {
	meta := s.Meta(cache, cacheApp)
	meta.Name += "-tls"
	return build.Secret(meta, s.cacheCertificates.Values())
}

// cacheCertificateVolume has what Redis reads, and not the authority's key.
func (s *shop) cacheCertificateVolume() corev1.Volume {
	return corev1.Volume{Name: "certificate", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName:  s.cacheCertificate().Name,
		DefaultMode: new(int32(0o440)),
		Items:       []corev1.KeyToPath{{Key: build.KeyCertificate, Path: build.KeyCertificate}, {Key: build.KeyPrivate, Path: build.KeyPrivate}},
	}}}
}

// redisTLS has Redis admit no connection without TLS. Clients know themselves by the password.
func redisTLS() string {
	return fmt.Sprintf(`port 0
tls-port %d
tls-cert-file %s
tls-key-file %s
tls-auth-clients no
`, cachePort, path.Join(certificateDir, build.KeyCertificate), path.Join(certificateDir, build.KeyPrivate))
}

// cacheAuthority is what the backend mounts to verify the cache.
func (s *shop) cacheAuthority() appsv1.Volume {
	return appsv1.Volume{Name: "cache-authority", MountPath: "/etc/storeplane/" + s.Name(cache), Secret: &corev1.SecretVolumeSource{
		SecretName: s.Name(cache), Items: []corev1.KeyToPath{{Key: build.KeyAuthority, Path: build.KeyAuthority}},
	}}
}
