// Package control is the TLS of what the servers of a DatabaseCluster ask each other for: of
// Patroni's API and of the instance managers'. All have one certificate, by which they are a
// server and a client, of an authority that signs for nothing else: who has it is a server of
// this cluster.
package control

import (
	"bytes"
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

const idleTimeout = 90 * time.Second

// TLS by the files of a folder. They are read for each connection, so that one that is
// renewed needs no restart.
type TLS struct {
	// Dir has the files.
	Dir string

	// Name that servers' certificates bear.
	Name string
}

// Server is how to listen. A client may come without a certificate; one that comes with
// another authority's is turned away.
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

// Mounted says whether a certificate, in DER, is the one that is mounted.
func (t TLS) Mounted(der []byte) (bool, error) {
	own, _, err := t.read()
	if err != nil {
		return false, err
	}
	return bytes.Equal(own.Certificate[0], der), nil
}

func (t TLS) read() (tls.Certificate, *x509.CertPool, error) {
	own, err := tls.LoadX509KeyPair(filepath.Join(t.Dir, FileCertificate), filepath.Join(t.Dir, FileKey))
	if err != nil {
		return own, nil, fmt.Errorf("cannot read the certificate of this cluster's servers: %w", err)
	}
	data, err := os.ReadFile(filepath.Join(t.Dir, FileAuthority))
	if err != nil {
		return own, nil, fmt.Errorf("cannot read the authority of this cluster's servers: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return own, nil, errors.New("cannot read the authority of this cluster's servers: it is no certificate in PEM")
	}
	return own, pool, nil
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
