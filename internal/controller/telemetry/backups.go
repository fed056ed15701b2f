package telemetry

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
)

// Backups are the metrics of each Backup. A value that is not known has no series: an alert uses
// absent().
type Backups struct {
	mu   sync.Mutex
	seen map[types.NamespacedName]*sample

	lastSuccess, size, duration, lastVerified, failures, count, period, verification *prometheus.Desc
}

// Periods are the longest times between two runs of a Backup's schedules. A period is zero while
// there is no schedule or it is suspended.
type Periods struct {
	Backup, Verification time.Duration
}

// sample is what was last observed of one Backup.
type sample struct {
	o        backupv1.BackupObservation
	periods  Periods
	failures int
}

func newBackups() *Backups {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("storeplane_backup_"+name, help, []string{"namespace", "name"}, nil)
	}
	return &Backups{
		seen:         map[types.NamespacedName]*sample{},
		lastSuccess:  desc("last_success_timestamp_seconds", "When the newest good backup began."),
		size:         desc("size_bytes", "Size of the newest good backup in the store."),
		duration:     desc("duration_seconds", "How long the newest good backup took."),
		lastVerified: desc("last_verified_timestamp_seconds", "When a backup was last restored and found good."),
		failures:     desc("failures_total", "How many backups were seen to fail."),
		count:        desc("count", "How many good backups are in the store."),
		period:       desc("period_seconds", "The longest time between two runs of the schedule, while it is not suspended."),
		verification: desc("verification_period_seconds", "The longest time between two verifications, while they are not turned off or suspended."),
	}
}

// Observe records that the status of a Backup becomes o, and counts a failure that is new in it.
func (b *Backups) Observe(of *backupv1.Backup, o backupv1.BackupObservation, periods Periods) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := types.NamespacedName{Namespace: of.Namespace, Name: of.Name}
	s := b.seen[key]
	if s == nil {
		s = &sample{}
		b.seen[key] = s
	}
	if known := of.Status.AtProvider.LastFailure; o.LastFailure != nil && (known == nil || !known.Time.Equal(&o.LastFailure.Time)) &&
		(s.o.LastFailure == nil || !s.o.LastFailure.Time.Equal(&o.LastFailure.Time)) {
		s.failures++
	}
	s.o, s.periods = o, periods
}

// Forget removes the series of a Backup.
func (b *Backups) Forget(key types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.seen, key)
}

// Describe implements prometheus.Collector.
func (b *Backups) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{b.lastSuccess, b.size, b.duration, b.lastVerified, b.failures, b.count, b.period, b.verification} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. It sends what was last observed.
func (b *Backups) Collect(ch chan<- prometheus.Metric) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, s := range b.seen {
		send := func(d *prometheus.Desc, t prometheus.ValueType, v float64) {
			ch <- prometheus.MustNewConstMetric(d, t, v, key.Namespace, key.Name)
		}
		at := func(d *prometheus.Desc, t *metav1.Time) {
			if t != nil {
				send(d, prometheus.GaugeValue, float64(t.Unix()))
			}
		}
		at(b.lastSuccess, s.o.LastSuccessfulTime)
		at(b.lastVerified, s.o.LastVerifiedTime)
		if len(s.o.Backups) > 0 {
			send(b.size, prometheus.GaugeValue, float64(s.o.Backups[0].Size))
		}
		if s.o.LastDuration != nil {
			send(b.duration, prometheus.GaugeValue, s.o.LastDuration.Seconds())
		}
		send(b.failures, prometheus.CounterValue, float64(s.failures))
		send(b.count, prometheus.GaugeValue, float64(s.o.Count))
		every := func(d *prometheus.Desc, period time.Duration) {
			if period > 0 {
				send(d, prometheus.GaugeValue, period.Seconds())
			}
		}
		every(b.period, s.periods.Backup)
		every(b.verification, s.periods.Verification)
	}
}
