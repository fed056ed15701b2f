//go:build e2e

package borders

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// commandsServers sends commands with the stolen password of a database's servers from the node, a
// client that no NetworkPolicy stops. Without a certificate of the servers' own authority nothing
// is changed, and nothing is served without TLS.
func commandsServers(ctx context.Context, n notes) error {
	if err := ready(ctx); err != nil {
		return err
	}
	if err := ground.world.AwaitReady(ctx, started, "DatabaseCluster", "own"); err != nil {
		return err
	}
	host := harness.Field(ground.world.Get("Pod", "own-postgresql-0"), "status", "podIP")
	patroni, manager := net.JoinHostPort(host, "8008"), net.JoinHostPort(host, "8009")
	credentials, err := secret(ctx, "own-credentials")
	if err != nil {
		return err
	}
	server, err := certificate(ctx, "own-control-tls")
	if err != nil {
		return err
	}
	stranger, err := certificate(ctx, "own-tls")
	if err != nil {
		return err
	}
	ask := asker{ctx: ctx, password: credentials["restapi-password"]}
	errs := []error{
		ask.refused("without a certificate", "https://"+patroni+"/restart", http.StatusForbidden, "client certificate required"),
		ask.refused("without a certificate", "https://"+patroni+"/failsafe", http.StatusForbidden, "client certificate required"),
		ask.refused("without a certificate", "https://"+patroni+"/switchover", http.StatusForbidden, "client certificate required"),
		ask.refused("without a certificate", "https://"+manager+"/release", http.StatusForbidden, "a certificate of this cluster's servers is needed"),
		ask.refused("without a certificate", "https://"+manager+"/fence", http.StatusForbidden, "a certificate of this cluster's servers is needed"),
		ask.unheard("with a certificate that clients see", stranger, "https://"+patroni+"/restart"),
		ask.unheard("with a certificate that clients see", stranger, "https://"+manager+"/fence"),
		ask.unheard("without TLS", nil, "http://"+patroni+"/restart"),
		ask.refused("without TLS", "http://"+manager+"/fence", http.StatusBadRequest, "HTTP request to an HTTPS server"),
	}
	n.Addf("%d attacks", len(errs))
	// The servers' own certificate is accepted.
	code, answer, err := ask.post(server, "https://"+patroni+"/reload")
	if err == nil && code >= http.StatusMultipleChoices {
		err = fmt.Errorf("a server of this cluster is refused: %d, %s", code, answer)
	}
	return errors.Join(append(errs, err)...)
}

// secret returns the data of a Secret in the tenant's namespace, read with the rights of the
// platform team.
func secret(ctx context.Context, name string) (map[string]string, error) {
	s, err := cluster.Get(ctx, "Secret", tenantNamespace, name)
	if err != nil {
		return nil, err
	}
	data, _, _ := unstructured.NestedStringMap(s.Object, "data")
	out := map[string]string{}
	for k, v := range data {
		text, err := base64.StdEncoding.DecodeString(v)
		if err != nil {
			return nil, fmt.Errorf("cannot read Secret %s: %w", name, err)
		}
		out[k] = string(text)
	}
	return out, nil
}

func certificate(ctx context.Context, name string) (*tls.Config, error) {
	values, err := secret(ctx, name)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair([]byte(values["tls.crt"]), []byte(values["tls.key"]))
	if err != nil {
		return nil, fmt.Errorf("cannot use Secret %s: %w", name, err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(values["ca.crt"]))
	return &tls.Config{
		MinVersion: tls.VersionTLS13, RootCAs: roots, ServerName: "own-postgresql." + tenantNamespace + ".svc",
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil },
	}, nil
}

// asker makes requests with the password of the servers.
type asker struct {
	ctx      context.Context //nolint:containedctx // The asker lives as long as one check.
	password string
}

func (a asker) post(by *tls.Config, url string) (int, string, error) {
	ctx, cancel := context.WithTimeout(a.ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		return 0, "", err
	}
	req.SetBasicAuth("patroni", a.password)
	transport := &http.Transport{TLSClientConfig: by}
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(req)
	if err != nil {
		return 0, "", err
	}
	answer, err := io.ReadAll(res.Body)
	return res.StatusCode, strings.TrimSpace(string(answer)), errors.Join(err, res.Body.Close())
}

// trusting returns a TLS configuration that accepts any server certificate, as an attacker's does.
func trusting(by *tls.Config) *tls.Config {
	out := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // An attacker verifies no certificate.
	if by != nil {
		out.GetClientCertificate = by.GetClientCertificate
	}
	return out
}

func (a asker) refused(how, url string, code int, words string) error {
	got, answer, err := a.post(trusting(nil), url)
	if err != nil {
		return fmt.Errorf("%s %s: %w", how, url, err)
	}
	if got != code || !strings.Contains(answer, words) {
		return fmt.Errorf("%s %s: got %d %q, want %d with %q", how, url, got, answer, code, words)
	}
	return nil
}

// unheard returns an error unless the server ends the connection without an answer.
func (a asker) unheard(how string, by *tls.Config, url string) error {
	code, answer, err := a.post(trusting(by), url)
	switch {
	case err == nil:
		return fmt.Errorf("%s %s: got %d %q, want no answer", how, url, code, answer)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%s %s: got %w, want that the connection is ended", how, url, err)
	}
	return nil
}

// exports connects to a database's server from the container of its exporter, as a program would that
// has taken the exporter over.
func exports(ctx context.Context, n notes) error {
	if err := ready(ctx); err != nil {
		return err
	}
	if err := ground.world.AwaitReady(ctx, started, "DatabaseCluster", "own"); err != nil {
		return err
	}
	as := func(user string) error {
		_, err := cluster.Exec(ctx, tenantNamespace, "own-postgresql-0", "metrics", nil, "psql", "-h", "/var/run/postgresql", "-U", user, "-d", "postgres", "-c", "SELECT count(*) FROM pg_stat_activity")
		return err
	}
	err := as("postgres")
	n.Addf("as the superuser: %v", err)
	switch {
	case err == nil:
		err = errors.New("the exporter connects as the superuser")
	case strings.Contains(err.Error(), "Peer authentication failed"):
		err = nil
	}
	return errors.Join(err, as("monitoring"))
}
