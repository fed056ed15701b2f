package pgbackrest

import (
	"fmt"
	"net"
	"net/url"
	"path"
	"strconv"
	"strings"

	"github.com/storeplane/storeplane/internal/backup"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
)

// Port at which pgBackRest's server listens.
const Port = "8432"

// Name in the certificate by which servers know each other and the pods that
// make backups.
const Name = "storeplane-backup"

// Files of that certificate, in backup.RepositoryDir.
const (
	FileConfig      = "pgbackrest.conf"
	FileAuthority   = "ca.crt"
	FileCertificate = "tls.crt"
	FileKey         = "tls.key"
)

// scratch is pgBackRest's own folder in a pod, on the disk of its node.
const scratch = "/tmp/pgbackrest"

// Repository is where the backups of one cluster lie.
type Repository struct {
	Destination backupv1.Destination

	// Namespace and Name of the DatabaseCluster: its folder is named after them.
	Namespace, Name string

	// Host that serves a volume to who does not mount it, or "".
	Host string

	// Encrypted repositories are written and read with a passphrase.
	Encrypted bool
}

// Path of the repository: in the bucket, or where the volume is mounted.
func (r Repository) Path() string {
	folder := backup.Folder(r.Destination.Prefix, r.Namespace, r.Name)
	if r.Destination.Type == backupv1.Volume {
		return path.Join(backup.VolumeDir, folder)
	}
	return "/" + folder
}

// Config is the file pgbackrest.conf of who reads and writes the repository. It
// holds no secret. It fails like Check.
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
			p("repo1-host-port=%s", Port)
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
			// It heeds storage-port for the other stores alone.
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
	// Many small files are one object.
	p("repo1-bundle=y")
	if r.Encrypted {
		p("repo1-cipher-type=aes-256-cbc")
	}
	p("compress-type=zst")
	common(p)
	return b.String(), nil
}

// ServerConfig is the same with what pgBackRest's server needs beside it.
func (r Repository) ServerConfig() (string, error) {
	config, err := r.Config()
	if err != nil {
		return "", err
	}
	return config + serverConfig, nil
}

// VolumeConfig is the configuration of the server that has the volume.
func (r Repository) VolumeConfig() (string, error) {
	r.Host = ""
	return r.ServerConfig()
}

// common to all configurations: there is no place for files of a log, and what
// is said goes where it is read.
func common(p func(string, ...any)) {
	p("io-timeout=20")
	p("lock-path=" + scratch)
	p("spool-path=" + scratch + "/spool")
	p("log-level-file=off")
	p("log-level-console=off")
	p("log-level-stderr=warn")
	p("log-timestamp=n")
}

var serverConfig = strings.Join([]string{
	"tls-server-address=*",
	"tls-server-port=" + Port,
	"tls-server-ca-file=" + file(FileAuthority),
	"tls-server-cert-file=" + file(FileCertificate),
	"tls-server-key-file=" + file(FileKey),
	"tls-server-auth=" + Name + "=*",
	// One command of PostgreSQL's archives all segments that wait, some at once,
	// and the next ones find theirs done. None is done before it is in the store.
	"[global:archive-push]",
	"archive-async=y",
	"process-max=" + strconv.Itoa(pushers),
	// Twice as fast as the default, for a few percent of room.
	"compress-level=1",
}, "\n") + "\n"

// pushers of WAL at once: two or three compress and write 100 MB/s.
const pushers = 4

func file(name string) string { return path.Join(backup.RepositoryDir, name) }

// Check says in words what of the repository pgBackRest cannot reach, or what cannot be a
// line of its configuration: a value with a line's end in it would be two settings.
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

// Server of a cluster, as who makes a backup reaches it.
type Server struct{ Host, DataDir, SocketDir string }

// Options by which servers are reached, for pgBackRest's command line.
func Options(servers []Server) []string {
	var out []string
	for i, s := range servers {
		add := func(name, value string) { out = append(out, fmt.Sprintf("--pg%d-%s=%s", i+1, name, value)) }
		if s.Host != "" {
			add("host", s.Host)
			add("host-type", "tls")
			add("host-port", Port)
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
