// Package controltest creates the certificates of a cluster's servers for tests.
package controltest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/storeplane/storeplane/internal/instance/control"
	"github.com/storeplane/storeplane/internal/pki"
)

// Authority returns the authority of a cluster.
func Authority(t testing.TB) pki.Pair {
	t.Helper()
	p, err := pki.Authority("orders-control", pki.Pair{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Write writes the files of a server into a directory, with a certificate for a name that the
// signer has signed.
func Write(t testing.TB, dir string, signer pki.Pair, name string) control.TLS {
	t.Helper()
	p, err := pki.Peer(signer, "server", []string{name}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string]string{control.FileCertificate: p.Certificate, control.FileKey: p.Key, control.FileAuthority: signer.Certificate} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return control.TLS{Dir: dir, Name: name}
}
