// Package metrics has the metrics of instance managers, which are the same for every engine but for what
// supervises its server.
package metrics

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/storeplane/storeplane/internal/instance"
)

// Metrics are the metrics of one server. No label contains the name of an object.
type Metrics struct {
	// Registry has all of them.
	Registry *prometheus.Registry

	size, used               prometheus.Gauge
	up, primary, restart     prometheus.Gauge
	streaming, synchronous   prometheus.Gauge
	lagging, problems, drift prometheus.Gauge
	waiting, failing         prometheus.Gauge

	// recoverable is a vector with one element, so that it can be absent.
	recoverable *prometheus.GaugeVec

	// expiry is when each of the server's certificates expires.
	expiry *prometheus.GaugeVec
}

// New returns metrics. up is the name of that of whether the server's supervisor answers, and help describes it.
func New(up, help string) *Metrics {
	m := &Metrics{Registry: prometheus.NewRegistry()}
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "storeplane", Subsystem: "instance", Name: name, Help: help})
		m.Registry.MustRegister(g)
		return g
	}
	m.size = gauge("volume_bytes", "Size of the volume's file system.")
	m.used = gauge("volume_used_bytes", "How much of it is used.")
	m.expiry = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "storeplane", Subsystem: "instance", Name: "certificate_expiry_timestamp_seconds", Help: "When a certificate of the server expires: tls, which clients see, or control, which servers know each other by. Absent without one.",
	}, []string{"certificate"})
	m.Registry.MustRegister(m.expiry)
	m.up = gauge(up, help)
	m.primary = gauge("primary", "1 while this server takes writes.")
	m.restart = gauge("restart_pending", "1 while a parameter waits for a restart of this server.")
	m.streaming = gauge("standbys_streaming", "Standbys that follow this primary. 0 on a standby.")
	m.synchronous = gauge("standbys_synchronous", "Standbys that acknowledge this primary's writes. 0 on a standby.")
	m.lagging = gauge("standbys_lagging", "Standbys that lag behind this primary. 0 on a standby.")
	m.problems = gauge("problems", "Problems that the DatabaseCluster's status lists. 0 on a standby.")
	m.drift = gauge("drift", "1 while databases and users of this primary are not what is desired. 0 on a standby.")
	m.waiting = gauge("archive_waiting", "Files of WAL of this primary that are complete and not in the archive yet: segments of 16 MiB, and histories of timelines. 0 on a standby and without backups.")
	m.failing = gauge("archive_failing", "1 while the log of this primary cannot be archived in time, or is lost and no newer backup is complete. 0 on a standby.")
	m.recoverable = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "storeplane", Subsystem: "instance", Name: "recoverable_timestamp_seconds", Help: "Newest time that can be restored to, in steps of minutes. Absent on a standby and without an archive.",
	}, nil)
	m.Registry.MustRegister(m.recoverable)
	return m
}

// Archive sets the metrics of archiving, or resets them if a is nil.
func (m *Metrics) Archive(a *instance.Archive, waiting int64) {
	if a == nil {
		m.waiting.Set(0)
		m.failing.Set(0)
		m.recoverable.Reset()
		return
	}
	m.waiting.Set(float64(waiting))
	m.failing.Set(number(a.Failing != "" || a.Open()))
	if m.recoverable.Reset(); a.Recoverable != nil {
		m.recoverable.WithLabelValues().Set(float64(a.Recoverable.Unix()))
	}
}

// Volume sets how much of the volume is used, and its size, in bytes.
func (m *Metrics) Volume(used, size uint64) {
	m.size.Set(float64(size))
	m.used.Set(float64(used))
}

// Role sets whether the supervisor answers, and whether the server takes writes.
func (m *Metrics) Role(up, primary bool) {
	m.up.Set(number(up))
	m.primary.Set(number(primary))
}

// Restart sets whether a parameter waits for a restart of the server.
func (m *Metrics) Restart(pending bool) { m.restart.Set(number(pending)) }

// Cluster sets the metrics of the primary's report, or resets them if c is nil.
func (m *Metrics) Cluster(c *instance.Cluster, applied bool) {
	if c == nil {
		c, applied = &instance.Cluster{}, true
	}
	var streaming, synchronous, lagging int
	for _, s := range c.Standbys {
		if s.Streaming {
			streaming++
		}
		if s.Synchronous {
			synchronous++
		}
		if s.Lagging {
			lagging++
		}
	}
	m.streaming.Set(float64(streaming))
	m.synchronous.Set(float64(synchronous))
	m.lagging.Set(float64(lagging))
	m.problems.Set(float64(len(c.Problems)))
	m.drift.Set(number(!applied))
}

// Certificate sets the expiry of the certificate in a directory, by its name. Without a
// certificate the metric keeps its value.
func (m *Metrics) Certificate(name, dir string) {
	if end := expires(dir); !end.IsZero() {
		m.expiry.WithLabelValues(name).Set(float64(end.Unix()))
	}
}

// expires returns when the certificate in a directory expires, or zero if there is none.
func expires(dir string) time.Time {
	data, err := os.ReadFile(filepath.Join(dir, "tls.crt")) //nolint:gosec // the folder is the pod's
	if err != nil {
		return time.Time{}
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return time.Time{}
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}
	}
	return cert.NotAfter
}

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
