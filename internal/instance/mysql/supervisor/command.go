package supervisor

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/control"
	"github.com/storeplane/storeplane/internal/instance/manager/kube"
	"github.com/storeplane/storeplane/internal/instance/mysql/mysqld"
)

// Command contains the flags of a supervisor: which server this is, and where its files are.
type Command struct {
	Pod       string `env:"POD_NAME"      help:"Name of this pod."         required:""`
	Namespace string `env:"POD_NAMESPACE" help:"Its namespace."            required:""`
	Scope     string `env:"CLUSTER_SCOPE" help:"Name of its StatefulSet."  required:""`

	Address    string `default:":8008"                                   help:"Address at which to serve probes and the server's report."`
	Port       int    `default:"3306"                                    help:"MySQL's port."`
	API        int    `default:"8008"                                    help:"Port of the other servers' supervisors."`
	Program    string `default:"mysqld"                                  help:"MySQL's program."`
	Volume     string `default:"/var/lib/mysql"                          help:"Where the volume is mounted."`
	RunDir     string `default:"/var/run/mysqld"                         help:"Folder of the socket."`
	Options    string `default:"/etc/mysql/my.cnf"                       help:"File of MySQL's options."`
	Peers      string `default:"/etc/mysql/peers.crt"                    help:"File of the authorities by which servers verify each other."`
	TLSDir     string `default:"/etc/storeplane/tls"                     help:"Folder of the server's certificate."`
	ControlDir string `default:"/etc/storeplane/control"                 help:"Folder of the certificate that servers know each other by."`
	VerifyHost bool   `help:"The certificates of servers contain their names."                                     name:"verify-host"`
	PlainToo   bool   `help:"Accept connections without TLS."                                                     name:"plain-too"`

	Selector  string `help:"Labels of the servers' pods."                required:""`
	RoleLabel string `default:"storeplane.example.com/role"              help:"Label of a pod with its role."`
	Primary   string `default:"primary"                                  help:"Value of the label of the primary."`
	Replica   string `default:"replica"                                  help:"Value of the label of the others."`
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
		Selector: c.Selector, RoleLabel: c.RoleLabel, Primary: c.Primary, Replica: c.Replica, Kube: client, TLS: by,
	}
	claim, err := client.VolumeClaim(ctx, "data-"+c.Pod)
	if err != nil {
		return fmt.Errorf("cannot read the volume claim of this server: %w", err)
	}
	file := func(name string) string { return filepath.Join(c.ControlDir, name) }
	s := New(Config{
		Pod: c.Pod, Claim: string(claim.UID), Program: c.Program, Files: mysqld.Files{Volume: c.Volume},
		Options: mysqld.Options{
			File: c.Options, ID: int(instance.Ordinal(c.Pod)) + 1, Host: outside.Host(), Port: c.Port, RunDir: c.RunDir,
			Certificate: filepath.Join(c.TLSDir, control.FileCertificate), Key: filepath.Join(c.TLSDir, control.FileKey),
			// Clients are verified by certificate only if they are servers of this cluster.
			Authority:       file(control.FileAuthority),
			PeerCertificate: file(control.FileCertificate), PeerKey: file(control.FileKey), PeerAuthority: c.Peers,
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
