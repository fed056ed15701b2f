package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// AppConfigs are the metrics of all AppConfigs together, since there may be thousands. The status
// and the events of an AppConfig show which one it was.
type AppConfigs struct {
	rollouts  *prometheus.CounterVec
	rollbacks prometheus.Counter
	converge  prometheus.Histogram
}

// Results of rollouts. Each has a series before it occurs.
const (
	RolloutSucceeded  = "Succeeded"
	RolloutRolledBack = "RolledBack"
	RolloutFailed     = "Failed"
	RolloutSuperseded = "Superseded"
)

func newAppConfigs() *AppConfigs {
	a := &AppConfigs{
		rollouts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "storeplane_appconfig_rollouts_total",
			Help: "How many rollouts of configuration ended, by how: Succeeded, RolledBack, Failed, or Superseded by a newer one.",
		}, []string{"result"}),
		rollbacks: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "storeplane_appconfig_rollbacks_total",
			Help: "How many times the last good configuration was put back.",
		}),
		converge: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "storeplane_appconfig_converge_seconds",
			Help:    "How long rollouts of configuration took that succeeded, from their start until all targets were healthy.",
			Buckets: []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600},
		}),
	}
	for _, r := range []string{RolloutSucceeded, RolloutRolledBack, RolloutFailed, RolloutSuperseded} {
		a.rollouts.WithLabelValues(r)
	}
	return a
}

// Observe records how a rollout ended and how long it took. result is "" if none ended.
func (a *AppConfigs) Observe(result string, took time.Duration) {
	switch result {
	case "":
		return
	case RolloutSucceeded:
		a.converge.Observe(took.Seconds())
	case RolloutRolledBack:
		a.rollbacks.Inc()
	}
	a.rollouts.WithLabelValues(result).Inc()
}

// collectors returns the collectors of all metrics.
func (a *AppConfigs) collectors() []prometheus.Collector {
	return []prometheus.Collector{a.rollouts, a.rollbacks, a.converge}
}
