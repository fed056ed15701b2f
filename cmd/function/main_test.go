package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

// envMain makes the test binary run as the command itself.
const envMain = "STOREPLANE_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(envMain) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// output is the path of the file to which a command logs. What it logged before a response is in
// the file when the response arrives.
type output string

func (o output) String() string {
	b, err := os.ReadFile(string(o))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// start starts the command with flags, and kills it when the test ends.
func start(t *testing.T, flags ...string) output {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	cmd := command(t, flags...)
	cmd.Stderr = out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return output(out.Name())
}

func command(t *testing.T, flags ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], flags...)
	cmd.Env = append(os.Environ(), envMain+"=1")
	return cmd
}

// freeAddress returns an address of the loopback interface with a free port, which no other program
// is expected to take before it is used.
func freeAddress(t *testing.T) string {
	t.Helper()
	lis, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lis.Close() }()
	return lis.Addr().String()
}

// authority signs certificates for a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	a.cert, a.key, a.pem, _ = issue(t, nil, &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

func issue(t *testing.T, by *authority, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey, []byte, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.Subject = pkix.Name{CommonName: "test"}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := template, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
}

func leaf() *x509.Certificate {
	return &x509.Certificate{
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
}

// writeServer writes the files of a server into a folder, as Crossplane's Secret is mounted.
func (a *authority) writeServer(t *testing.T, dir string) {
	t.Helper()
	_, _, crt, key := issue(t, a, leaf())
	for name, b := range map[string][]byte{"tls.crt": crt, "tls.key": key, "ca.crt": a.pem} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// dial connects to a server of this authority, with a client certificate of another authority, or
// without one.
func (a *authority) dial(t *testing.T, address string, by *authority) *grpc.ClientConn {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(a.pem)
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	if by != nil {
		_, _, crt, key := issue(t, by, leaf())
		pair, err := tls.X509KeyPair(crt, key)
		if err != nil {
			t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestServesMutualTLS(t *testing.T) {
	ca, stranger := newAuthority(t), newAuthority(t)
	dir := t.TempDir()
	ca.writeServer(t, dir)
	address, metrics := freeAddress(t), freeAddress(t)
	out := start(t, "--address", address, "--tls-certs-dir", dir, "--metrics-address", metrics, "--debug")
	dial := func(by *authority) *grpc.ClientConn { return ca.dial(t, address, by) }
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()

	conn := dial(ca)
	h, err := healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{}, grpc.WaitForReady(true))
	if err != nil || h.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Fatalf("health: %v, %v\n%s", h, err, out)
	}
	rsp, err := fnv1.NewFunctionRunnerServiceClient(conn).RunFunction(ctx, helloRequest(t))
	if err != nil || len(rsp.GetDesired().GetResources()) == 0 {
		t.Fatalf("a client with a certificate of the CA is served: %v, %v", rsp, err)
	}

	for reason, by := range map[string]*authority{"without a certificate": nil, "with another CA's": stranger} {
		if _, err := healthv1.NewHealthClient(dial(by)).Check(ctx, &healthv1.HealthCheckRequest{}); err == nil {
			t.Errorf("a client %s must be refused", reason)
		}
	}

	got := get(t, "http://"+metrics+"/metrics")
	for _, want := range []string{`storeplane_function_call_duration_seconds_count{kind="WebApp",result="ok"} 1`, "storeplane_function_calls_running 0", "storeplane_function_calls_limit 300"} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("metrics: want %q, got:\n%s", want, got)
		}
	}
	if !strings.Contains(out.String(), `"kind": "WebApp", "namespace": "team", "name": "hello"`) {
		t.Errorf("the log must name the claim, got:\n%s", out)
	}
}

// TestRenewsCertificates: the command need not be restarted when Crossplane's certificate authority
// is replaced.
func TestRenewsCertificates(t *testing.T) {
	before, after := newAuthority(t), newAuthority(t)
	dir := t.TempDir()
	before.writeServer(t, dir)
	address := freeAddress(t)
	out := start(t, "--address", address, "--tls-certs-dir", dir, "--metrics-address", "")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	check := func(ca *authority, opts ...grpc.CallOption) error {
		_, err := healthv1.NewHealthClient(ca.dial(t, address, ca)).Check(ctx, &healthv1.HealthCheckRequest{}, opts...)
		return err
	}
	if err := check(before, grpc.WaitForReady(true)); err != nil {
		t.Fatalf("the first certificates: %v\n%s", err, out)
	}

	if err := os.WriteFile(filepath.Join(dir, "tls.key"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := check(before); err != nil {
		t.Errorf("while the files do not fit each other those of before hold: %v", err)
	}

	after.writeServer(t, dir)
	if err := check(after); err != nil {
		t.Errorf("the new certificates are used for new connections: %v", err)
	}
	if err := check(before); err == nil {
		t.Error("a client of the old authority must be refused")
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rsp.Body.Close() }()
	b, err := io.ReadAll(rsp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestRefusesToServeOpenly(t *testing.T) {
	cmd := command(t, "--address", freeAddress(t), "--metrics-address", "")
	cmd.Env = append(cmd.Env, "TLS_SERVER_CERTS_DIR=")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "cannot serve without certificates") {
		t.Errorf("without certificates it must not serve unless --insecure says so: %v\n%s", err, out)
	}
}
