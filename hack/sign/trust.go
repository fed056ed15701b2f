package main

import (
	"archive/tar"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"github.com/sigstore/sigstore/pkg/cryptoutils"
	sigstore "github.com/sigstore/sigstore/pkg/tuf"
	"github.com/theupdateframework/go-tuf"
	client "github.com/theupdateframework/go-tuf/client/leveldbstore"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// trustedFor is how long a trust root is valid.
const trustedFor = 10 * 365 * 24 * time.Hour

// trustRootName is the name of the ConfigMap of a trust root, and trustRootKey its key.
// trust-root-patch.yaml of the release mounts it.
const (
	trustRootName = "storeplane-trust-root"
	trustRootKey  = "root.tar"
)

// trustRootDir is where Crossplane reads its trust root, below its cache of packages
// (cmd/crossplane/core/core.go of Crossplane 2.4).
const trustRootDir = ".sigstore/root"

// writeTrust writes what is needed to verify signatures: the public key, and, if the key signs the
// log's entries itself, the trust root by which Crossplane accepts such entries.
func (s *signer) writeTrust(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, publicKeyFile), s.pem, 0o644); err != nil {
		return err
	}
	path := filepath.Join(dir, trustRootFile)
	if s.log != nil {
		if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	}
	work, err := os.MkdirTemp("", "storeplane-trust-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	if err := s.trustRoot(filepath.Join(work, trustRootDir), time.Now()); err != nil {
		return fmt.Errorf("cannot write the trust root: %w", err)
	}
	var packed bytes.Buffer
	t := tar.NewWriter(&packed)
	if err := errors.Join(addTree(t, work), t.Close()); err != nil {
		return err
	}
	manifest, err := yaml.Marshal(&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Name: trustRootName, Namespace: "crossplane-system"},
		BinaryData: map[string][]byte{trustRootKey: packed.Bytes()},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(path, manifest, 0o644)
}

// trustRoot writes a folder like the one that cosign initialize leaves. Crossplane reads it instead
// of fetching one from Sigstore. It trusts the signer's key as the transparency log, and, since
// Crossplane requires them, a certificate authority and a certificate log whose private keys are
// discarded.
func (s *signer) trustRoot(dir string, at time.Time) error {
	expires := at.Add(trustedFor)
	authority, logs, err := unused(at, expires)
	if err != nil {
		return err
	}
	targets := []struct {
		name  string
		usage sigstore.UsageKind
		data  []byte
	}{
		{name: "fulcio.crt.pem", usage: sigstore.Fulcio, data: authority},
		{name: "ctfe.pub", usage: sigstore.CTFE, data: logs},
		{name: "rekor.pub", usage: sigstore.Rekor, data: s.pem},
	}
	files := map[string][]byte{}
	for _, t := range targets {
		files[t.name] = t.data
	}
	store := tuf.MemoryStore(nil, files)
	repo, err := tuf.NewRepo(store)
	if err != nil {
		return err
	}
	if err := repo.Init(false); err != nil {
		return err
	}
	for _, role := range []string{"root", "targets", "snapshot", "timestamp"} {
		if _, err := repo.GenKeyWithExpires(role, expires); err != nil {
			return err
		}
	}
	for _, t := range targets {
		custom, err := json.Marshal(map[string]any{"sigstore": map[string]any{"usage": t.usage, "status": sigstore.Active}})
		if err != nil {
			return err
		}
		if err := repo.AddTargetWithExpires(t.name, custom, expires); err != nil {
			return err
		}
		path := filepath.Join(dir, "targets", t.name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, t.data, 0o644); err != nil {
			return err
		}
	}
	if err := errors.Join(repo.SnapshotWithExpires(expires), repo.TimestampWithExpires(expires), repo.Commit()); err != nil {
		return err
	}
	meta, err := store.GetMeta()
	if err != nil {
		return err
	}
	return writeMeta(filepath.Join(dir, "tuf.db"), meta)
}

func writeMeta(path string, meta map[string]json.RawMessage) (err error) {
	db, err := client.FileLocalStore(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for _, role := range []string{"root.json", "targets.json", "snapshot.json", "timestamp.json"} {
		if err := db.SetMeta(role, meta[role]); err != nil {
			return err
		}
	}
	return nil
}

// unused returns a certificate authority and the public key of a certificate log. Their private
// keys are not kept.
func unused(from, to time.Time) (authority, logs []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	cert := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "unused"},
		NotBefore:             from,
		NotAfter:              to,
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	logs, err = cryptoutils.MarshalPublicKeyToPEM(key.Public())
	return cryptoutils.PEMEncode(cryptoutils.CertificatePEMType, der), logs, err
}
