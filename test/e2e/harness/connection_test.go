package harness

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// TestRequestByTLS: a request to a real server sends the given name without resolving it, and
// requires a certificate of the given authority.
func TestRequestByTLS(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not there: the requests of the end-to-end tests are made with it.")
	}
	ca, cert, key, err := Certificate("shop.example.com")
	if err != nil {
		t.Fatal(err)
	}
	other, _, _, err := Certificate("shop.example.com")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.TLS.ServerName + r.URL.Path)) //nolint:gosec // The response is read by this test, not by a browser.
	}))
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	host, text, err := net.SplitHostPort(srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}

	// Newer versions of Python verify strictly by default: do the same on older ones.
	strict := strings.Replace(connectionScript, "return ssl.create_default_context(cadata=ca)",
		"context = ssl.create_default_context(cadata=ca)\n    context.verify_flags |= ssl.VERIFY_X509_STRICT\n    return context", 1)
	if strict == connectionScript {
		t.Fatal("This test changes a line that is not there any more.")
	}
	cases := map[string]struct {
		reason string
		tls    TLS
		want   string
		fails  string
	}{
		"Trusted":     {reason: "The server is found at its address, under its name.", tls: TLS{CA: ca, Name: "shop.example.com"}, want: "shop.example.com/cart"},
		"Distrusted":  {reason: "Another authority is not this one.", tls: TLS{CA: other, Name: "shop.example.com"}, fails: "CERTIFICATE_VERIFY_FAILED"},
		"AnotherName": {reason: "A certificate of another name is refused.", tls: TLS{CA: ca, Name: "bank.example.com"}, fails: "Hostname mismatch"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ask, err := json.Marshal(Request{Host: host, Port: port, TLS: &tc.tls, Method: "GET", Path: "/cart"})
			if err != nil {
				t.Fatal(err)
			}
			var out, errs bytes.Buffer
			cmd := exec.CommandContext(t.Context(), "python3", "-c", strict+requestScript)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(ask), &out, &errs
			err = cmd.Run()
			if tc.fails != "" {
				if err == nil || !strings.Contains(errs.String(), tc.fails) {
					t.Errorf("%s\nwant %s, got %v: %s", tc.reason, tc.fails, err, errs.String())
				}
				return
			}
			var a Answer
			if err != nil || json.Unmarshal(out.Bytes(), &a) != nil || a.Body != tc.want {
				t.Errorf("%s\nwant %s, got %v: %s%s", tc.reason, tc.want, err, out.String(), errs.String())
			}
		})
	}
}
