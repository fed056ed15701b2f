package monitoring

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// dashboard is the part of a Grafana dashboard that the tests read.
type dashboard struct {
	UID        string  `json:"uid"`
	Title      string  `json:"title"`
	Panels     []panel `json:"panels"`
	Templating struct {
		List []struct {
			Name       string          `json:"name"`
			Type       string          `json:"type"`
			Datasource json.RawMessage `json:"datasource"`
			Definition string          `json:"definition"`
		} `json:"list"`
	} `json:"templating"`
}

type panel struct {
	ID         int        `json:"id"`
	Type       string     `json:"type"`
	Title      string     `json:"title"`
	Datasource datasource `json:"datasource"`
	GridPos    grid       `json:"gridPos"`
	Targets    []struct {
		RefID      string     `json:"refId"`
		Expr       string     `json:"expr"`
		Datasource datasource `json:"datasource"`
	} `json:"targets"`
}

type datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

type grid struct {
	X int `json:"x"`
	Y int `json:"y"`
	W int `json:"w"`
	H int `json:"h"`
}

func (g grid) overlaps(o grid) bool {
	return g.X < o.X+o.W && o.X < g.X+g.W && g.Y < o.Y+o.H && o.Y < g.Y+g.H
}

func readDashboard(t *testing.T, f dashboardFile) dashboard {
	t.Helper()
	d := dashboard{}
	readJSON(t, f.file, &d)
	return d
}

type query struct{ panel, expr string }

func queries(d dashboard) []query {
	out := make([]query, 0)
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			out = append(out, query{panel: p.Title, expr: target.Expr})
		}
	}
	return out
}

var labelValues = regexp.MustCompile(`^label_values\((.+), *(\w+)\)$`)

// TestDashboards: dashboards can be imported anywhere, and query only metrics that exist.
func TestDashboards(t *testing.T) {
	metrics, uids := known(t), map[string]string{}
	for _, f := range dashboardFiles {
		t.Run(f.file, func(t *testing.T) {
			d := readDashboard(t, f)
			if d.UID == "" || d.Title == "" || uids[d.UID] != "" {
				t.Errorf("it has uid %q and title %q, and so has %q", d.UID, d.Title, uids[d.UID])
			}
			uids[d.UID] = f.file
			checkVariables(t, f, d, metrics)
			checkPanels(t, d)
			checkQueries(t, f, d, metrics)
		})
	}
}

func checkVariables(t *testing.T, f dashboardFile, d dashboard, metrics map[string]string) {
	t.Helper()
	variables := make([]string, 0)
	for _, v := range d.Templating.List {
		variables = append(variables, v.Name+" "+v.Type)
		if v.Type != "query" {
			continue
		}
		m := labelValues.FindStringSubmatch(v.Definition)
		if m == nil {
			t.Errorf("variable %s is defined as %q", v.Name, v.Definition)
			continue
		}
		for _, name := range metricsOf(m[1]) {
			if metrics[name] == "" {
				t.Errorf("variable %s: no program exports %s: it is not in %s", v.Name, name, metricsFile)
			}
		}
	}
	if diff := cmp.Diff(f.variables, variables); diff != "" {
		t.Errorf("the variables are chosen one after the other\n-want, +got:\n%s", diff)
	}
}

func checkPanels(t *testing.T, d dashboard) {
	t.Helper()
	chosen := datasource{Type: "prometheus", UID: "${datasource}"}
	ids := map[int]string{}
	for i, p := range d.Panels {
		if other, ok := ids[p.ID]; ok {
			t.Errorf("panels %q and %q have the same id", other, p.Title)
		}
		ids[p.ID] = p.Title
		for _, o := range d.Panels[:i] {
			if p.GridPos.overlaps(o.GridPos) {
				t.Errorf("panel %q lies over %q", p.Title, o.Title)
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Datasource != chosen {
			t.Errorf("panel %q does not use the chosen data source", p.Title)
		}
		for _, target := range p.Targets {
			if target.Datasource != chosen {
				t.Errorf("panel %q, query %s does not use the chosen data source", p.Title, target.RefID)
			}
		}
	}
}

func checkQueries(t *testing.T, f dashboardFile, d dashboard, metrics map[string]string) {
	t.Helper()
	for _, q := range queries(d) {
		names := metricsOf(q.expr)
		if len(names) == 0 {
			t.Errorf("panel %q asks for no metric: %s", q.panel, q.expr)
		}
		for _, name := range names {
			if metrics[name] == "" {
				t.Errorf("panel %q: no program exports %s: it is not in %s", q.panel, name, metricsFile)
			}
		}
		for _, n := range f.narrowed {
			if !strings.Contains(q.expr, n) {
				t.Errorf("panel %q shows more than what is chosen by %s: %s", q.panel, n, q.expr)
			}
		}
	}
}
