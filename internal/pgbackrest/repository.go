package pgbackrest

import (
	"fmt"
	"net"
	"net/url"
	"path"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/pki"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
)

// Port is the port on which pgBackRest's server listens.
const Port = 8432

// Name is the name in the certificate by which servers authenticate each other and the pods that
// create backups.
const Name = "storeplane-backup"

// Files in backup.RepositoryDir: pgBackRest's configuration, and that certificate with its key
// and its authority.
const (
	FileConfig      = "pgbackrest.conf"
	FileAuthority   = pki.KeyAuthority
	FileCertificate = corev1.TLSCertKey
	FileKey         = corev1.TLSPrivateKeyKey
)

// scratch is pgBackRest's own folder in a pod, on the disk of the node.
const scratch = "/tmp/pgbackrest"

// SpoolDir is the folder of the notes of what was pushed. Archiving has a folder below it for each
// destination.
const SpoolDir = scratch + "/spool"

// A Repository is where the backups of one cluster are stored.
type Repository struct {
	Destination backupv1.Destination

	// Namespace and Name are those of the DatabaseCluster, after which the folder is named.
	Namespace, Name string

	// Host serves a volume to pods that do not mount it, or is "".
	Host string

	// Encrypted means that the repository is written and read with a passphrase.
	Encrypted bool
}

// Path returns the path of the repository: in the bucket, or where the volume is mounted.
func (r Repository) Path() string {
	folder := backup.Folder(r.Destination.Prefix, r.Namespace, r.Name)
	if r.Destination.Type == backupv1.Volume {
		return path.Join(backup.VolumeDir, folder)
	}
	return "/" + folder
}

// Config returns the file pgbackrest.conf for reading and writing the repository. It contains no
// secrets. It fails if Check does.
func (r Repository) Config() (string, error) {
	if err := r.Check(); err != nil {
		return "", err
	}
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	p("[global]")
	d := r.Destination
	switch d.Type {
	case backupv1.Volume:
		p("repo1-type=posix")
		if r.Host != "" {
			p("repo1-host=%s", r.Host)
			p("repo1-host-type=tls")
			p("repo1-host-port=%d", Port)
			p("repo1-host-ca-file=%s", file(FileAuthority))
			p("repo1-host-cert-file=%s", file(FileCertificate))
			p("repo1-host-key-file=%s", file(FileKey))
		}
	case backupv1.S3:
		region := d.Region
		if region == "" {
			region = "us-east-1"
		}
		p("repo1-type=s3")
		p("repo1-s3-bucket=%s", d.Bucket)
		p("repo1-s3-region=%s", region)
		if d.Endpoint == "" {
			p("repo1-s3-endpoint=s3.%s.amazonaws.com", region)
			break
		}
		p("repo1-s3-endpoint=%s", host(d.Endpoint))
		p("repo1-s3-uri-style=path")
		p("repo1-storage-port=%s", port(d.Endpoint))
	case backupv1.GCS:
		p("repo1-type=gcs")
		p("repo1-gcs-bucket=%s", d.Bucket)
		if d.Endpoint != "" {
			// For GCS, pgBackRest ignores repo1-storage-port.
			p("repo1-gcs-endpoint=%s", net.JoinHostPort(host(d.Endpoint), port(d.Endpoint)))
		}
	case backupv1.Azure:
		p("repo1-type=azure")
		p("repo1-azure-container=%s", d.Bucket)
		if d.Endpoint != "" {
			p("repo1-azure-endpoint=%s", host(d.Endpoint))
			p("repo1-azure-uri-style=path")
			p("repo1-storage-port=%s", port(d.Endpoint))
		}
	}
	p("repo1-path=%s", r.Path())
	// Many small files become one object.
	p("repo1-bundle=y")
	if r.Encrypted {
		p("repo1-cipher-type=aes-256-cbc")
	}
	p("compress-type=zst")
	common(p)
	return b.String(), nil
}

// ServerConfig returns Config with the settings of pgBackRest's server added.
func (r Repository) ServerConfig() (string, error) {
	config, err := r.Config()
	if err != nil {
		return "", err
	}
	return config + serverConfig, nil
}

// VolumeConfig returns the configuration of the server that mounts the volume.
func (r Repository) VolumeConfig() (string, error) {
	r.Host = ""
	return r.ServerConfig()
}

// common sets what all configurations have in common: there is no place for log files, and
// messages go to stderr.
func common(p func(string, ...any)) {
	p("io-timeout=20")
	p("lock-path=" + scratch)
	p("spool-path=" + SpoolDir)
	p("log-level-file=off")
	p("log-level-console=off")
	p("log-level-stderr=warn")
	p("log-timestamp=n")
}

var serverConfig = strings.Join([]string{
	"tls-server-address=*",
	"tls-server-port=" + strconv.Itoa(Port),
	"tls-server-ca-file=" + file(FileAuthority),
	"tls-server-cert-file=" + file(FileCertificate),
	"tls-server-key-file=" + file(FileKey),
	"tls-server-auth=" + Name + "=*",
	// One archive_command of PostgreSQL pushes all waiting segments, several at once, and the
	// following commands find theirs pushed. A segment counts as archived only once it is in the
	// store.
	"[global:archive-push]",
	"archive-async=y",
	"process-max=" + strconv.Itoa(pushers),
	// Twice as fast as the default, for a few percent more room.
	"compress-level=1",
}, "\n") + "\n"

// pushers is how many processes push WAL: two or three compress and write 100 MB/s.
const pushers = 4

func file(name string) string { return path.Join(backup.RepositoryDir, name) }

// Check returns an error if pgBackRest cannot reach the repository, or if a value cannot be part
// of its configuration: one with a line break would be two settings.
func (r Repository) Check() error {
	if e := r.Destination.Endpoint; strings.HasPrefix(e, "http://") {
		return fmt.Errorf("endpoint %q must begin with https://: pgBackRest speaks to object stores by TLS alone", e)
	}
	return backup.CheckPlace(r.Destination, r.Namespace, r.Name)
}

func host(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return endpoint
	}
	return u.Hostname()
}

func port(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil || u.Port() == "" {
		return "443"
	}
	return u.Port()
}

// A Server is a server of a cluster, as a pod that creates a backup reaches it.
type Server struct{ Host, DataDir, SocketDir string }

// Options returns the command line options by which pgBackRest reaches servers.
func Options(servers []Server) []string {
	var out []string
	for i, s := range servers {
		add := func(name, value string) { out = append(out, fmt.Sprintf("--pg%d-%s=%s", i+1, name, value)) }
		if s.Host != "" {
			add("host", s.Host)
			add("host-type", "tls")
			add("host-port", strconv.Itoa(Port))
			add("host-ca-file", file(FileAuthority))
			add("host-cert-file", file(FileCertificate))
			add("host-key-file", file(FileKey))
		}
		add("path", s.DataDir)
		add("socket-path", s.SocketDir)
		add("user", "postgres")
	}
	return out
}
