package control_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/storeplane/storeplane/internal/instance/control"
	"github.com/storeplane/storeplane/internal/instance/control/controltest"
	"github.com/storeplane/storeplane/internal/pki"
)

// serve runs a server until the test ends, and returns its URL.
func serve(t *testing.T, by control.TLS) string {
	t.Helper()
	server := httptest.NewUnstartedServer(control.Certified(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "done")
	})))
	server.TLS = by.Server()
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

// TestTLS: only a server of the same cluster may change something, and it connects only to servers
// of that cluster.
func TestTLS(t *testing.T) {
	const name = "orders-postgresql.shop.svc"
	own, other := controltest.Authority(t), controltest.Authority(t)
	at := serve(t, controltest.Write(t, t.TempDir(), own, name))
	cases := map[string]struct {
		reason string
		client http.RoundTripper
		method string
		code   int
		fails  string
	}{
		"Sibling": {reason: "Servers of a cluster ask each other by address.", client: controltest.Write(t, t.TempDir(), own, name).Transport(), method: http.MethodPost, code: http.StatusOK},
		"Probe": {reason: "The kubelet has no certificate and verifies none.", method: http.MethodGet, code: http.StatusOK,
			client: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}, //nolint:gosec // as the kubelet does
		"NoCertificate": {reason: "Who has none changes nothing.", method: http.MethodPost, code: http.StatusForbidden,
			client: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}, //nolint:gosec // as an attacker does
		"Stranger":     {reason: "A server of another cluster does not speak to this one.", client: controltest.Write(t, t.TempDir(), other, name).Transport(), method: http.MethodPost, fails: "unknown authority"},
		"OtherName":    {reason: "Nor is what bears another name taken for one.", client: control.TLS{Dir: controltest.Write(t, t.TempDir(), own, name).Dir, Name: "sales-postgresql.shop.svc"}.Transport(), method: http.MethodPost, fails: "not sales-postgresql.shop.svc"},
		"NoFiles":      {reason: "What is missing is said.", client: control.TLS{Dir: t.TempDir(), Name: name}.Transport(), method: http.MethodPost, fails: "cannot use the certificate of this cluster's servers"},
		"WithoutTLS":   {reason: "Nothing answers without TLS.", client: &http.Transport{}, method: http.MethodGet, code: http.StatusBadRequest},
		"HostileTrust": {reason: "A certificate of another authority is turned away, not ignored.", client: hostile(t, other, name), method: http.MethodPost, fails: "tls:"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			url := at
			if name == "WithoutTLS" {
				url = strings.Replace(at, "https://", "http://", 1)
			}
			req, err := http.NewRequestWithContext(t.Context(), tc.method, url, nil)
			if err != nil {
				t.Fatal(err)
			}
			res, err := tc.client.RoundTrip(req)
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("%s: got %v, want an error with %q", tc.reason, err, tc.fails)
				}
				if !control.IsUntrusted(err) || errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s: %v passes for a server that is gone", tc.reason, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			_ = res.Body.Close()
			if res.StatusCode != tc.code {
				t.Errorf("%s: got %d, want %d", tc.reason, res.StatusCode, tc.code)
			}
		})
	}
}

// hostile returns a client that trusts any server and presents a certificate of another authority.
func hostile(t *testing.T, signer pki.Pair, name string) http.RoundTripper {
	t.Helper()
	p, err := pki.Peer(signer, "server", []string{name}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair([]byte(p.Certificate), []byte(p.Key))
	if err != nil {
		t.Fatal(err)
	}
	show := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	return &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, GetClientCertificate: show}} //nolint:gosec // as an attacker does
}

// TestRenewal: a renewed certificate, or another authority, is used from the next connection on.
func TestRenewal(t *testing.T) {
	const name = "orders-postgresql.shop.svc"
	dir := t.TempDir()
	by := controltest.Write(t, dir, controltest.Authority(t), name)
	at := serve(t, by)
	post := func() error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at, nil)
		if err != nil {
			return err
		}
		transport := by.Transport()
		defer transport.CloseIdleConnections()
		res, err := transport.RoundTrip(req)
		if err != nil {
			return err
		}
		return res.Body.Close()
	}
	if err := post(); err != nil {
		t.Fatalf("before: %v", err)
	}
	controltest.Write(t, dir, controltest.Authority(t), name)
	if err := post(); err != nil {
		t.Errorf("after: %v", err)
	}
}

// TestSilent: a server that does not answer the TLS handshake does not block a connection for ever.
func TestSilent(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	transport := controltest.Write(t, t.TempDir(), controltest.Authority(t), "db").Transport()
	done := make(chan error, 1)
	go func() {
		_, err := transport.DialTLSContext(context.WithoutCancel(t.Context()), "tcp", listener.Addr().String())
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil || control.IsUntrusted(err) {
			t.Errorf("DialTLSContext(...): got %v, want that it took too long", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("DialTLSContext(...) does not end")
	}
}

// TestScheme: the scheme of a pod's APIs follows from its specification.
func TestScheme(t *testing.T) {
	with := corev1.PodSpec{Volumes: []corev1.Volume{{Name: "data"}, {Name: control.Volume}}}
	if got := control.Scheme(&with); got != "https" {
		t.Errorf("Scheme(...) of a pod with a certificate: got %q, want https", got)
	}
	if got := control.Scheme(&corev1.PodSpec{}); got != "http" {
		t.Errorf("Scheme(...) of a pod from before: got %q, want http", got)
	}
}
