package mysqld

import (
	"context"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/storeplane/storeplane/internal/instance/mysql/server"
)

// Initialize makes an empty database in the data directory, with the user as which the other servers
// connect. It takes some seconds. If it fails the data directory does not exist.
func Initialize(ctx context.Context, program string, f Files, o Options, log io.Writer) error {
	folder, err := f.prepare()
	if err != nil {
		return err
	}
	statements, err := replicationUser(o.PeerCertificate)
	if err != nil {
		return err
	}
	script := filepath.Join(o.RunDir, "initialize.sql")
	if err := os.WriteFile(script, []byte(strings.Join(statements, ";\n")+";\n"), 0o600); err != nil {
		return fmt.Errorf("cannot write the statements of a new database: %w", err)
	}
	defer func() { _ = os.Remove(script) }()
	cmd := exec.CommandContext(ctx, program, append(o.base(folder), "--tmpdir=/tmp", "--initialize-insecure", "--init-file="+script)...) //nolint:gosec // the program is part of the image
	said := &lastError{to: log}
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Run(); err != nil {
		if why := said.text(); why != "" {
			return fmt.Errorf("cannot initialize a database: %w: %s", err, why)
		}
		return fmt.Errorf("cannot initialize a database: %w", err)
	}
	return f.adopt(folder)
}

// replicationUser returns the statements that bring about the user as which servers connect to each
// other. It has no password: its certificate has to be that of this cluster's servers.
func replicationUser(certificateFile string) ([]string, error) {
	data, err := os.ReadFile(certificateFile) //nolint:gosec // a flag of the pod
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificate of this cluster's servers: %w", err)
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("cannot read the certificate of this cluster's servers: %s is not PEM", certificateFile)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificate of this cluster's servers: %w", err)
	}
	subject, err := oneLine(certificate.RawSubject)
	if err != nil {
		return nil, err
	}
	issuer, err := oneLine(certificate.RawIssuer)
	if err != nil {
		return nil, err
	}
	who, require := "'"+server.User+"'@'%'", fmt.Sprintf("REQUIRE SUBJECT %s AND ISSUER %s", quote(subject), quote(issuer))
	return []string{
		// A backup has the user, with the certificate of the cluster that it was made of.
		"CREATE USER IF NOT EXISTS " + who, "ALTER USER " + who + " " + require,
		"GRANT REPLICATION SLAVE, CONNECTION_ADMIN, BACKUP_ADMIN, GROUP_REPLICATION_STREAM ON *.* TO " + who,
	}, nil
}

// attributes are the short names that OpenSSL prints for those parts of a name that certificates of
// this cluster have.
var attributes = map[string]string{"2.5.4.3": "CN", "2.5.4.5": "serialNumber", "2.5.4.10": "O", "2.5.4.11": "OU"}

// oneLine prints the name of a certificate as MySQL compares it, such as /O=shop/CN=orders
// (https://dev.mysql.com/doc/refman/9.7/en/create-user.html#create-user-tls).
func oneLine(raw []byte) (string, error) {
	var name []asn1.RawValue
	if rest, err := asn1.Unmarshal(raw, &name); err != nil || len(rest) > 0 {
		return "", fmt.Errorf("cannot read a name in the certificate of this cluster's servers: %w", err)
	}
	var b strings.Builder
	for _, set := range name {
		var attribute struct {
			Type  asn1.ObjectIdentifier
			Value string
		}
		if _, err := asn1.Unmarshal(set.Bytes, &attribute); err != nil {
			return "", fmt.Errorf("cannot read a name in the certificate of this cluster's servers: %w", err)
		}
		short, known := attributes[attribute.Type.String()]
		if !known {
			return "", fmt.Errorf("cannot use the certificate of this cluster's servers: its name has attribute %s", attribute.Type)
		}
		b.WriteString("/" + short + "=" + attribute.Value)
	}
	return b.String(), nil
}

// quote returns a string literal.
func quote(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(text) + "'"
}
