package pki_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/storeplane/storeplane/internal/pki"
)

var (
	start = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	names = []string{"orders-primary.team.svc", "*.orders-postgresql.team.svc"}
)

func authority(t *testing.T, old pki.Pair, now time.Time) pki.Pair {
	t.Helper()
	p, err := pki.Authority("orders", old, now)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func server(t *testing.T, ca pki.Pair, now time.Time) pki.Pair {
	t.Helper()
	p, err := pki.Server(ca, names, now)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func certificate(t *testing.T, p pki.Pair) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode([]byte(p.Certificate))
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// TestHandshake: a client that trusts the authority, old or renewed, can connect to a server by
// each of its names and by no other.
func TestHandshake(t *testing.T) {
	ca := authority(t, pki.Pair{}, start)
	later := start.Add(8 * 365 * 24 * time.Hour)
	renewed := authority(t, ca, later)
	stranger := authority(t, pki.Pair{}, start)

	cases := map[string]struct {
		reason string
		signer pki.Pair
		trusts pki.Pair
		name   string
		now    time.Time
		fails  bool
	}{
		"Primary":  {reason: "A client that trusts the authority gets through.", signer: ca, trusts: ca, name: "orders-primary.team.svc", now: start},
		"Pod":      {reason: "Also to a single server.", signer: ca, trusts: ca, name: "orders-postgresql-1.orders-postgresql.team.svc", now: start},
		"Renewed":  {reason: "Who trusts the authority before its renewal trusts what it signs after.", signer: renewed, trusts: ca, name: "orders-primary.team.svc", now: later},
		"Updated":  {reason: "Who trusts the renewed one trusts what was signed before.", signer: ca, trusts: renewed, name: "orders-primary.team.svc", now: later},
		"Name":     {reason: "Another name is another server.", signer: ca, trusts: ca, name: "orders-primary.other.svc", now: start, fails: true},
		"Stranger": {reason: "Another authority is not trusted.", signer: ca, trusts: stranger, name: "orders-primary.team.svc", now: start, fails: true},
		"Expired":  {reason: "Certificates end.", signer: ca, trusts: ca, name: "orders-primary.team.svc", now: start.Add(pki.ServerLifetime + time.Hour), fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			made := tc.now
			if tc.fails {
				made = start
			}
			pair := server(t, tc.signer, made)
			cert, err := tls.X509KeyPair([]byte(pair.Certificate), []byte(pair.Key))
			if err != nil {
				t.Fatal(err)
			}
			roots := x509.NewCertPool()
			roots.AppendCertsFromPEM([]byte(tc.trusts.Certificate))
			l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				if conn, err := l.Accept(); err == nil {
					_, _ = io.Copy(io.Discard, conn) // Reads the handshake, and until the client closes the connection.
					_ = conn.Close()
				}
			}()
			dialer := &tls.Dialer{Config: &tls.Config{
				RootCAs: roots, ServerName: tc.name, MinVersion: tls.VersionTLS13, Time: func() time.Time { return tc.now },
			}}
			conn, err := dialer.DialContext(t.Context(), "tcp", l.Addr().String())
			if err == nil {
				_ = conn.Close()
			}
			if (err != nil) != tc.fails {
				t.Errorf("%s\ngot %v", tc.reason, err)
			}
		})
	}
}

