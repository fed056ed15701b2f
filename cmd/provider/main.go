// Command provider reconciles Storeplane's managed resources: Backups, Restores
// and AppConfigs.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/alecthomas/kong"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/storeplane/storeplane/internal/images"
)

// cli holds the command's flags.
type cli struct {
	images.Flags

	Debug bool `help:"Log every reconciliation." short:"d"`

	LeaderElection bool          `default:"true"  env:"LEADER_ELECTION"                                                            help:"Let one replica of several work at a time." negatable:""`
	Namespace      string        `env:"POD_NAMESPACE"                                                                              help:"Namespace of the lease that replicas elect a leader by. Empty for the pod's own."`
	PollInterval   time.Duration `default:"1m"                                                                                     help:"Resync interval: how often each resource is reconciled though nothing has changed."`
	MaxRate        int           `default:"10"                                                                                     help:"How many resources of a kind are reconciled at a time, and in a second."`
	RolloutBudget  int           `default:"20"                                                                                     help:"How many workloads of a namespace AppConfigs roll out at a time."`
	MetricsAddress string        `default:":8080"                                                                                  help:"Address at which to serve Prometheus metrics. 0 for none."`
	HealthAddress  string        `default:":8081"                                                                                  help:"Address at which to serve /healthz and /readyz."`
}

// Run reconciles until it is stopped.
func (c *cli) Run() error {
	log := zap.New(zap.UseDevMode(c.Debug))
	ctrl.SetLogger(log)
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("cannot find an API server: %w", err)
	}
	l, err := newLock(c, cfg)
	if err != nil {
		return err
	}
	mgr, err := newManager(c, cfg, l)
	if err != nil {
		return err
	}
	ctx, failed := ctrl.SetupSignalHandler(), make(chan error, 1)
	if err := setup(ctx, mgr, l, c, logging.NewLogrLogger(log.WithName("provider")), failed); err != nil {
		return err
	}
	return start(ctx, mgr, failed)
}

func main() {
	ctx := kong.Parse(&cli{}, kong.Description("Storeplane's provider: Backups, Restores and AppConfigs."))
	if err := ctx.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "provider:", err)
		ctx.Exit(1)
	}
}
