// Package control provides TLS for the servers' own APIs in a DatabaseCluster: Patroni's REST
// API and that of the instance managers. All servers share one certificate, for both sides of
// a connection. Its authority signs nothing else, so the certificate proves that its holder is
// a server of this cluster.
package control

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/storeplane/storeplane/internal/pki"
)

// Dir is where the certificate is mounted, and Volume is the name of the pod's volume for it.
const (
	Dir    = "/etc/storeplane/control"
	Volume = "control"
)

// Files of Dir, named as Kubernetes names those of a certificate.
const (
	FileCertificate = corev1.TLSCertKey
	FileKey         = corev1.TLSPrivateKeyKey
	FileAuthority   = pki.KeyAuthority
)

// Name returns the name in the certificate of a cluster's servers. Servers reach each other by
// address, which no certificate contains, so a client verifies this name instead.
func Name(scope, namespace string) string { return scope + "." + namespace + ".svc" }

// Scheme returns the scheme of the APIs in a pod: http for a pod from before they had TLS,
// which has no certificate, and https otherwise.
func Scheme(pod *corev1.PodSpec) string {
	for i := range pod.Volumes {
		if pod.Volumes[i].Name == Volume {
			return "https"
		}
	}
	return "http"
}

// idleTimeout is how long an idle connection is kept. dialTimeout is how long it may take to
// establish one, which is the limit of http.DefaultTransport for the handshake: the request's
// own context does not end a dial.
const (
	idleTimeout = 90 * time.Second
	dialTimeout = 10 * time.Second
)

// TLS creates TLS configurations from the files of a directory. They are read for each
// connection, so that a renewed certificate needs no restart.
type TLS struct {
	// Dir is the directory with the files.
	Dir string

	// Name is the name in the servers' certificates.
	Name string
}

// Server returns the configuration to listen with. A client needs no certificate to connect,
// but the handshake fails with one of another authority.
func (t TLS) Server() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			own, authority, err := t.read()
			if err != nil {
				return nil, err
			}
			return &tls.Config{
				MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{own},
				ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: authority,
			}, nil
		},
	}
}

// Transport returns the transport of a client.
func (t TLS) Transport() *http.Transport {
	return &http.Transport{
		// Connections to servers that no longer exist are closed.
		IdleConnTimeout: idleTimeout,
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, dialTimeout)
			defer cancel()
			own, authority, err := t.read()
			if err != nil {
				return nil, err
			}
			d := tls.Dialer{Config: &tls.Config{
				MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{own}, RootCAs: authority, ServerName: t.Name,
			}}
			return d.DialContext(ctx, network, address)
		},
	}
}

// errFiles is the error for files that are missing or invalid. It wraps no other error: that a
// file does not exist says nothing about the server to which the request was sent.
var errFiles = errors.New("cannot use the certificate of this cluster's servers")

func (t TLS) read() (tls.Certificate, *x509.CertPool, error) {
	own, err := tls.LoadX509KeyPair(filepath.Join(t.Dir, FileCertificate), filepath.Join(t.Dir, FileKey))
	if err != nil {
		return own, nil, fmt.Errorf("%w: %v", errFiles, err) //nolint:errorlint // see errFiles
	}
	data, err := os.ReadFile(filepath.Join(t.Dir, FileAuthority))
	if err != nil {
		return own, nil, fmt.Errorf("%w: %v", errFiles, err) //nolint:errorlint // see errFiles
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return own, nil, fmt.Errorf("%w: %s is no certificate in PEM", errFiles, FileAuthority)
	}
	return own, pool, nil
}

// IsUntrusted reports whether an error means that the two sides do not trust each other, or
// that files are missing or invalid. The other side may be healthy.
func IsUntrusted(err error) bool {
	var verification *tls.CertificateVerificationError
	var remote *net.OpError
	return errors.Is(err, errFiles) || errors.As(err, &verification) || errors.As(err, &remote) && remote.Op == "remote error"
}

// Certified wraps a handler so that only clients with a certificate of this cluster's servers
// may change anything. GET and HEAD, as for probes and metrics, are open to all clients.
func Certified(handle http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		safe := r.Method == http.MethodGet || r.Method == http.MethodHead
		if !safe && (r.TLS == nil || len(r.TLS.VerifiedChains) == 0) {
			http.Error(w, "a certificate of this cluster's servers is needed", http.StatusForbidden)
			return
		}
		handle.ServeHTTP(w, r)
	})
}
