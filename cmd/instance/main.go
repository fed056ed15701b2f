// Command instance is the instance manager, which runs beside every server of a DatabaseCluster.
// The kubelet, Patroni and PostgreSQL call its other commands.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/alecthomas/kong"
	"k8s.io/client-go/rest"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/archive"
	"github.com/storeplane/storeplane/internal/instance/control"
	"github.com/storeplane/storeplane/internal/instance/manager"
	"github.com/storeplane/storeplane/internal/instance/manager/pgdata"
	"github.com/storeplane/storeplane/internal/instance/manager/volume"
	"github.com/storeplane/storeplane/internal/instance/mysql/command"
	"github.com/storeplane/storeplane/internal/instance/rewind"
	"github.com/storeplane/storeplane/internal/pgbackrest/recovery"
)

// vars are the names that flags have as their defaults: what the function composes a server's pod
// with.
var vars = kong.Vars{
	"podVariable": instance.PodVariable, "namespaceVariable": instance.NamespaceVariable, "scopeVariable": instance.ScopeVariable,
	"port": strconv.Itoa(instance.PostgreSQLPort), "patroniPort": strconv.Itoa(instance.PatroniPort), "managerPort": strconv.Itoa(instance.ManagerPort),
	"volumeDir": instance.VolumeDir, "socketDir": instance.SocketDir, "patroniDir": instance.PatroniDir, "tlsDir": instance.TLSDir,
	"credentialsDir": instance.CredentialsDir, "controlDir": control.Dir, "restoreDir": instance.RestoreDir,
	"mysqlPort": strconv.Itoa(instance.MySQLPort), "supervisorPort": strconv.Itoa(instance.MySQLSupervisorPort),
	"mysqlVolumeDir": instance.MySQLVolumeDir, "mysqlRunDir": instance.MySQLRunDir, "mysqlConfigDir": instance.MySQLConfigDir,
	"repositoryDir": backup.RepositoryDir, "storeDir": backup.StoreDir, "keyFile": backup.KeyFile,
	"taskVariable": backup.TaskVariable,
}

// cli holds the command's flags.
type cli struct {
	Run  run  `cmd:"" help:"Run beside a server until it is stopped."`
	Stop stop `cmd:"" help:"Prepare the server for being stopped: hand over, or wait for the last write."`

	Start   start   `cmd:"" help:"Prepare the data of a server that is to lead with it, then become Patroni."`
	Fence   fence   `cmd:"" help:"Have the other servers receive nothing more from the old primary: runs before this one is promoted."`
	Push    push    `cmd:"" name:"pgbackrest-push" help:"Archive a segment of WAL: PostgreSQL's archive command."`
	Serve   serve   `cmd:"" help:"Run pgBackRest's server beside PostgreSQL or a repository's volume."`
	Restore restore `cmd:"" help:"Fill the data folder of a new cluster from a backup."`
	Rewind  rewound `cmd:"" help:"Run pg_rewind, and make room for a copy of the primary where it fails." passthrough:""`

	MySQL        mysql        `cmd:"" name:"mysql" help:"Run MySQL as a member of its group, until it is stopped."`
	MySQLArchive mysqlArchive `cmd:"" name:"mysql-archive" help:"Archive the binary logs of MySQL's primary, until it is stopped."`
}

type run struct{ manager.Config }

// Run runs the manager until a signal.
func (r *run) Run(log *slog.Logger) error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	config, err := rest.InClusterConfig()
	if err != nil {
		return err
	}
	m, err := manager.New(r.Config, config, log)
	if err != nil {
		return err
	}
	return m.Run(ctx)
}

type mysql struct{ command.Command }

// Run runs MySQL until a signal.
func (m *mysql) Run(log *slog.Logger) error {
	config, err := rest.InClusterConfig()
	if err != nil {
		return err
	}
	return until(func(ctx context.Context) error { return m.Command.Run(ctx, config, log) })
}

type mysqlArchive struct{ command.Archive }

// Run archives until a signal.
func (m *mysqlArchive) Run(log *slog.Logger) error {
	config, err := rest.InClusterConfig()
	if err != nil {
		return err
	}
	return until(func(ctx context.Context) error { return m.Archive.Run(ctx, config, log) })
}

