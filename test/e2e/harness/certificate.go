package harness

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"
)

// Certificate returns a server's certificate for these names, its key, and the certificate of the
// new authority that signed it, all as PEM.
func Certificate(names ...string) (ca, cert, key string, err error) {
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "e2e authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		// The server's certificate refers to this key ID: strict clients require that.
		SubjectKeyId: []byte("e2e authority"),
		IsCA:         true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: names[0]}, DNSNames: names,
		NotBefore: authority.NotBefore, NotAfter: authority.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", "", fmt.Errorf("cannot make a key: %w", err)
	}
	serverKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", "", fmt.Errorf("cannot make a key: %w", err)
	}
	rawCA, err := x509.CreateCertificate(rand.Reader, authority, authority, &authorityKey.PublicKey, authorityKey)
	if err != nil {
		return "", "", "", fmt.Errorf("cannot make a certificate: %w", err)
	}
	rawCert, err := x509.CreateCertificate(rand.Reader, server, authority, &serverKey.PublicKey, authorityKey)
	if err != nil {
		return "", "", "", fmt.Errorf("cannot make a certificate: %w", err)
	}
	rawKey, err := x509.MarshalPKCS8PrivateKey(serverKey)
	if err != nil {
		return "", "", "", fmt.Errorf("cannot encode a key: %w", err)
	}
	text := func(typ string, raw []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: typ, Bytes: raw}))
	}
	return text("CERTIFICATE", rawCA), text("CERTIFICATE", rawCert), text("PRIVATE KEY", rawKey), nil
}
