package monitoring

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// promtool returns the path of promtool, which is part of Prometheus. make test gets it from
// Debian's package if it is not installed.
func promtool(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		// Other tests check without promtool that every alert has test series and uses only known
		// metrics.
		t.Skip("promtool is not on the PATH, so the rules are not tried on series: hack/promtool.sh says where it is, on Debian")
	}
	return path
}

// TestFires: the rules pass promtool's tests in tests/.
func TestFires(t *testing.T) {
	tool := promtool(t)
	for _, set := range ruleSets {
		dir := t.TempDir()
		// promtool does not read the Kubernetes object, but only its groups.
		write(t, filepath.Join(dir, "rules.yaml"), readRules(t, set))
		files, err := filepath.Glob(set.tests)
		if err != nil || len(files) == 0 {
			t.Fatalf("cannot find %s: %v", set.tests, err)
		}
		for _, f := range files {
			t.Run(set.kind+"/"+strings.TrimSuffix(filepath.Base(f), ".yaml"), func(t *testing.T) {
				b, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				file := filepath.Join(dir, filepath.Base(f))
				if err := os.WriteFile(file, b, 0o600); err != nil {
					t.Fatal(err)
				}
				if out, err := exec.CommandContext(t.Context(), tool, "test", "rules", file).CombinedOutput(); err != nil {
					t.Errorf("promtool test rules %s: %v\n%s", f, err, out)
				}
			})
		}
	}
}

// TestSyntax: the parser of Prometheus accepts all expressions, also those of the dashboards, which
// are checked as rules.
func TestSyntax(t *testing.T) {
	tool, file := promtool(t), filepath.Join(t.TempDir(), "rules.yaml")

	g := ruleGroups{}
	for _, set := range ruleSets {
		g.Groups = append(g.Groups, readRules(t, set).Groups...)
	}
	chosen := strings.NewReplacer("$namespace", "shop", "$databasecluster", "orders", "$__rate_interval", "5m")
	for n, f := range dashboardFiles {
		asked := ruleGroup{Name: f.file}
		for i, q := range queries(readDashboard(t, f)) {
			asked.Rules = append(asked.Rules, rule{Record: fmt.Sprintf("dashboard:query:%d:%d", n, i), Expr: chosen.Replace(q.expr)})
		}
		g.Groups = append(g.Groups, asked)
	}
	write(t, file, g)
	if out, err := exec.CommandContext(t.Context(), tool, "check", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("promtool check rules: %v\n%s", err, out)
	}
}

func write(t *testing.T, path string, v any) {
	t.Helper()
	b, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
