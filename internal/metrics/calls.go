// Package metrics holds what Storeplane tells Prometheus about itself. Labels
// are bounded: kinds and results, never names.
package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Calls of the function.
type Calls struct{ seconds *prometheus.HistogramVec }

// NewCalls registers with Prometheus' default registry.
func NewCalls() *Calls {
	return &Calls{seconds: promauto.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "storeplane_function_call_duration_seconds",
		Help:    "How long composing a claim took, by its kind and how it ended: ok, invalid or error.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 2, 16),
	}, []string{"kind", "result"})}
}

// Observe a call.
func (c *Calls) Observe(kind, result string, took time.Duration) {
	c.seconds.WithLabelValues(kind, result).Observe(took.Seconds())
}
