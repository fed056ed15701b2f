package supervisor

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"

	"k8s.io/client-go/rest"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/control"
	"github.com/storeplane/storeplane/internal/instance/manager/kube"
	"github.com/storeplane/storeplane/internal/instance/mysql/mysqld"
)

// Command contains the flags of a supervisor: which server this is, and where its files are. The
// command interpolates their defaults.
type Command struct {
	Pod       string `env:"${podVariable}"       help:"Name of this pod."        required:""`
	Namespace string `env:"${namespaceVariable}" help:"Its namespace."           required:""`
	Scope     string `env:"${scopeVariable}"     help:"Name of its StatefulSet." required:""`

	Address    string `default:":${supervisorPort}"  help:"Address at which to serve probes and the server's report."`
	API        int    `default:"${supervisorPort}"   help:"Port of the other servers' supervisors."`
	Port       int    `default:"${mysqlPort}"        help:"MySQL's port."`
	Program    string `default:"mysqld"              help:"MySQL's program."`
	Volume     string `default:"${mysqlVolumeDir}"   help:"Where the volume is mounted."`
	RunDir     string `default:"${mysqlRunDir}"      help:"Folder of the socket."`
	ConfigDir  string `default:"${mysqlConfigDir}"   help:"Folder of MySQL's options, and of the authorities by which servers verify each other."`
	TLSDir     string `default:"${tlsDir}"           help:"Folder of the server's certificate."`
	ControlDir string `default:"${controlDir}"       help:"Folder of the certificate that servers know each other by."`
	VerifyHost bool   `help:"The certificates of servers contain their names."`
	PlainToo   bool   `help:"Accept connections without TLS."`
}

// Defaults returns the values that a command interpolates into the flags.
func Defaults() map[string]string {
	return map[string]string{
		"supervisorPort": strconv.Itoa(instance.MySQLSupervisorPort),
		"mysqlPort":      strconv.Itoa(instance.MySQLPort),
		"mysqlVolumeDir": instance.MySQLVolumeDir,
		"mysqlRunDir":    instance.MySQLRunDir,
		"mysqlConfigDir": instance.MySQLConfigDir,
	}
}

// Run runs the supervisor until the context ends.
func (c *Command) Run(ctx context.Context, config *rest.Config, log *slog.Logger) error {
	client, err := kube.New(config, c.Namespace)
	if err != nil {
		return err
	}
	by := control.TLS{Dir: c.ControlDir, Name: control.Name(c.Scope, c.Namespace)}
	outside := &Kubernetes{
		Pod: c.Pod, Namespace: c.Namespace, Scope: c.Scope, Port: c.Port, API: c.API,
		Kube: client, TLS: by,
	}
	claim, err := client.VolumeClaim(ctx, instance.VolumeClaim(c.Pod))
	if err != nil {
		return fmt.Errorf("cannot read the volume claim of this server: %w", err)
	}
	file := func(name string) string { return filepath.Join(c.ControlDir, name) }
	s := New(Config{
		Pod: c.Pod, Claim: string(claim.UID), Program: c.Program, Files: mysqld.Files{Volume: c.Volume},
		Options: mysqld.Options{
			File: filepath.Join(c.ConfigDir, instance.MySQLConfigFile), ID: int(instance.Ordinal(c.Pod)) + 1, Host: outside.Host(), Port: c.Port, RunDir: c.RunDir,
			Certificate: filepath.Join(c.TLSDir, control.FileCertificate), Key: filepath.Join(c.TLSDir, control.FileKey),
			// Clients are verified by certificate only if they are servers of this cluster.
			Authority:       file(control.FileAuthority),
			PeerCertificate: file(control.FileCertificate), PeerKey: file(control.FileKey), PeerAuthority: filepath.Join(c.ConfigDir, instance.FilePeers),
			VerifyHost: c.VerifyHost, TLSRequired: !c.PlainToo,
		},
	}, outside, log, os.Stderr)
	serving := make(chan error, 1)
	// It serves until the server has stopped, so that others know of it to the end.
	apiCtx, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	go func() { serving <- s.Serve(apiCtx, c.Address, by) }()
	stopped := make(chan error, 1)
	go func() { stopped <- s.Run(ctx) }()
	select {
	case err := <-serving:
		return err
	case err := <-stopped:
		return err
	}
}
