package manager

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/storeplane/storeplane/internal/instance/control"
	"github.com/storeplane/storeplane/internal/instance/control/controltest"
	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
)

// TestServe: a manager listens with TLS only, answers probes without a certificate, and refuses
// requests of a client without a certificate of this cluster, whatever password it sends.
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
	anonymous := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // as the kubelet does
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
	eventually(t, "the manager answers a probe", func() bool { return ask(anonymous, http.MethodGet, "https://"+c.Address+"/healthz") == http.StatusOK })
	cases := map[string]struct {
		reason string
		client http.RoundTripper
		base   string
		want   int
	}{
		"Sibling":  {reason: "A server of this cluster is heard.", client: by.Transport(), base: "https://", want: http.StatusBadRequest},
		"Password": {reason: "The password alone is not enough.", client: anonymous, base: "https://", want: http.StatusForbidden},
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

// free returns an address of this host on which nothing listens.
func free(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

// TestPatroniOf: while servers are replaced, some still run without TLS.
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

// TestLeadsUntrusted: it is an error if the holder of the lock is not trusted, or cannot be reached
// because this server's certificate is missing: if that counted as no primary, this server would be
// promoted.
func TestLeadsUntrusted(t *testing.T) {
	const name = setName + ".shop.svc"
	signer := controltest.Authority(t)
	fake, _ := newServers(t)
	primary := httptest.NewUnstartedServer(fake)
	primary.TLS = controltest.Write(t, t.TempDir(), signer, name).Server()
	primary.StartTLS()
	defer primary.Close()
	cases := map[string]struct {
		reason string
		files  func(dir string)
		at     string
		leads  bool
		fails  bool
	}{
		"Trusted":  {reason: "It answers that it leads.", files: func(dir string) { controltest.Write(t, dir, signer, name) }, at: primary.URL, leads: true},
		"Stranger": {reason: "The authority was replaced, and one of the two has not heard of it.", files: func(dir string) { controltest.Write(t, dir, controltest.Authority(t), name) }, at: primary.URL, fails: true},
		"NoFiles":  {reason: "The own certificate is missing.", files: func(string) {}, at: primary.URL, fails: true},
		"Gone":     {reason: "A lock may outlive its holder.", files: func(dir string) { controltest.Write(t, dir, signer, name) }, at: "https://127.0.0.1:1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a, config := installed(t)
			lock := &corev1.ConfigMap{ObjectMeta: named(setName + "-leader")}
			lock.Annotations = map[string]string{leaderAnnotation: setName + "-0"}
			a.put("configmaps", lock)
			c := configOf(t, setName+"-1", primary.URL)
			tc.files(c.ControlDir)
			m, err := New(c, config, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			remote := m.remote
			m.remote = func(string) *patroni.Client { return remote(tc.at) }
			leads, err := (&member{Manager: m}).leads(t.Context(), &ground{})
			if leads != tc.leads || (err != nil) != tc.fails {
				t.Errorf("%s\nleads(...): got %t, %v", tc.reason, leads, err)
			}
		})
	}
}
