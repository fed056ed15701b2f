package pki

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"time"
)

// Peer creates a certificate for a program that is both a server, under the given names, and a
// client, under a common name. ServerHolds checks it too.
func Peer(authority Pair, common string, names []string, now time.Time) (Pair, error) {
	parent, signer, err := parse(authority)
	if err != nil {
		return Pair{}, fmt.Errorf("cannot use the authority: %w", err)
	}
	key, err := newKey()
	if err != nil {
		return Pair{}, err
	}
	until := now.Add(ServerLifetime)
	if parent.NotAfter.Before(until) {
		until = parent.NotAfter
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: common},
		DNSNames:    names,
		NotBefore:   now.Add(-skew),
		NotAfter:    until,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	return sign(template, parent, key, signer)
}
