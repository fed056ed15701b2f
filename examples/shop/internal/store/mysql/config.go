package mysql

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/storeplane/storeplane/examples/shop/internal/store/engine"
)

// config returns the settings of a connection to the database at uri, whose parameters are those of
// MySQL's own connectors.
//
// The error never contains the URI or a part of it, since that contains a password.
func config(uri string) (*mysql.Config, error) {
	u, err := url.Parse(uri)
	if err != nil || u.Hostname() == "" || u.User.Username() == "" || len(u.Path) < 2 {
		return nil, errors.New("it cannot be parsed")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errors.New("its parameters cannot be parsed")
	}
	for name := range query {
		if name != "ssl-mode" && name != "ssl-ca" {
			return nil, errors.New("its parameters may be ssl-mode and ssl-ca")
		}
	}
	cfg := mysql.NewConfig()
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	cfg.Net, cfg.Addr = "tcp", net.JoinHostPort(u.Hostname(), port(u))
	cfg.DBName = u.Path[1:]
	if err := secure(cfg, query.Get("ssl-mode"), query.Get("ssl-ca"), u.Hostname()); err != nil {
		return nil, err
	}

	cfg.Timeout = engine.ConnectTimeout
	cfg.DialFunc = engine.Dialer().DialContext
	cfg.ConnectionAttributes = "program_name:" + engine.Application
	// What the driver would print is in the errors that it returns.
	cfg.Logger = &mysql.NopLogger{}
	cfg.ParseTime = true
	// A statement with values takes one exchange with the server instead of two.
	cfg.InterpolateParams = true
	cfg.Params = map[string]string{
		"time_zone": "'+00:00'",
		// Under the lock of a cart, each statement sees what the transaction before committed.
		"transaction_isolation": "'READ-COMMITTED'",
		// A statement whose client is gone stops waiting as soon as the next attempt does.
		"innodb_lock_wait_timeout": "4",
	}
	return cfg, nil
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return "3306"
}

// secure sets how the connection is encrypted and whom it trusts. As with MySQL's own clients, an
// authority without a mode means that it is verified. Without an authority, those of the system
// vouch for the server.
func secure(cfg *mysql.Config, mode, authority, host string) error {
	if mode == "" && authority != "" {
		mode = "VERIFY_CA"
	}
	var roots *x509.CertPool
	if authority != "" {
		roots = x509.NewCertPool()
		pem, err := os.ReadFile(authority)
		if err != nil || !roots.AppendCertsFromPEM(pem) {
			return errors.New("its ssl-ca is not a readable file of certificates in PEM")
		}
	}
	unverified := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true} //nolint:gosec // what the mode asks for
	switch strings.ToUpper(mode) {
	case "DISABLED":
	case "", "PREFERRED":
		cfg.TLS, cfg.AllowFallbackToPlaintext = unverified, true
	case "REQUIRED":
		cfg.TLS = unverified
	case "VERIFY_CA":
		cfg.TLS = unverified
		cfg.TLS.VerifyConnection = func(state tls.ConnectionState) error { return verifyChain(state, roots) }
	case "VERIFY_IDENTITY":
		cfg.TLS = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: host}
	default:
		return errors.New("its ssl-mode should be DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY")
	}
	return nil
}

// verifyChain verifies who issued the server's certificate, and not the name in it.
func verifyChain(state tls.ConnectionState, roots *x509.CertPool) error {
	between := x509.NewCertPool()
	for _, c := range state.PeerCertificates[1:] {
		between.AddCert(c)
	}
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between})
	return err
}