func TestHolds(t *testing.T) {
	ca := authority(t, pki.Pair{}, start)
	srv := server(t, ca, start)
	cases := map[string]struct {
		reason string
		got    bool
		want   bool
	}{
		"Authority":        {reason: "A new authority holds.", got: pki.AuthorityHolds(ca, start), want: true},
		"AuthorityOld":     {reason: "One with less than three years left is renewed.", got: pki.AuthorityHolds(ca, start.Add(pki.AuthorityLifetime-pki.AuthorityRenewal))},
		"AuthorityBroken":  {reason: "Nonsense is none.", got: pki.AuthorityHolds(pki.Pair{Certificate: "x", Key: "y"}, start)},
		"AuthorityKey":     {reason: "Another's key is no key.", got: pki.AuthorityHolds(pki.Pair{Certificate: ca.Certificate, Key: srv.Key}, start)},
		"AuthorityServer":  {reason: "A server is no authority.", got: pki.AuthorityHolds(srv, start)},
		"Server":           {reason: "A new server's certificate holds.", got: pki.ServerHolds(srv, ca, names, start), want: true},
		"ServerFresh":      {reason: "Also a day before its renewal.", got: pki.ServerHolds(srv, ca, names, start.Add(pki.ServerLifetime-pki.ServerRenewal-24*time.Hour)), want: true},
		"ServerOld":        {reason: "With less than thirty days left it is renewed.", got: pki.ServerHolds(srv, ca, names, start.Add(pki.ServerLifetime-pki.ServerRenewal))},
		"ServerNames":      {reason: "Other names need another certificate.", got: pki.ServerHolds(srv, ca, names[:1], start)},
		"ServerAuthority":  {reason: "So does another authority.", got: pki.ServerHolds(srv, authority(t, pki.Pair{}, start), names, start)},
		"ServerPlaceholde": {reason: "A placeholder is none.", got: pki.ServerHolds(pki.Pair{Certificate: "generated", Key: "generated"}, ca, names, start)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.got != tc.want {
				t.Errorf("%s\nwant %t", tc.reason, tc.want)
			}
		})
	}
}

// TestServerEnds: a certificate does not outlive the authority that signed it.
func TestServerEnds(t *testing.T) {
	ca := authority(t, pki.Pair{}, start)
	late := start.Add(pki.AuthorityLifetime - 24*time.Hour)
	if got, end := certificate(t, server(t, ca, late)).NotAfter, certificate(t, ca).NotAfter; got.After(end) {
		t.Errorf("want an end by %s, got %s", end, got)
	}
}

// selfSigned returns a server's certificate that is signed by its own key, as cert-manager's issuer
// of that name creates it.
func selfSigned(t *testing.T) pki.Pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "server"}, DNSNames: names, NotBefore: start, NotAfter: start.Add(time.Hour),
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pki.Pair{
		Certificate: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		Key:         string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})),
	}
}

func TestCheck(t *testing.T) {
	const noAuthority = "ca.crt: it is no authority's certificate, for it may sign no others (CA:TRUE is missing): use that of the authority which has signed tls.crt"
	ca := authority(t, pki.Pair{}, start)
	srv := server(t, ca, start)
	itself := selfSigned(t)
	cases := map[string]struct {
		reason string
		pair   pki.Pair
		ca     string
		want   string
	}{
		"Fine":      {reason: "A pair and its authority.", pair: srv, ca: ca.Certificate},
		"Mixed":     {reason: "A key of another certificate.", pair: pki.Pair{Certificate: srv.Certificate, Key: ca.Key}, ca: ca.Certificate, want: "tls.crt and tls.key are no pair: private key does not match public key"},
		"NoPEM":     {reason: "No certificate.", pair: pki.Pair{Certificate: "x", Key: srv.Key}, ca: ca.Certificate, want: "tls.crt and tls.key are no pair: failed to find any PEM data in certificate input"},
		"Authority": {reason: "No authority.", pair: srv, ca: "x", want: "ca.crt: it is no certificate in PEM"},
		"Server":    {reason: "A server's certificate is no authority's.", pair: srv, ca: server(t, ca, start).Certificate, want: noAuthority},
		"Own":       {reason: "Nor is its own, which another one has signed.", pair: srv, ca: srv.Certificate, want: noAuthority},
		"Bundle":    {reason: "One of several is an authority's.", pair: srv, ca: srv.Certificate + ca.Certificate},
		"Itself":    {reason: "A certificate that has signed itself needs no other.", pair: itself, ca: itself.Certificate},
		"Another":   {reason: "But not for another server.", pair: srv, ca: itself.Certificate, want: noAuthority},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := pki.Check(tc.pair, tc.ca); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
			if strings.Contains(got, "PRIVATE") {
				t.Errorf("no key is ever in an error")
			}
		})
	}
}
