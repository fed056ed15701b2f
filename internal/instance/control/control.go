// Package control is the TLS of the servers' own APIs in a DatabaseCluster: of Patroni's REST API
// and of the instance managers'. All servers have one certificate, for both sides of a
// connection, of an authority that signs nothing else: it proves that its holder is a server of
// this cluster.
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
)

// Dir is where the certificate is mounted, and Volume the pod's volume of it.
const (
	Dir    = "/etc/storeplane/control"
	Volume = "control"
)

// Files of Dir, as Kubernetes names those of a certificate.
const (
	FileCertificate = corev1.TLSCertKey
	FileKey         = corev1.TLSPrivateKeyKey
	FileAuthority   = "ca.crt"
)

// Name that the certificate of a cluster's servers bears. They reach each other by address,
// which no certificate has: a client goes by this name instead.
func Name(scope, namespace string) string { return scope + "." + namespace + ".svc" }

// Scheme of the APIs in a pod: a pod from before they had TLS has no certificate.
func Scheme(pod *corev1.PodSpec) string {
	for i := range pod.Volumes {
		if pod.Volumes[i].Name == Volume {
			return "https"
		}
	}
	return "http"
}

// idleTimeout is how long a connection is kept, and dialTimeout how long one may take to come
// about, as http.DefaultTransport has it for the handshake: the request's own context does not
// end a dial.
const (
	idleTimeout = 90 * time.Second
	dialTimeout = 10 * time.Second
)

// TLS by the files of a folder. They are read for each connection, so that one that is
// renewed needs no restart.
type TLS struct {
	// Dir has the files.
	Dir string

	// Name that servers' certificates bear.
	Name string
}

// Server is the configuration to listen with. A client needs no certificate to connect; the
// handshake with one of another authority fails.
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

// Transport of a client.
func (t TLS) Transport() *http.Transport {
	return &http.Transport{
		// Connections to servers that are gone are not kept.
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

// errFiles is of files that are missing or cannot be used. It wraps no other error: that a file
// does not exist says nothing about the server that was to be asked.
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

// IsUntrusted tells whether an error is of two sides that do not know each other, or of files
// that cannot be used: the other side may be well.
func IsUntrusted(err error) bool {
	var verification *tls.CertificateVerificationError
	var remote *net.OpError
	return errors.Is(err, errFiles) || errors.As(err, &verification) || errors.As(err, &remote) && remote.Op == "remote error"
}

// Certified is a handler that changes something only for clients with a certificate of
// this cluster's servers. Probes and metrics are for all that reach it.
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
