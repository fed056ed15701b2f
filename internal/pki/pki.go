package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// KeyAuthority is the key of Secrets, and the name of files, with the authority of a certificate,
// as cert-manager names it.
const KeyAuthority = "ca.crt"

// Lifetimes of certificates, and how long before their end certificates are renewed.
const (
	AuthorityLifetime = 10 * 365 * 24 * time.Hour
	AuthorityRenewal  = 3 * 365 * 24 * time.Hour
	ServerLifetime    = 90 * 24 * time.Hour
	StaticLifetime    = 365 * 24 * time.Hour
	ServerRenewal     = 30 * 24 * time.Hour
)

// skew is how far the clock of another machine may be behind.
const skew = 5 * time.Minute

// Pair is a certificate and its private key, both in PEM.
type Pair struct{ Certificate, Key string }

// Authority creates an authority, or renews an old one that can be read. The renewed one has the
// key and the name of the old one, so a client that trusts either trusts what both have signed.
func Authority(name string, old Pair, now time.Time) (Pair, error) {
	_, key, err := parse(old)
	if err != nil {
		if key, err = newKey(); err != nil {
			return Pair{}, err
		}
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-skew),
		NotAfter:              now.Add(AuthorityLifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	return sign(template, template, key, key)
}

// Server creates a certificate for servers of the given names, signed by an authority.
func Server(authority Pair, names []string, now time.Time) (Pair, error) {
	return server(authority, serverName, names, now, ServerLifetime, x509.ExtKeyUsageServerAuth)
}

// StaticServer creates a certificate for a server that reads it once, and is replaced when it
// changes.
func StaticServer(authority Pair, names []string, now time.Time) (Pair, error) {
	return server(authority, serverName, names, now, StaticLifetime, x509.ExtKeyUsageServerAuth)
}

// Peer creates a certificate for a program that is both a server, under the given names, and a
// client, under a common name. ServerHolds checks it too.
func Peer(authority Pair, common string, names []string, now time.Time) (Pair, error) {
	return server(authority, common, names, now, ServerLifetime, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
}

// serverName is the common name of servers. Clients compare only the alternative names. These may
// be longer than a common name, which has at most 64 characters.
const serverName = "server"

func server(authority Pair, common string, names []string, now time.Time, lifetime time.Duration, usage ...x509.ExtKeyUsage) (Pair, error) {
	parent, signer, err := parse(authority)
	if err != nil {
		return Pair{}, fmt.Errorf("cannot use the authority: %w", err)
	}
	key, err := newKey()
	if err != nil {
		return Pair{}, err
	}
	until := now.Add(lifetime)
	if parent.NotAfter.Before(until) {
		until = parent.NotAfter
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: common},
		DNSNames:    names,
		NotBefore:   now.Add(-skew),
		NotAfter:    until,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: usage,
	}
	return sign(template, parent, key, signer)
}

// AuthorityHolds reports whether an authority can be used and is not due for renewal.
func AuthorityHolds(p Pair, now time.Time) bool {
	cert, _, err := parse(p)
	return err == nil && cert.IsCA && cert.NotAfter.Sub(now) > AuthorityRenewal
}

// ServerHolds reports whether a server's certificate is signed by the authority, for these names,
// and not due for renewal.
func ServerHolds(p, authority Pair, names []string, now time.Time) bool {
	cert, _, err := parse(p)
	if err != nil || cert.NotAfter.Sub(now) <= ServerRenewal || !slices.Equal(cert.DNSNames, names) {
		return false
	}
	ca, err := certificateOf(authority.Certificate)
	return err == nil && cert.CheckSignatureFrom(ca) == nil
}

// Check checks that a certificate and a key that a user provides belong together, and that the
// authority is one: by another certificate clients verify no server. A certificate that has signed
// itself is its own authority.
func Check(p Pair, authority string) error {
	own, err := tls.X509KeyPair([]byte(p.Certificate), []byte(p.Key))
	if err != nil {
		// The text of the error contains no part of either.
		return fmt.Errorf("tls.crt and tls.key are no pair: %s", strings.TrimPrefix(err.Error(), "tls: "))
	}
	if _, err := certificateOf(authority); err != nil {
		return fmt.Errorf("ca.crt: %w", err)
	}
	for block, rest := pem.Decode([]byte(authority)); block != nil; block, rest = pem.Decode(rest) {
		cert, err := x509.ParseCertificate(block.Bytes)
		if err == nil && (signs(cert) || cert.Equal(own.Leaf) && isSelfSigned(cert)) {
			return nil
		}
	}
	return errors.New("ca.crt: it is no authority's certificate, for it may sign no others (CA:TRUE is missing): use that of the authority which has signed tls.crt")
}

// signs reports whether a certificate may sign others. One of version 1 says nothing of that.
func signs(c *x509.Certificate) bool {
	const extensions = 3
	if c.Version < extensions {
		return true
	}
	return c.BasicConstraintsValid && c.IsCA && (c.KeyUsage == 0 || c.KeyUsage&x509.KeyUsageCertSign != 0)
}

func isSelfSigned(c *x509.Certificate) bool {
	return bytes.Equal(c.RawIssuer, c.RawSubject) && c.CheckSignature(c.SignatureAlgorithm, c.RawTBSCertificate, c.Signature) == nil
}

func sign(template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) (Pair, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return Pair{}, fmt.Errorf("cannot sign a certificate: %w", err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, fmt.Errorf("cannot write a private key: %w", err)
	}
	return Pair{
		Certificate: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		Key:         string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})),
	}, nil
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot draw a private key: %w", err)
	}
	return key, nil
}

// parse reads a pair that this package has created: its key is on an elliptic curve.
func parse(p Pair) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	cert, err := certificateOf(p.Certificate)
	if err != nil {
		return nil, nil, err
	}
	block, _ := pem.Decode([]byte(p.Key))
	if block == nil {
		return nil, nil, errors.New("it is no private key in PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, nil, errors.New("it is no private key that can be read")
	}
	ec, ok := key.(*ecdsa.PrivateKey)
	if !ok || !ec.PublicKey.Equal(cert.PublicKey) {
		return nil, nil, errors.New("the private key is not the certificate's")
	}
	return cert, ec, nil
}

func certificateOf(text string) (*x509.Certificate, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.New("it is no certificate in PEM")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, errors.New("it is no certificate that can be read")
	}
	return cert, nil
}
