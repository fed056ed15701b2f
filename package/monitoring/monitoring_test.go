// Package monitoring checks the alerts and dashboards for what Storeplane runs and for Storeplane
// itself: that they use only metrics that are exported, that each alert links to documentation,
// and, if promtool is installed, that each alert fires when it should.
package monitoring

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

const metricsFile = "metrics.yaml"

// ruleSet is a file of alerts about one kind.
type ruleSet struct {
	// kind is the prefix of the names of the alerts.
	kind string

	file, tests string

	// page documents what to do about each alert.
	page string
}

var ruleSets = []ruleSet{
	{kind: "DatabaseCluster", file: "prometheusrule-databasecluster.yaml", tests: "tests/*.yaml", page: "databasecluster.md"},
	{kind: "Backup", file: "prometheusrule-backup.yaml", tests: "tests/backup/*.yaml", page: "backup.md"},
	{kind: "EcommercePlatform", file: "prometheusrule-ecommerceplatform.yaml", tests: "tests/ecommerceplatform/*.yaml", page: "ecommerceplatform.md"},
	{kind: "Storeplane", file: "prometheusrule-platform.yaml", tests: "tests/platform/*.yaml", page: "monitoring.md"},
}

// dashboardFile is a dashboard.
type dashboardFile struct {
	file string

	// variables are chosen one after the other, and have their types after their names.
	variables []string

	// narrowed are the selections that each query must contain, so that it shows nothing else.
	narrowed []string
}

var dashboardFiles = []dashboardFile{
	{file: "dashboard-databasecluster.json", variables: []string{"datasource datasource", "namespace query", "databasecluster query"}, narrowed: []string{`"$namespace"`, "$databasecluster"}},
	{file: "dashboard-databasecluster-mysql.json", variables: []string{"datasource datasource", "namespace query", "databasecluster query"}, narrowed: []string{`"$namespace"`, "$databasecluster"}},
	{file: "dashboard-platform.json", variables: []string{"datasource datasource", "namespace query"}},
}

const (
	pages    = "../../docs/"
	pagesURL = "https://github.com/storeplane/storeplane/blob/main/docs/"
)

// prometheusRule is the part of a PrometheusRule of monitoring.coreos.com/v1 that Storeplane sets.
type prometheusRule struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   map[string]any `json:"metadata"`
	Spec       ruleGroups     `json:"spec"`
}

// ruleGroups is also the format that Prometheus itself reads.
type ruleGroups struct {
	Groups []ruleGroup `json:"groups"`
}

type ruleGroup struct {
	Name  string `json:"name"`
	Rules []rule `json:"rules"`
}

type rule struct {
	Alert       string            `json:"alert,omitempty"`
	Record      string            `json:"record,omitempty"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// testFile is the part of promtool's tests that these tests read.
type testFile struct {
	Tests []struct {
		Name  string `json:"name"`
		Cases []struct {
			EvalTime string           `json:"eval_time"`
			Alert    string           `json:"alertname"`
			Expected []map[string]any `json:"exp_alerts"`
		} `json:"alert_rule_test"`
	} `json:"tests"`
}

func readRules(t *testing.T, set ruleSet) ruleGroups {
	t.Helper()
	r := prometheusRule{}
	readYAML(t, set.file, &r, true)
	if r.APIVersion != "monitoring.coreos.com/v1" || r.Kind != "PrometheusRule" {
		t.Fatalf("%s is a %s %s", set.file, r.APIVersion, r.Kind)
	}
	return r.Spec
}

func alerts(g ruleGroups) []rule {
	out := make([]rule, 0)
	for _, group := range g.Groups {
		out = append(out, group.Rules...)
	}
	return out
}

// known returns the listed metrics with their exporters.
func known(t *testing.T) map[string]string {
	t.Helper()
	var sources []struct {
		Source  string   `json:"source"`
		Metrics []string `json:"metrics"`
	}
	readYAML(t, metricsFile, &sources, true)
	out := map[string]string{}
	for _, s := range sources {
		for _, m := range s.Metrics {
			if other, ok := out[m]; ok {
				t.Errorf("%s has %s twice: from %q and from %q", metricsFile, m, other, s.Source)
			}
			out[m] = s.Source
		}
	}
	return out
}

var (
	literals = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	ranges   = regexp.MustCompile(`\[[^\]]*\]`)
	clauses  = regexp.MustCompile(`\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)`)
	matchers = regexp.MustCompile(`\{[^}]*\}`)
	names    = regexp.MustCompile(`\b([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(\(?)`)
	words    = []string{"and", "or", "unless", "bool", "offset", "inf", "nan"}
)

// metricsOf returns the names of the metrics in an expression: all names, after everything else is
// removed.
func metricsOf(expr string) []string {
	for _, r := range []*regexp.Regexp{literals, ranges, clauses, matchers} {
		expr = r.ReplaceAllString(expr, " ")
	}
	out := make([]string, 0)
	for _, m := range names.FindAllStringSubmatch(expr, -1) {
		isFunction := m[2] != ""
		if isFunction || slices.Contains(words, m[1]) || slices.Contains(out, m[1]) {
			continue
		}
		out = append(out, m[1])
	}
	return out
}

func readYAML(t *testing.T, path string, into any, strict bool) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	unmarshal := yaml.Unmarshal
	if strict {
		unmarshal = yaml.UnmarshalStrict
	}
	if err := unmarshal(b, into); err != nil {
		t.Fatalf("cannot read %s: %v", path, err)
	}
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatalf("cannot read %s: %v", path, err)
	}
}
