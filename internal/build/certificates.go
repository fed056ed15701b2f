package build

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/pki"
)

// Keys of TLS Secrets, as Kubernetes and cert-manager name them.
const (
	KeyCertificate  = corev1.TLSCertKey
	KeyPrivate      = corev1.TLSPrivateKeyKey
	KeyAuthority    = pki.KeyAuthority
	KeyAuthorityKey = "ca.key"
)

// Certificates are those of servers: an authority of their own, and what it has signed for them.
type Certificates struct{ Authority, Server pki.Pair }

// Values returns the values of a Secret that holds all of them.
func (t Certificates) Values() map[string]string {
	return map[string]string{
		KeyAuthority: t.Authority.Certificate, KeyAuthorityKey: t.Authority.Key,
		KeyCertificate: t.Server.Certificate, KeyPrivate: t.Server.Key,
	}
}

// Holders are the components whose Secrets hold certificates. Both may be the same component.
type Holders struct{ Authority, Server string }

// Sign creates a certificate for servers of the given names.
type Sign func(authority pki.Pair, names []string, now time.Time) (pki.Pair, error)

// Certify reads certificates from composed Secrets, and creates or renews those that are missing or
// expire soon. name is that of a new authority. A review gets placeholders.
func Certify(c *compose.Claim, in Holders, name string, names []string, sign Sign) (Certificates, error) {
	if c.IsReview() {
		p := pki.Pair{Certificate: compose.Placeholder, Key: compose.Placeholder}
		return Certificates{Authority: p, Server: p}, nil
	}
	now, err := c.Now(), error(nil)
	out := Certificates{
		Authority: pairOf(c, in.Authority, KeyAuthority, KeyAuthorityKey),
		Server:    pairOf(c, in.Server, KeyCertificate, KeyPrivate),
	}
	if !pki.AuthorityHolds(out.Authority, now) {
		if out.Authority, err = pki.Authority(name, out.Authority, now); err != nil {
			return Certificates{}, err
		}
	}
	if !pki.ServerHolds(out.Server, out.Authority, names, now) {
		out.Server, err = sign(out.Authority, names, now)
	}
	return out, err
}

// pairOf returns the pair in a composed Secret, or an empty one if there is none.
func pairOf(c *compose.Claim, component, certificate, key string) pki.Pair {
	s := c.Observed(component)
	cert, _ := compose.SecretValue(s, certificate)
	private, _ := compose.SecretValue(s, key)
	return pki.Pair{Certificate: cert, Key: private}
}
