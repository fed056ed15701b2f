// Package command runs MySQL in a pod: its supervisor and its manager.
package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/control"
	"github.com/storeplane/storeplane/internal/instance/manager/exchange"
	"github.com/storeplane/storeplane/internal/instance/manager/kube"
	"github.com/storeplane/storeplane/internal/instance/mysql/manager"
	"github.com/storeplane/storeplane/internal/instance/mysql/mysqld"
	"github.com/storeplane/storeplane/internal/instance/mysql/supervisor"
)

// Command contains the flags: which server this is, and where its files are. The
// command interpolates their defaults.
type Command struct {
	Pod       string `env:"${podVariable}"       help:"Name of this pod."        required:""`
	Namespace string `env:"${namespaceVariable}" help:"Its namespace."           required:""`
	Scope     string `env:"${scopeVariable}"     help:"Name of its StatefulSet." required:""`

	Address        string `default:":${supervisorPort}"  help:"Address at which to serve probes, metrics and the server's report."`
	API            int    `default:"${supervisorPort}"   help:"Port of the other servers' supervisors."`
	Port           int    `default:"${mysqlPort}"        help:"MySQL's port."`
	Program        string `default:"mysqld"              help:"MySQL's program."`
	Volume         string `default:"${mysqlVolumeDir}"   help:"Where the volume is mounted."`
	RunDir         string `default:"${mysqlRunDir}"      help:"Folder of the socket."`
	ConfigDir      string `default:"${mysqlConfigDir}"   help:"Folder of MySQL's options, and of the authorities by which servers verify each other."`
	TLSDir         string `default:"${tlsDir}"           help:"Folder of the server's certificate."`
	ControlDir     string `default:"${controlDir}"       help:"Folder of the certificate that servers know each other by."`
	Origin         string `default:"${restoreDir}"       help:"Folder of what a new cluster is restored from."`
	VerifyHost     bool   `help:"The certificates of servers contain their names."`
	AllowPlaintext bool   `help:"Accept connections without TLS."`
}

// Run runs the server until the context ends, and then stops it.
func (c *Command) Run(ctx context.Context, config *rest.Config, log *slog.Logger) error {
	client, err := kube.New(config, c.Namespace)
	if err != nil {
		return err
	}
	by := control.TLS{Dir: c.ControlDir, Name: control.Name(c.Scope, c.Namespace)}
	pod, err := client.Self(ctx, c.Pod)
	if err != nil {
		return fmt.Errorf("cannot read the pod of this server: %w", err)
	}
	outside := &supervisor.Kubernetes{
		Pod: c.Pod, UID: pod.UID, Namespace: c.Namespace, Scope: c.Scope, Port: c.Port, API: c.API,
		Kube: client, TLS: by,
	}
	claim, err := client.VolumeClaim(ctx, instance.VolumeClaim(c.Pod))
	if err != nil {
		return fmt.Errorf("cannot read the volume claim of this server: %w", err)
	}
	file := func(name string) string { return filepath.Join(c.ControlDir, name) }
	var m *manager.Manager
	s := supervisor.New(supervisor.Config{
		Pod: c.Pod, Claim: string(claim.UID), Program: c.Program, Files: mysqld.Files{Volume: c.Volume},
		Options: mysqld.Options{
			File: filepath.Join(c.ConfigDir, instance.MySQLConfigFile), ID: int(instance.Ordinal(c.Pod)) + 1, Host: outside.Host(), Port: c.Port, RunDir: c.RunDir,
			Certificate: filepath.Join(c.TLSDir, control.FileCertificate), Key: filepath.Join(c.TLSDir, control.FileKey),
			// Clients are verified by certificate only if they are servers of this cluster.
			Authority:       file(control.FileAuthority),
			PeerCertificate: file(control.FileCertificate), PeerKey: file(control.FileKey), PeerAuthority: filepath.Join(c.ConfigDir, instance.FilePeers),
			VerifyHost: c.VerifyHost, TLSRequired: !c.AllowPlaintext,
		},
		VariablesFile: filepath.Join(c.ConfigDir, instance.MySQLVariablesFile),
		Size: func() int {
			_, desired, known := m.Target()
			if !known {
				return 0
			}
			return int(desired.Size)
		},
		Warn: func(ctx context.Context, reason, message string) {
			m.Event(ctx, corev1.EventTypeWarning, reason, message)
		},
		Fetch: origin{folder: c.Origin, program: c.Program, log: os.Stderr}.fetch,
	}, outside, log, os.Stderr)
	m, err = manager.New(manager.Config{
		Pod: c.Pod, Scope: c.Scope, PodOf: outside.PodOf, Volume: c.Volume, TLSDir: c.TLSDir, ControlDir: c.ControlDir,
		ConfigDir: c.ConfigDir, Reload: s.Reload, SetVariables: s.SetVariables, Move: s.Move,
	}, client, exchange.NewNotes(log), s.Server(), func() manager.State {
		state := manager.State{Leads: s.Leads()}
		state.Report, _ = s.Last()
		state.Held, state.Servers = s.Held()
		state.Restore, state.Epoch = s.Restoring(), s.Epoch()
		return state
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	// It serves until the server has stopped, so that others know of it to the end.
	apiCtx, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	serving := make(chan error, 1)
	go func() { serving <- s.Serve(apiCtx, c.Address, by, m.Metrics()) }()
	go m.Run(ctx)
	stopped := make(chan error, 1)
	go func() { stopped <- s.Run(ctx) }()
	select {
	case err := <-serving:
		// Without its API the others cannot know this server: it hands over, and stops.
		stop()
		return errors.Join(err, <-stopped)
	case err := <-stopped:
		return err
	}
}
