package monitoring

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMetricsOf(t *testing.T) {
	cases := map[string]struct {
		reason string
		expr   string
		want   []string
	}{
		"Function":  {reason: "A function is no metric.", expr: `max(rate(pg_up[5m]))`, want: []string{"pg_up"}},
		"Labels":    {reason: "Neither are labels, of matchers or of clauses.", expr: `sum by (pod) (up{pod=~"a{2}"}) / on (namespace, pod) group_left (x) pg_up`, want: []string{"up", "pg_up"}},
		"Operators": {reason: "Nor operators, durations and numbers.", expr: `a offset 5m and b unless c > 1e3 or bool_metric`, want: []string{"a", "b", "c", "bool_metric"}},
		"Variables": {reason: "Nor what Grafana puts into strings and ranges.", expr: `rate(a{namespace="$namespace"}[$__rate_interval])`, want: []string{"a"}},
		"Twice":     {reason: "Each is named once.", expr: `a > 0 and a < 1`, want: []string{"a"}},
		"None":      {reason: "A number is none.", expr: `time() - 5`, want: []string{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, metricsOf(tc.expr)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestMetricsUsed: each listed metric is used by a rule or a dashboard.
func TestMetricsUsed(t *testing.T) {
	used := map[string]bool{}
	for _, set := range ruleSets {
		for _, r := range alerts(readRules(t, set)) {
			for _, m := range metricsOf(r.Expr) {
				used[m] = true
			}
		}
	}
	for _, f := range dashboardFiles {
		for _, q := range queries(readDashboard(t, f)) {
			for _, m := range metricsOf(q.expr) {
				used[m] = true
			}
		}
	}
	for m, source := range known(t) {
		if !used[m] {
			t.Errorf("%s lists %s of %s, and neither a rule nor a dashboard uses it", metricsFile, m, source)
		}
	}
}
