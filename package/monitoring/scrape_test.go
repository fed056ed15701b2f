package monitoring

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/yaml"
)

const (
	podMonitorFile = "podmonitor-platform.yaml"
	scrapeFile     = "scrape.example.yaml"
)

// podMonitors returns the PodMonitors of the platform itself.
func podMonitors(t *testing.T) []monitoringv1.PodMonitor {
	t.Helper()
	b, err := os.ReadFile(podMonitorFile)
	if err != nil {
		t.Fatal(err)
	}
	var out []monitoringv1.PodMonitor
	for doc := range strings.SplitSeq(string(b), "\n---\n") {
		pm := monitoringv1.PodMonitor{}
		if err := yaml.UnmarshalStrict([]byte(doc), &pm); err != nil {
			t.Fatalf("cannot read %s: %v", podMonitorFile, err)
		}
		out = append(out, pm)
	}
	return out
}

// scraped is what selects the pods that a job scrapes, and whether their own labels take
// precedence.
type scraped struct {
	Label, Value, Port string
	HonorLabels        bool
}

var asked = regexp.MustCompile(`job=~?"([^"]+)"`)

// TestPodMonitors: the Prometheus operator scrapes the same as a plain Prometheus does, with the
// job names that the rules use.
func TestPodMonitors(t *testing.T) {
	got := map[string]scraped{}
	for _, pm := range podMonitors(t) {
		e := pm.Spec.PodMetricsEndpoints[0]
		keep, job := e.RelabelConfigs[0], e.RelabelConfigs[1]
		got[*job.Replacement] = scraped{Label: string(keep.SourceLabels[0]), Value: keep.Regex, Port: *e.Port, HonorLabels: e.HonorLabels}
	}

	plain := struct {
		Jobs []struct {
			Name        string `json:"job_name"`
			HonorLabels bool   `json:"honor_labels"`
			Relabel     []struct {
				SourceLabels []string `json:"source_labels"`
				Regex        string   `json:"regex"`
			} `json:"relabel_configs"`
		} `json:"scrape_configs"`
	}{}
	readYAML(t, scrapeFile, &plain, false)
	want := map[string]scraped{}
	for _, j := range plain.Jobs {
		if keep := j.Relabel[1]; strings.Contains(keep.SourceLabels[0], "pkg_crossplane_io") {
			value, port, _ := strings.Cut(keep.Regex, ";")
			want[j.Name] = scraped{Label: keep.SourceLabels[0], Value: value, Port: port, HonorLabels: j.HonorLabels}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-%s, +%s:\n%s", scrapeFile, podMonitorFile, diff)
	}

	for _, set := range ruleSets {
		for _, r := range alerts(readRules(t, set)) {
			for _, m := range asked.FindAllStringSubmatch(r.Expr, -1) {
				job := regexp.MustCompile("^(?:" + m[1] + ")$")
				if !slices.ContainsFunc(slices.Collect(maps.Keys(got)), job.MatchString) {
					t.Errorf("%s asks for job %q, which is not scraped", r.Alert, m[1])
				}
			}
		}
	}
}

// pods are targets as Prometheus' Kubernetes service discovery reports them, one for each port.
const pods = `
- {targets: ["10.0.0.1:8080"], labels: {namespace: crossplane-system, pod_name: function-0, pod_container_port_name: metrics, pod_label_pkg_crossplane_io_function: storeplane-function-storeplane}}
- {targets: ["10.0.0.1:9443"], labels: {namespace: crossplane-system, pod_name: function-0, pod_container_port_name: grpc, pod_label_pkg_crossplane_io_function: storeplane-function-storeplane}}
- {targets: ["10.0.0.2:8080"], labels: {namespace: crossplane-system, pod_name: function-gone, pod_phase: Succeeded, pod_container_port_name: metrics, pod_label_pkg_crossplane_io_function: storeplane-function-storeplane}}
- {targets: ["10.0.0.3:8080"], labels: {namespace: crossplane-system, pod_name: other-0, pod_container_port_name: metrics, pod_label_pkg_crossplane_io_function: function-other}}
- {targets: ["10.0.0.4:8080"], labels: {namespace: crossplane-system, pod_name: provider-0, pod_container_port_name: metrics, pod_label_pkg_crossplane_io_provider: mirror-storeplane-provider-storeplane}}
- {targets: ["10.0.0.5:8080"], labels: {namespace: crossplane-system, pod_name: crossplane-0, pod_container_port_name: metrics, pod_label_app: crossplane, pod_annotation_prometheus_io_scrape: "true"}}
- {targets: ["10.0.0.5:8081"], labels: {namespace: crossplane-system, pod_name: crossplane-0, pod_container_port_name: readyz, pod_label_app: crossplane, pod_annotation_prometheus_io_scrape: "true"}}
- {targets: ["10.0.0.6:9187"], labels: {namespace: shop, pod_name: orders-postgresql-0, pod_container_port_name: metrics, pod_label_app_kubernetes_io_component: postgresql, pod_label_app_kubernetes_io_managed_by: storeplane, pod_label_app_kubernetes_io_instance: orders}}
- {targets: ["10.0.0.6:8008"], labels: {namespace: shop, pod_name: orders-postgresql-0, pod_container_port_name: patroni, pod_label_app_kubernetes_io_component: postgresql, pod_label_app_kubernetes_io_managed_by: storeplane, pod_label_app_kubernetes_io_instance: orders}}
- {targets: ["10.0.0.6:5432"], labels: {namespace: shop, pod_name: orders-postgresql-0, pod_container_port_name: postgresql, pod_label_app_kubernetes_io_component: postgresql, pod_label_app_kubernetes_io_managed_by: storeplane, pod_label_app_kubernetes_io_instance: orders}}
- {targets: ["10.0.0.8:8009"], labels: {namespace: shop, pod_name: orders-repository-0, pod_container_port_name: metrics, pod_label_app_kubernetes_io_component: repository, pod_label_app_kubernetes_io_managed_by: storeplane, pod_label_app_kubernetes_io_instance: orders}}
- {targets: ["10.0.0.8:8432"], labels: {namespace: shop, pod_name: orders-repository-0, pod_container_port_name: repository, pod_label_app_kubernetes_io_component: repository, pod_label_app_kubernetes_io_managed_by: storeplane, pod_label_app_kubernetes_io_instance: orders}}
- {targets: ["10.0.0.9:8009"], labels: {namespace: shop, pod_name: orders-named-claim-0, pod_container_port_name: metrics, pod_label_app_kubernetes_io_component: named-claim, pod_label_app_kubernetes_io_managed_by: storeplane, pod_label_app_kubernetes_io_instance: orders}}
- {targets: ["10.0.0.7:9187"], labels: {namespace: shop, pod_name: other-0, pod_container_port_name: metrics, pod_label_app_kubernetes_io_component: postgresql, pod_label_app_kubernetes_io_instance: other}}
`

// TestScrape: Prometheus itself reports which of these pods it would scrape. Not every build of it
// supports Kubernetes service discovery, so the pods are read from a file.
func TestScrape(t *testing.T) {
	t.Parallel()
	tool, dir := promtool(t), t.TempDir()

	var targets []struct {
		Targets []string          `json:"targets"`
		Labels  map[string]string `json:"labels"`
	}
	if err := yaml.UnmarshalStrict([]byte(pods), &targets); err != nil {
		t.Fatal(err)
	}
	for i, target := range targets {
		labels := map[string]string{"__meta_kubernetes_pod_phase": "Running"}
		for k, v := range target.Labels {
			labels["__meta_kubernetes_"+k] = v
		}
		targets[i].Labels = labels
	}
	file := filepath.Join(dir, "pods.yaml")
	write(t, file, targets)

	config := map[string]any{}
	readYAML(t, scrapeFile, &config, true)
	for _, j := range config["scrape_configs"].([]any) {
		job, ok := j.(map[string]any)
		if !ok || job["kubernetes_sd_configs"] == nil {
			t.Fatalf("%s: a job does not discover its targets by Kubernetes: %v", scrapeFile, j)
		}
		delete(job, "kubernetes_sd_configs")
		job["file_sd_configs"] = []any{map[string]any{"files": []any{file}}}
	}
	configFile := filepath.Join(dir, "prometheus.yaml")
	write(t, configFile, config)
	if out, err := exec.CommandContext(t.Context(), tool, "check", "config", configFile).CombinedOutput(); err != nil {
		t.Fatalf("promtool check config: %v\n%s", err, out)
	}

	for job, want := range map[string][]map[string]string{
		"storeplane-function": {{"instance": "10.0.0.1:8080", "namespace": "crossplane-system", "pod": "function-0"}},
		"storeplane-provider": {{"instance": "10.0.0.4:8080", "namespace": "crossplane-system", "pod": "provider-0"}},
		"crossplane":          {{"instance": "10.0.0.5:8080", "namespace": "crossplane-system", "pod": "crossplane-0"}},
		// Patroni serves TLS.
		"storeplane-databasecluster": {{
			"instance": "10.0.0.6:8008", "namespace": "shop", "pod": "orders-postgresql-0", "endpoint": "patroni", "databasecluster": "orders", "__scheme__": "https",
		}, {
			"instance": "10.0.0.6:9187", "namespace": "shop", "pod": "orders-postgresql-0", "endpoint": "metrics", "databasecluster": "orders",
		}, {
			"instance": "10.0.0.8:8009", "namespace": "shop", "pod": "orders-repository-0", "endpoint": "metrics", "databasecluster": "orders",
		}, {
			"instance": "10.0.0.9:8009", "namespace": "shop", "pod": "orders-named-claim-0", "endpoint": "metrics", "databasecluster": "orders",
		}},
	} {
		t.Run(job, func(t *testing.T) {
			t.Parallel()
			for i := range want {
				want[i]["job"] = job
				if want[i]["__scheme__"] == "" {
					want[i]["__scheme__"] = "http"
				}
			}
			got := discovered(t, tool, configFile, job)
			slices.SortFunc(got, func(a, b map[string]string) int { return strings.Compare(a["instance"], b["instance"]) })
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

// discovered returns the targets of a job with their final labels.
func discovered(t *testing.T, tool, config, job string) []map[string]string {
	t.Helper()
	b, err := exec.CommandContext(t.Context(), tool, "check", "service-discovery", "--timeout=5s", config, job).Output()
	if err != nil {
		t.Fatalf("promtool check service-discovery: %v\n%s", err, b)
	}
	var found []struct {
		Labels map[string]string `json:"labels"`
	}
	if err := json.Unmarshal(b, &found); err != nil {
		t.Fatalf("cannot read promtool's answer: %v\n%s", err, b)
	}
	var out []map[string]string
	for _, f := range found {
		maps.DeleteFunc(f.Labels, func(name, _ string) bool { return strings.HasPrefix(name, "__") && name != "__scheme__" })
		if len(f.Labels) > 0 {
			out = append(out, f.Labels)
		}
	}
	return out
}
