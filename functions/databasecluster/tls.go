package databasecluster

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/control"
	"github.com/storeplane/storeplane/internal/pgbackrest"
	"github.com/storeplane/storeplane/internal/pki"
)

// tlsFiles are the cluster's own authority and what it signed for the servers. Of an authority that
// the user brings only the certificate is known.
type tlsFiles struct {
	authority, server pki.Pair

	// peers are the authorities by which servers verify each other.
	peers string

	// backupAuthority has signed the certificate by which pgBackRest's servers and clients
	// authenticate to each other. It signs nothing else, so that they accept no other certificate,
	// whichever authority has signed those of PostgreSQL.
	backupAuthority, backup pki.Pair

	// control is the certificate by which servers authenticate to each other at Patroni's API and
	// those of the instance managers.
	control build.Certificates
}

// formerPeers is the number of authorities before the present one that servers accept. While a
// user replaces the authority some servers still have a certificate of the old one, and
// replication must continue.
const formerPeers = 2

func (d *inputs) ownAuthority() bool { return d.spec.TLS == nil || d.spec.TLS.SecretName == "" }

func (d *inputs) tlsRequired() bool {
	return d.spec.TLS == nil || d.spec.TLS.Required == nil || *d.spec.TLS.Required
}

// tlsSecret returns the name of the Secret with the certificate that the servers mount.
func (d *inputs) tlsSecret() string {
	if d.ownAuthority() {
		return d.Name(certificate)
	}
	return d.spec.TLS.SecretName
}

// drawTLS reads the certificates, including those for backups if backedUp is true,
// and generates missing ones.
func (d *inputs) drawTLS(c *compose.Claim, backedUp bool) (tlsFiles, error) {
	t, err := d.drawServerTLS(c)
	if err != nil {
		return t, err
	}
	t.peers = peersOf(t.authority.Certificate, datum(c.Observed(config), instance.FilePeers))
	if t.control, err = d.controlCertificates(c); err != nil {
		return t, err
	}
	if !backedUp {
		return t, nil
	}
	b, err := d.backupCertificates(c)
	t.backupAuthority, t.backup = b.Authority, b.Server
	return t, err
}

// backupCertificates returns the certificates by which pgBackRest's servers and clients
// authenticate to each other.
func (d *inputs) backupCertificates(c *compose.Claim) (build.Certificates, error) {
	in := build.Holders{Authority: backupTLS, Server: backupTLS}
	return build.Certify(c, in, d.Claim+"-"+backups, d.backupNames(), func(authority pki.Pair, names []string, now time.Time) (pki.Pair, error) {
		return pki.Peer(authority, pgbackrest.Name, names, now)
	})
}

// controlCertificates returns the certificates by which servers authenticate to each other.
func (d *inputs) controlCertificates(c *compose.Claim) (build.Certificates, error) {
	in := build.Holders{Authority: controlTLS, Server: controlTLS}
	names := []string{control.Name(d.Name(d.server), d.Namespace)}
	return build.Certify(c, in, d.Claim+"-control", names, func(authority pki.Pair, names []string, now time.Time) (pki.Pair, error) {
		return pki.Peer(authority, "server", names, now)
	})
}

// ownCertificates returns the cluster's own authority and its servers' certificate.
func (d *inputs) ownCertificates(c *compose.Claim) (build.Certificates, error) {
	return build.Certify(c, build.Holders{Authority: authority, Server: certificate}, d.Claim, d.serverNames(), pki.Server)
}

// backupNames returns the hosts at which pgBackRest serves.
func (d *inputs) backupNames() []string {
	return []string{
		serviceHost(d.Claim, repository, d.Namespace), serviceHost(d.Claim, source, d.Namespace),
		"*." + d.Name(d.server) + "." + d.Namespace + ".svc",
	}
}

// backupCertificate returns the Secret with the certificate that is for pgBackRest alone.
func (d *cluster) backupCertificate() *corev1.Secret {
	own := build.Certificates{Authority: d.tls.backupAuthority, Server: d.tls.backup}
	return build.Secret(d.Meta(backupTLS, d.server), own.Values())
}

// controlCertificate returns the Secret with the certificate that is for the
// servers' own APIs alone.
func (d *cluster) controlCertificate() *corev1.Secret {
	return build.Secret(d.Meta(controlTLS, d.server), d.tls.control.Values())
}

func (d *inputs) drawServerTLS(c *compose.Claim) (tlsFiles, error) {
	if !d.ownAuthority() {
		return broughtTLS(c, certificate, d.spec.TLS.SecretName)
	}
	own, err := d.ownCertificates(c)
	return tlsFiles{authority: own.Authority, server: own.Server}, err
}

// broughtTLS checks a Secret that the user brings, and returns the authority in it.
func broughtTLS(c *compose.Claim, requirement, name string) (tlsFiles, error) {
	s, err := requireSecret(c, requirement, name)
	if err != nil {
		return tlsFiles{}, err
	}
	if c.IsReview() {
		return tlsFiles{authority: pki.Pair{Certificate: compose.Placeholder}}, nil
	}
	values := map[string]string{}
	for _, k := range []string{build.KeyCertificate, build.KeyPrivate, build.KeyAuthority} {
		v, ok := compose.SecretValue(s, k)
		if !ok {
			return tlsFiles{}, compose.Invalidf("tls.secretName: Secret %s does not exist or has no key %s: create it", name, k)
		}
		values[k] = v
	}
	if err := pki.Check(pki.Pair{Certificate: values[build.KeyCertificate], Key: values[build.KeyPrivate]}, values[build.KeyAuthority]); err != nil {
		return tlsFiles{}, compose.Invalidf("tls.secretName: Secret %s cannot be used: %v", name, err)
	}
	return tlsFiles{authority: pki.Pair{Certificate: values[build.KeyAuthority]}}, nil
}

// peersOf returns the present authority, followed by at most formerPeers others that the servers
// already accept, newest first.
func peersOf(authority, known string) string {
	present := certificatesIn(authority)
	var former []string
	for _, c := range certificatesIn(known) {
		if len(former) < formerPeers && !slices.Contains(present, c) {
			former = append(former, c)
		}
	}
	return strings.Join(append(present, former...), "")
}

// certificatesIn returns the certificates in a text in PEM, one by one.
func certificatesIn(text string) []string {
	const end = "-----END CERTIFICATE-----"
	var out []string
	for c := range strings.SplitAfterSeq(text, end) {
		if c = strings.TrimSpace(c); c != "" {
			out = append(out, c+"\n")
		}
	}
	return out
}

// serverNames returns the names under which a client can verify a server.
func (d *inputs) serverNames() []string {
	var out []string
	for _, s := range []string{d.Name(primary), d.Name(replica), "*." + d.Name(d.server)} {
		out = append(out, s, s+"."+d.Namespace, s+"."+d.Namespace+".svc", s+"."+d.Namespace+".svc.cluster.local")
	}
	return append(out, "localhost")
}

func (d *cluster) authority() *corev1.Secret {
	return build.Secret(d.Meta(authority, d.server), map[string]string{
		build.KeyAuthority:    d.tls.authority.Certificate,
		build.KeyAuthorityKey: d.tls.authority.Key,
	})
}

func (d *cluster) certificate() *corev1.Secret {
	return build.Secret(d.Meta(certificate, d.server), map[string]string{
		build.KeyCertificate: d.tls.server.Certificate,
		build.KeyPrivate:     d.tls.server.Key,
		build.KeyAuthority:   d.tls.authority.Certificate,
	})
}
