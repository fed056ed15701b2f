//go:build e2e

package platform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/e2e-framework/klient/wait"
	"sigs.k8s.io/e2e-framework/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

const (
	monitoringNamespace = suiteName + "-monitoring"

	// patience is how long alerts of these tests wait before they fire. Those of an installation
	// wait for minutes.
	patience = 5 * time.Second
)

func monitoring() types.Feature {
	return tests.Feature("a real Prometheus", monitoringNamespace).
		Full("it scrapes the function, the provider and claims by the example's configuration", scrapes).
		Full("a claim that does not get Ready fires an alert, and one that is well does not", fires).
		Cleared().
		Feature()
}

// monitoringFiles is the folder with the files for the Prometheus of an installation.
var monitoringFiles = filepath.Join("..", "..", "..", "package", "monitoring")

// configuration returns the configuration of Prometheus: the jobs of the example and the rules of
// the package, unchanged except for their intervals, which are too long for a test.
func configuration() (map[string]string, error) {
	raw, err := os.ReadFile(filepath.Join(monitoringFiles, "scrape.example.yaml"))
	if err != nil {
		return nil, fmt.Errorf("cannot read the example's configuration: %w", err)
	}
	var config map[string]any
	if err := yaml.Unmarshal(raw, &config); err != nil {
		return nil, fmt.Errorf("cannot parse the example's configuration: %w", err)
	}
	config["global"] = map[string]any{"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "2s"}
	out := map[string]string{}
	if out["prometheus.yml"], err = text(config); err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(monitoringFiles, "prometheusrule-*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("cannot find rules in %s: %w", monitoringFiles, err)
	}
	for _, f := range files {
		if out[filepath.Base(f)], err = rules(f); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// rules returns the rules of a PrometheusRule, with the time that alerts wait replaced by patience.
func rules(file string) (string, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("cannot read rules: %w", err)
	}
	var r struct {
		Spec struct {
			Groups []map[string]any `json:"groups"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(raw, &r); err != nil {
		return "", fmt.Errorf("cannot parse rules %s: %w", file, err)
	}
	for _, g := range r.Spec.Groups {
		delete(g, "interval")
		list, _ := g["rules"].([]any)
		for _, rule := range list {
			if m, _ := rule.(map[string]any); m["for"] != nil {
				m["for"] = patience.String()
			}
		}
	}
	return text(map[string]any{"groups": r.Spec.Groups})
}

func text(v any) (string, error) {
	raw, err := yaml.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("cannot encode a configuration: %w", err)
	}
	return string(raw), nil
}

// startPrometheus starts Prometheus with this configuration.
func startPrometheus(ctx context.Context) error {
	return once.Do("prometheus", func() error {
		if err := namespace(ctx, monitoringNamespace); err != nil {
			return err
		}
		data, err := configuration()
		if err != nil {
			return err
		}
		c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "prometheus"}, Data: data}
		if _, err := cluster.Kube.CoreV1().ConfigMaps(monitoringNamespace).Create(ctx, c, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("cannot create the configuration of Prometheus: %w", err)
		}
		if err := apply(ctx, monitoringNamespace, "prometheus/server.yaml", nil); err != nil {
			return err
		}
		return podReady(ctx, monitoringNamespace, "prometheus")
	})
}

// podReady waits until a pod is ready.
func podReady(ctx context.Context, ns, name string) error {
	err := wait.For(func(ctx context.Context) (bool, error) {
		p, err := cluster.Kube.CoreV1().Pods(ns).Get(ctx, name, metav1.GetOptions{})
		return err == nil && harness.PodReady(p), err
	}, wait.WithContext(ctx), wait.WithTimeout(2*time.Minute), wait.WithInterval(time.Second), wait.WithImmediate())
	if err != nil {
		return fmt.Errorf("cannot wait for pod %s/%s to be ready: %w", ns, name, err)
	}
	return nil
}

// query queries Prometheus and returns the labels of the results.
func query(ctx context.Context, q string) ([]map[string]string, error) {
	raw, err := cluster.Kube.CoreV1().Pods(monitoringNamespace).ProxyGet("http", "prometheus", "9090", "/api/v1/query", map[string]string{"query": q}).DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot query Prometheus for %s: %w", q, err)
	}
	var a struct {
		Data struct {
			Result []struct {
				Metric map[string]string `json:"metric"`
			} `json:"result"`
		} `json:"data"`
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, fmt.Errorf("cannot decode what Prometheus answers to %s: %w", q, err)
	}
	var out []map[string]string
	for _, r := range a.Data.Result {
		out = append(out, r.Metric)
	}
	return out, nil
}

// answered waits until a query has at least so many results.
func answered(ctx context.Context, q string, least int) ([]map[string]string, error) {
	var have []map[string]string
	var last error
	err := wait.For(func(ctx context.Context) (bool, error) {
		have, last = query(ctx, q)
		return last == nil && len(have) >= least, nil
	}, wait.WithContext(ctx), wait.WithTimeout(2*time.Minute), wait.WithInterval(time.Second), wait.WithImmediate())
	if err != nil {
		return nil, fmt.Errorf("waited for %d answers of Prometheus to %s, there are %v: %w", least, q, have, errors.Join(last, err))
	}
	return have, nil
}

// webAppNamed creates a WebApp in the namespace of Prometheus.
func webAppNamed(ctx context.Context, name, image string) error {
	u := webApp(monitoringNamespace)
	u.SetName(name)
	// The frontend makes no request to its backend before a customer comes.
	backend := map[string]any{"name": "BACKEND_URL", "value": "http://127.0.0.1:1"}
	u.Object["spec"] = map[string]any{"image": image, "env": []any{backend}}
	_, err := cluster.Create(ctx, u)
	return err
}

func scrapes(ctx context.Context, n notes) error {
	if err := startPrometheus(ctx); err != nil {
		return err
	}
	if err := once.Do("well", func() error { return webAppNamed(ctx, "well", cluster.Registry+"/shop-frontend:v1") }); err != nil {
		return err
	}
	here := `namespace="` + monitoringNamespace + `",name="well"`
	var errs []error
	for q, least := range map[string]int{
		`up{job="storeplane-function"} == 1`:                             2,
		`up{job="storeplane-provider"} == 1`:                             2,
		`storeplane_function_call_duration_seconds_count{kind="WebApp"}`: 1,
		`storeplane_claim_info{` + here + `}`:                            1,
		`storeplane_claim_phase{` + here + `} == 1`:                      1,
		`controller_runtime_reconcile_total{job="storeplane-provider"}`:  1,
	} {
		have, err := answered(ctx, q, least)
		errs = append(errs, err)
		n.Addf("%s: %d", q, len(have))
	}
	return errors.Join(errs...)
}

func fires(ctx context.Context, n notes) error {
	if err := startPrometheus(ctx); err != nil {
		return err
	}
	if err := once.Do("well", func() error { return webAppNamed(ctx, "well", cluster.Registry+"/shop-frontend:v1") }); err != nil {
		return err
	}
	if _, err := answered(ctx, `storeplane_claim_ready{namespace="`+monitoringNamespace+`",name="well"} == 1`, 1); err != nil {
		return err
	}
	start := time.Now()
	if err := webAppNamed(ctx, "ill", cluster.Registry+"/shop-frontend:no-such-version"); err != nil {
		return err
	}
	firing := `ALERTS{alertstate="firing",alertname="StoreplaneClaimNotReady",namespace="` + monitoringNamespace + `"`
	if _, err := answered(ctx, firing+`,name="ill"}`, 1); err != nil {
		return err
	}
	n.Addf("StoreplaneClaimNotReady fires after %.0fs, where it waits for %s", time.Since(start).Seconds(), patience)
	if have, err := query(ctx, firing+`,name="well"}`); err != nil || len(have) > 0 {
		return errors.Join(err, fmt.Errorf("%d alerts fire for a claim that is well", len(have)))
	}
	all, err := query(ctx, `ALERTS{alertstate="firing"}`)
	if err != nil {
		return err
	}
	var names []string
	for _, a := range all {
		names = append(names, a["alertname"])
	}
	slices.Sort(names)
	n.Addf("all that fire: %s", strings.Join(slices.Compact(names), ", "))
	return nil
}
