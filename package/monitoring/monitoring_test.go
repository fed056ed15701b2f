// Package monitoring checks the alerts and the dashboards for what Storeplane runs
// and for Storeplane itself: that they name only metrics that somebody exports,
// that each alert says what to do, and, where promtool is to be had, that each
// fires when it should.
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
	// kind that the names of the alerts start with.
	kind string

	file, tests string

	// page that says what to do about each alert.
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

	// variables that are chosen one after the other, with their types.
	variables []string

	// narrowed to is what each query asks for, so that it shows nothing else.
	narrowed []string
}

var dashboardFiles = []dashboardFile{
	{file: "dashboard-databasecluster.json", variables: []string{"datasource datasource", "namespace query", "databasecluster query"}, narrowed: []string{`"$namespace"`, "$databasecluster"}},
	{file: "dashboard-platform.json", variables: []string{"datasource datasource", "namespace query"}},
}

const (
	pages    = "../../docs/"
	pagesURL = "https://github.com/storeplane/storeplane/blob/main/docs/"
)

// prometheusRule is what we write of monitoring.coreos.com/v1 PrometheusRule.
type prometheusRule struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Metadata   map[string]any `json:"metadata"`
	Spec       ruleGroups     `json:"spec"`
}

// ruleGroups is also what Prometheus itself reads.
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

// testFile is what we read of promtool's tests.
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

// known metrics by the one who exports them.
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

// metricsOf an expression: the names that are left when all that is no metric
// has been taken out of it.
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
