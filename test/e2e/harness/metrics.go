package harness

import (
	"bytes"
	"context"
	"fmt"
	"maps"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Metrics are the metrics that a program serves, by name.
type Metrics map[string]*dto.MetricFamily

// PodMetrics reads the metrics at a port of a pod.
func (c *Cluster) PodMetrics(ctx context.Context, namespace, pod, port string) (Metrics, error) {
	raw, err := c.Kube.CoreV1().Pods(namespace).ProxyGet("http", pod, port, "/metrics", nil).DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot read the metrics of pod %s/%s: %w", namespace, pod, err)
	}
	return parseMetrics(raw)
}

// APIServerMetrics reads the metrics of the API server.
func (c *Cluster) APIServerMetrics(ctx context.Context) (Metrics, error) {
	raw, err := c.Kube.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot read the API server's metrics: %w", err)
	}
	return parseMetrics(raw)
}

func parseMetrics(raw []byte) (Metrics, error) {
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("cannot parse metrics: %w", err)
	}
	return families, nil
}

// Sum returns the sum of a metric over all series that have these labels: of the value of a counter
// or gauge, of the number of observations of a histogram.
func (m Metrics) Sum(name string, labels map[string]string) float64 {
	f := m[name]
	if f == nil {
		return 0
	}
	sum := 0.0
	for _, s := range f.GetMetric() {
		have := map[string]string{}
		for _, l := range s.GetLabel() {
			if _, asked := labels[l.GetName()]; asked {
				have[l.GetName()] = l.GetValue()
			}
		}
		if !maps.Equal(have, labels) {
			continue
		}
		sum += s.GetCounter().GetValue() + s.GetGauge().GetValue() + s.GetUntyped().GetValue() + float64(s.GetHistogram().GetSampleCount())
	}
	return sum
}
