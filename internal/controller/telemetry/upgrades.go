package telemetry

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/storeplane/storeplane/internal/waves"
)

// Upgrades are the metrics of an upgrade: how many claims of each wave are in which state, while
// claims wait for a release.
type Upgrades struct {
	mu   sync.Mutex
	last waves.Progress

	claims, halted *prometheus.Desc
}

func newUpgrades() *Upgrades {
	return &Upgrades{halted: prometheus.NewDesc("storeplane_upgrade_halted",
		"Whether a wave is halted, while claims are upgraded in waves: 1 or 0.",
		[]string{"release", "wave"}, nil), claims: prometheus.NewDesc("storeplane_upgrade_claims",
		"How many claims of a wave are in a state, while claims are upgraded in waves: waiting, upgraded, failing, or aside, which are paused, or were not ready before. Claims of a shop are counted with it.",
		[]string{"release", "wave", "state"}, nil)}
}

// Observe records the progress of an upgrade.
func (u *Upgrades) Observe(p waves.Progress) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last = p
}

// Describe implements prometheus.Collector.
func (u *Upgrades) Describe(ch chan<- *prometheus.Desc) {
	ch <- u.claims
	ch <- u.halted
}

// Collect implements prometheus.Collector. It sends what was last observed.
func (u *Upgrades) Collect(ch chan<- prometheus.Metric) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, w := range u.last.Waves {
		halted := 0.0
		if w.State == waves.Halted {
			halted = 1
		}
		ch <- prometheus.MustNewConstMetric(u.halted, prometheus.GaugeValue, halted, u.last.Release, w.Name)
		for state, n := range map[string]int{
			"waiting": w.Claims - w.Upgraded - w.Aside - len(w.Failing), "upgraded": w.Upgraded, "failing": len(w.Failing), "aside": w.Aside,
		} {
			ch <- prometheus.MustNewConstMetric(u.claims, prometheus.GaugeValue, float64(n), u.last.Release, w.Name, state)
		}
	}
}