type stop struct{ manager.Config }

// Run runs once and always succeeds: nothing may hold up the server's own stop.
func (s *stop) Run(log *slog.Logger) error { //nolint:unparam // kong requires an error
	config, err := rest.InClusterConfig()
	if err != nil {
		log.Info("Cannot reach the API server", "error", err.Error())
		return nil
	}
	manager.Stop(context.Background(), s.Config, config, log)
	return nil
}

type fence struct{ manager.Config }

// Run runs once. If it fails, Patroni does not promote the server.
func (f *fence) Run(log *slog.Logger) error {
	return manager.Fence(context.Background(), f.Config, log)
}

type start struct {
	archive.Config

	Address    string   `default:":${patroniPort}" help:"Address at which to answer probes until Patroni does."`
	ControlDir string   `default:"${controlDir}" help:"Folder of the certificate to answer with."`
	Args       []string `arg:"" help:"Patroni's arguments." optional:""`
}

// Run prepares the data, and then replaces this program with Patroni.
func (s *start) Run(log *slog.Logger) error {
	switch aside, err := pgdata.SetAsideNeverStarted(s.DataDir()); {
	case err != nil:
		log.Error("Cannot see whether the data is what initdb has left, or cannot set that aside: Patroni initializes no other one then", "folder", s.DataDir(), "error", err.Error())
	case aside != "":
		log.Info("Set aside what initdb has left: a server never ran with it", "folder", aside)
	}
	err := until(func(ctx context.Context) error {
		return archive.Prepare(ctx, s.Config, s.Address, control.TLS{Dir: s.ControlDir}, os.Stderr)
	})
	if err != nil {
		return err
	}
	program, err := exec.LookPath("patroni")
	if err != nil {
		return fmt.Errorf("cannot find Patroni: %w", err)
	}
	return syscall.Exec(program, append([]string{"patroni"}, s.Args...), os.Environ()) //nolint:gosec // the program is part of the image
}

type push struct {
	archive.Config

	Segment string `arg:"" help:"File of the segment."`
}

// Run runs once and exits with a code that PostgreSQL's archiver acts on.
func (a *push) Run(log *slog.Logger) error {
	err := until(func(ctx context.Context) error { return archive.Push(ctx, a.Config, a.Segment, os.Stderr) })
	if err != nil {
		log.Error("Cannot archive", "segment", a.Segment, "error", err.Error())
	}
	os.Exit(archive.ExitCode(err))
	return nil
}

type serve struct {
	archive.Config

	Metrics string `help:"Address at which the metrics of the repository's volume are exported. None by default."`
}

// Run runs until a signal. It continues if metrics cannot be exported.
func (s *serve) Run(log *slog.Logger) error {
	return until(func(ctx context.Context) error {
		if s.Metrics != "" {
			go func() {
				if err := archive.ServeMetrics(ctx, s.Metrics, backup.VolumeDir); err != nil {
					log.Info("Cannot export metrics", "error", err.Error())
				}
			}()
		}
		return archive.Serve(ctx, s.Config)
	})
}

type restore struct{ archive.Config }

// Run runs once.
func (r *restore) Run(*slog.Logger) error {
	return until(func(ctx context.Context) error { return archive.Restore(ctx, r.Config, os.Stderr) })
}

type rewound struct {
	Command []string `arg:"" help:"pg_rewind with its arguments." name:"command"`
}

// Run runs once and exits with the code of pg_rewind, on which Patroni acts.
func (r *rewound) Run(*slog.Logger) error {
	os.Exit(rewind.Rewind{Command: r.Command, Stdout: os.Stdout, Stderr: os.Stderr, SetAside: volume.SetAside}.Run(context.Background()))
	return nil
}

// until runs a function whose context ends at a signal.
func until(do func(context.Context) error) error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	return do(ctx)
}

func main() {
	recovery.Main()
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	ctx := kong.Parse(&cli{}, vars, kong.Description("The instance manager of a DatabaseCluster's servers."))
	ctx.FatalIfErrorf(ctx.Run(log))
}
