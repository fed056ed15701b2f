package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// validity is the lifetime of all certificates, which is longer than that of any test cluster.
const validity = 10 * 365 * 24 * time.Hour

// leaf is a certificate that the cluster's authority signs.
type leaf struct {
	name   string // of its files
	user   string
	groups []string
	hosts  []string // names and IP addresses, only for a server
}

// leaves returns the certificates of a cluster. The API server takes a client's common name as
// its user and the organizations as its groups.
func leaves(nodes ...node) []leaf {
	out := []leaf{
		{name: "apiserver", user: "kube-apiserver", hosts: []string{
			"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc." + clusterDomain,
			"localhost", "127.0.0.1", hostAddress, serviceAddress,
		}},
		{name: "apiserver-kubelet-client", user: "kube-apiserver-kubelet-client", groups: []string{"system:masters"}},
		{name: "admin", user: "admin", groups: []string{"system:masters"}},
		{name: "controller-manager", user: "system:kube-controller-manager"},
		{name: "scheduler", user: "system:kube-scheduler"},
		{name: "proxy", user: "system:kube-proxy"},
	}
	for _, n := range nodes {
		out = append(out, leaf{
			name: kubeletCert(n), user: "system:node:" + n.Name, groups: []string{"system:nodes"},
			hosts: []string{n.Name, n.Address, "127.0.0.1"},
		})
	}
	return out
}

func kubeletCert(n node) string { return "kubelet-" + n.Name }

// kubeconfigs returns the paths of the kubeconfigs, by the name of the certificate in each.
func (c *cluster) kubeconfigs() map[string]string {
	return map[string]string{
		"admin":              c.kubeconfig(),
		"controller-manager": c.path("config", "controller-manager.kubeconfig"),
		"scheduler":          c.path("config", "scheduler.kubeconfig"),
		"proxy":              c.path("config", "proxy.kubeconfig"),
		kubeletCert(c.node):  c.path("config", "kubelet.kubeconfig"),
	}
}

func (c *cluster) certPath(name string) string { return c.path("pki", name+".crt") }
func (c *cluster) keyPath(name string) string  { return c.path("pki", name+".key") }

// makePKI creates the keys and certificates that do not exist yet, and writes all kubeconfigs. It
// returns a note for the user.
func (c *cluster) makePKI() (string, error) {
	if err := os.MkdirAll(c.path("pki"), 0o700); err != nil {
		return "", fmt.Errorf("cannot make the folder of keys: %w", err)
	}
	made := 0
	ca, caKey, err := c.authority()
	if err != nil {
		return "", err
	}
	if !exists(c.keyPath("service-accounts")) {
		if err := c.serviceAccountKey(); err != nil {
			return "", err
		}
	}
	for _, l := range leaves(c.node) {
		if exists(c.certPath(l.name)) && exists(c.keyPath(l.name)) {
			continue
		}
		if err := c.sign(l, ca, caKey); err != nil {
			return "", fmt.Errorf("cannot make the certificate of %s: %w", l.name, err)
		}
		made++
	}
	for name, path := range c.kubeconfigs() {
		if err := c.writeKubeconfig(name, path); err != nil {
			return "", err
		}
	}
	if made == 0 {
		return "all there", nil
	}
	return fmt.Sprintf("made %d", made), nil
}

// authority reads the cluster's own certificate authority, or creates it if it does not exist.
func (c *cluster) authority() (*x509.Certificate, *ecdsa.PrivateKey, error) {
	if exists(c.certPath("ca")) && exists(c.keyPath("ca")) {
		return readPair(c.certPath("ca"), c.keyPath("ca"))
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make the authority's key: %w", err)
	}
	t, err := template("storeplane-test-cluster", nil)
	if err != nil {
		return nil, nil, err
	}
	t.IsCA, t.BasicConstraintsValid = true, true
	t.KeyUsage |= x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot make the authority's certificate: %w", err)
	}
	if err := writePair(c.certPath("ca"), c.keyPath("ca"), der, key); err != nil {
		return nil, nil, err
	}
	return readPair(c.certPath("ca"), c.keyPath("ca"))
}

func (c *cluster) sign(l leaf, ca *x509.Certificate, caKey *ecdsa.PrivateKey) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	t, err := template(l.user, l.groups)
	if err != nil {
		return err
	}
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(l.hosts) > 0 {
		t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	for _, h := range l.hosts {
		if ip := net.ParseIP(h); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, h)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, t, ca, key.Public(), caKey)
	if err != nil {
		return err
	}
	return writePair(c.certPath(l.name), c.keyPath(l.name), der, key)
}

// serviceAccountKey creates the key pair with which service account tokens are signed.
func (c *cluster) serviceAccountKey() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("cannot make the service accounts' key: %w", err)
	}
	pub, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("cannot encode the service accounts' key: %w", err)
	}
	if err := writeFile(c.path("pki", "service-accounts.pub"), encode("PUBLIC KEY", pub), 0o644); err != nil {
		return err
	}
	return writeKey(c.keyPath("service-accounts"), key)
}

func template(user string, groups []string) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("cannot draw a serial number: %w", err)
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: user, Organization: groups},
		// The clock of a machine that was restored from an image may be behind.
		NotBefore: now.Add(-24 * time.Hour),
		NotAfter:  now.Add(validity),
		KeyUsage:  x509.KeyUsageDigitalSignature,
	}, nil
}

func writePair(certPath, keyPath string, der []byte, key *ecdsa.PrivateKey) error {
	if err := writeKey(keyPath, key); err != nil {
		return err
	}
	return writeFile(certPath, encode("CERTIFICATE", der), 0o644)
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	// The format is SEC 1, because kube-apiserver does not read every key in PKCS #8.
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("cannot encode key %s: %w", path, err)
	}
	return writeFile(path, encode("EC PRIVATE KEY", der), 0o600)
}

func readPair(certPath, keyPath string) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	certDER, err := decode(certPath)
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(certDER)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read certificate %s: %w", certPath, err)
	}
	keyDER, err := decode(keyPath)
	if err != nil {
		return nil, nil, err
	}
	key, err := x509.ParseECPrivateKey(keyDER)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read key %s: %w", keyPath, err)
	}
	return cert, key, nil
}

func encode(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func decode(path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, err)
	}
	block, _ := pem.Decode(b)
	if block == nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, errors.New("it holds no PEM block"))
	}
	return block.Bytes, nil
}
