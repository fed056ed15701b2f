package manager

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/storeplane/storeplane/internal/instance/control"
	"github.com/storeplane/storeplane/internal/instance/control/controltest"
)

// TestServe: a manager listens with TLS alone, is probed without a certificate, and does
// nothing for who has none of this cluster's, whatever password that has.
func TestServe(t *testing.T) {
	_, api := newServers(t)
	_, good := installed(t)
	c := configOf(t, setName+"-0", api.URL)
	by := controltest.Write(t, c.ControlDir, controltest.Authority(t), control.Name(setName, "shop"))
	c.Address = free(t)
	m, err := New(c, good, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	run(t, m)
	anyone := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // as the kubelet does
	ask := func(client http.RoundTripper, method, base string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, base, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth("patroni", "rest")
		res, err := client.RoundTrip(req)
		if err != nil {
			return 0
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
	eventually(t, "the manager answers a probe", func() bool { return ask(anyone, http.MethodGet, "https://"+c.Address+"/healthz") == http.StatusOK })
	cases := map[string]struct {
		reason string
		client http.RoundTripper
		base   string
		want   int
	}{
		"Sibling":  {reason: "A server of this cluster is heard.", client: by.Transport(), base: "https://", want: http.StatusBadRequest},
		"Password": {reason: "The password alone is not enough.", client: anyone, base: "https://", want: http.StatusForbidden},
		"Plain":    {reason: "Nothing is read that was not encrypted.", client: &http.Transport{}, base: "http://", want: http.StatusBadRequest},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := ask(tc.client, http.MethodPost, tc.base+c.Address+"/fence"); got != tc.want {
				t.Errorf("%s: got %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

// free address of this host, which nothing listens at.
func free(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// TestShown: Patroni is told to reload while it shows another certificate than is mounted,
// and has time to.
func TestShown(t *testing.T) {
	dir, signer, start := t.TempDir(), controltest.Authority(t), time.Now()
	mount := func(version string) []byte {
		t.Helper()
		data := filepath.Join(dir, version)
		if err := os.Mkdir(data, 0o700); err != nil {
			t.Fatal(err)
		}
		controltest.Write(t, data, signer, "db")
		link := filepath.Join(dir, "..data")
		_ = os.Remove(link)
		if err := os.Symlink(version, link); err != nil {
			t.Fatal(err)
		}
		for _, f := range []string{control.FileCertificate, control.FileKey, control.FileAuthority} {
			_ = os.Remove(filepath.Join(dir, f))
			if err := os.Symlink(filepath.Join("..data", f), filepath.Join(dir, f)); err != nil {
				t.Fatal(err)
			}
		}
		return der(t, filepath.Join(data, control.FileCertificate))
	}
	s := shown{by: control.TLS{Dir: dir}}
	check := func(reason string, now []byte, after time.Duration, want bool) {
		t.Helper()
		if got := s.stale(now, start.Add(after)); got != want {
			t.Errorf("stale(...) after %s: got %t: %s", after, got, reason)
		}
	}
	check("There is no certificate to load.", []byte("x"), 0, false)
	one := mount("one")
	check("Patroni was not asked yet, or has no TLS.", nil, 0, false)
	check("It shows what is mounted.", one, 0, false)
	two := mount("two")
	check("It shows the old one.", one, time.Second, true)
	check("It has not had its turn.", one, 5*time.Second, false)
	check("It found another configuration in that turn.", one, 20*time.Second, true)
	check("It shows the new one.", two, 40*time.Second, false)
}

func der(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file) //nolint:gosec // the test's own
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(data)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert.Raw
}

// TestPatroniOf: while servers are replaced there are some from before they had TLS.
func TestPatroniOf(t *testing.T) {
	cases := map[string]struct {
		reason string
		pod    corev1.Pod
		want   string
	}{
		"TLS":       {reason: "Its pod has a certificate.", pod: corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: control.Volume}}}, Status: corev1.PodStatus{PodIP: "192.0.2.1"}}, want: "https://192.0.2.1:8008"},
		"Before":    {reason: "Its pod has none.", pod: corev1.Pod{Status: corev1.PodStatus{PodIP: "192.0.2.1"}}, want: "http://192.0.2.1:8008"},
		"NoAddress": {reason: "It has no address yet."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := patroniOf(&tc.pod); got != tc.want {
				t.Errorf("patroniOf(...): got %q, want %q: %s", got, tc.want, tc.reason)
			}
		})
	}
}
