package telemetry

import (
	"math/rand/v2"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Telemetry contains the metrics of the provider.
type Telemetry struct {
	Backups    *Backups
	AppConfigs *AppConfigs
	Claims     *Claims
	Upgrades   *Upgrades
	errors     *prometheus.CounterVec
}

// New returns a Telemetry that is registered with a registry.
func New(r prometheus.Registerer) *Telemetry {
	t := &Telemetry{
		Backups:    newBackups(),
		AppConfigs: newAppConfigs(),
		Claims:     newClaims(),
		Upgrades:   newUpgrades(),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "storeplane_provider_reconcile_errors_total",
			Help: "How often something could not be done for a managed resource, by its kind, what was tried and the reason.",
		}, []string{"kind", "operation", "reason"}),
	}
	r.MustRegister(t.Backups, t.Claims, t.Upgrades, t.errors)
	r.MustRegister(t.AppConfigs.collectors()...)
	return t
}

// Jitter changes an interval at random, by at most a fifth.
func Jitter(interval time.Duration) time.Duration {
	const part = 0.2
	return interval + time.Duration((rand.Float64()*2-1)*part*float64(interval)) //nolint:gosec // It does not matter whether the result can be guessed.
}
