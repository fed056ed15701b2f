package archive

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/storeplane/storeplane/internal/instance/manager/volume"
)

// ServeMetrics serves metrics of the repository's volume, mounted at dir, until the context
// ends.
func ServeMetrics(ctx context.Context, address, dir string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("cannot listen at %s: %w", address, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(volumeMetrics(dir), promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("cannot serve metrics at %s: %w", address, err)
	}
	return nil
}

// volumeMetrics returns metrics that are measured whenever they are read. A volume that cannot
// be measured exports none.
func volumeMetrics(dir string) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(&volumeCollector{
		dir:  dir,
		size: prometheus.NewDesc("storeplane_repository_volume_bytes", "Size of the file system of the backups' volume.", nil, nil),
		used: prometheus.NewDesc("storeplane_repository_volume_used_bytes", "How much of it is used.", nil, nil),
	})
	return r
}

type volumeCollector struct {
	dir        string
	size, used *prometheus.Desc
}

func (c *volumeCollector) Describe(ch chan<- *prometheus.Desc) { ch <- c.size; ch <- c.used }

func (c *volumeCollector) Collect(ch chan<- prometheus.Metric) {
	used, size, err := volume.Usage(c.dir)
	if err != nil {
		return
	}
	ch <- prometheus.MustNewConstMetric(c.size, prometheus.GaugeValue, float64(size))
	ch <- prometheus.MustNewConstMetric(c.used, prometheus.GaugeValue, float64(used))
}
