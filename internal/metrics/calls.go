// Package metrics holds the metrics of Storeplane itself, for Prometheus. Labels are bounded: kinds
// and results, never names.
package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Calls are the metrics of the function's calls.
type Calls struct{ seconds *prometheus.HistogramVec }

// NewCalls registers the metrics with Prometheus' default registry.
func NewCalls() *Calls {
	return &Calls{seconds: promauto.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "storeplane_function_call_duration_seconds",
		Help:    "How long composing a claim took, by its kind and how it ended: ok, invalid or error.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 2, 16),
	}, []string{"kind", "result"})}
}

// Running registers the number of calls that are being composed, and how many can be at once.
func (c *Calls) Running(limit int, now func() int) {
	promauto.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "storeplane_function_calls_running",
		Help: "How many calls are being composed, those counted that their callers have given up.",
	}, func() float64 { return float64(now()) })
	promauto.NewGauge(prometheus.GaugeOpts{
		Name: "storeplane_function_calls_limit",
		Help: "How many calls are composed at once; more wait.",
	}).Set(float64(limit))
}

// Observe records a call.
func (c *Calls) Observe(kind, result string, took time.Duration) {
	c.seconds.WithLabelValues(kind, result).Observe(took.Seconds())
}
