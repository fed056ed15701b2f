package databasecluster_test

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/functions/functionstest"
)

// engineCells returns the cells of the table that shows what each field is with each engine, by
// field and engine.
func engineCells(t *testing.T) map[string]map[string]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/databasecluster.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "<!-- engines -->")
	table, _, ended := strings.Cut(table, "<!-- end of engines -->")
	if !ended {
		t.Fatal("docs/databasecluster.md has no table of engines")
	}
	out := map[string]map[string]string{}
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(cells) != 3 || strings.TrimSpace(cells[1]) == "" || strings.TrimSpace(cells[2]) == "" {
			t.Fatalf("the table of engines does not have three cells in %q", line)
		}
		group := ""
		for name := range strings.SplitSeq(strings.TrimSpace(cells[0]), ", ") {
			name = strings.Trim(name, "`")
			if before, _, ok := strings.Cut(name, "."); ok {
				group = before + "."
			} else {
				name = group + name
			}
			if out[name] != nil {
				t.Errorf("the table of engines has two rows for %s", name)
			}
			out[name] = map[string]string{"postgresql": cells[1], "mysql": cells[2]}
		}
	}
	return out
}

// TestEngineFields: the table has a row for each field of a DatabaseCluster, or for the fields that
// an object of it has.
func TestEngineFields(t *testing.T) {
	cells := engineCells(t)
	want := jsonFields("", appsv1.DatabaseClusterSpec{})
	for prefix, of := range map[string]any{"backup.": appsv1.DatabaseBackup{}, "restoreFrom.": appsv1.RestoreFrom{}} {
		want = slices.DeleteFunc(want, func(name string) bool { return name == strings.TrimSuffix(prefix, ".") })
		want = append(want, jsonFields(prefix, of)...)
	}
	also := slices.Concat(jsonFields("users[].", appsv1.DatabaseUser{}), jsonFields("databases[].", appsv1.Database{}))
	for _, name := range want {
		if cells[name] == nil {
			t.Errorf("the table of engines has no row for %s", name)
		}
	}
	for name := range cells {
		if !slices.Contains(want, name) && !slices.Contains(also, name) {
			t.Errorf("the table of engines has %s, which is no field", name)
		}
	}
}

// jsonFields returns the names of the fields of a struct, with a prefix.
func jsonFields(prefix string, of any) []string {
	var out []string
	for _, f := range reflect.VisibleFields(reflect.TypeOf(of)) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			out = append(out, prefix+name)
		}
	}
	return out
}

// TestEngineRefusals: what the table calls refused is refused, with a message that begins with the
// field. The rest of each case is accepted, but for credentials, which do not exist here.
func TestEngineRefusals(t *testing.T) {
	const (
		postgresql = "engine: postgresql, version: '17'"
		mysql      = "engine: mysql, version: '9.7'"
		s3         = "destination: {type: s3, bucket: b, secretRef: {name: store}}"
		from       = "destination: {type: s3, bucket: b, secretRef: {name: store}}, name: other"
	)
	type pair struct{ refused, accepted string }
	// A pair for each statement of a cell: specs that differ only in what is refused.
	cases := map[string]map[string][]pair{
		"size": {"mysql": {
			{"{" + mysql + ", size: 2}", "{" + mysql + ", size: 3}"},
			{"{" + mysql + ", size: 4}", "{" + mysql + ", size: 5}"},
		}},
		"resources": {"mysql": {
			{"{" + mysql + ", size: 1, resources: {limits: {memory: 767Mi}}}", "{" + mysql + ", size: 1, resources: {limits: {memory: 768Mi}}}"},
		}},
		"parameters": {"mysql": {
			{"{" + mysql + ", size: 3, parameters: {group_replication_consistency: EVENTUAL}}", "{" + mysql + ", size: 3}"},
			{"{" + mysql + ", size: 1, parameters: {sync_binlog: '0'}}", "{" + mysql + ", size: 1, parameters: {sort_buffer_size: '524288'}}"},
			{"{" + mysql + ", size: 1, parameters: {datadir: /tmp}}", "{" + mysql + ", size: 1}"},
			{"{" + mysql + ", size: 1, parameters: {plugin_load: x.so}}", "{" + mysql + ", size: 1}"},
			{"{" + mysql + ", size: 1, parameters: {max_connections: '39'}}", "{" + mysql + ", size: 1, parameters: {max_connections: '40'}}"},
			{"{" + mysql + ", size: 1, parameters: {binlog_expire_logs_seconds: '86399'}, backup: {enabled: true, method: physical, " + s3 + "}}", "{" + mysql + ", size: 1, parameters: {binlog_expire_logs_seconds: '86400'}, backup: {enabled: true, method: physical, " + s3 + "}}"},
		}},
		"synchronous": {"mysql": {
			{"{" + mysql + ", size: 3, synchronous: false}", "{" + mysql + ", size: 3, synchronous: true}"},
			{"{" + mysql + ", size: 1, synchronous: true}", "{" + mysql + ", size: 1, synchronous: false}"},
		}},
		"synchronousMode": {"mysql": {
			{"{" + mysql + ", size: 3, synchronousMode: strict}", "{" + mysql + ", size: 3, synchronousMode: quorum}"},
		}},
		"databases[].extensions": {"mysql": {
			{"{" + mysql + ", size: 1, databases: [{name: reports, extensions: [postgis]}]}", "{" + mysql + ", size: 1, databases: [{name: reports}]}"},
		}},
		"backup.method": {"postgresql": {
			{"{" + postgresql + ", size: 1, backup: {enabled: true, method: logical, " + s3 + "}}", "{" + postgresql + ", size: 1, backup: {enabled: true, method: physical, " + s3 + "}}"},
		}},
		"backup.incrementalSchedule": {"mysql": {
			{"{" + mysql + ", size: 1, backup: {enabled: true, incrementalSchedule: '@hourly', " + s3 + "}}", "{" + mysql + ", size: 1, backup: {enabled: true, schedule: '@hourly', " + s3 + "}}"},
			{"{" + mysql + ", size: 1, backup: {enabled: true, method: physical, incrementalSchedule: '@hourly', " + s3 + "}}", "{" + mysql + ", size: 1, backup: {enabled: true, method: physical, " + s3 + "}}"},
		}},
		"backup.storageSize": {"mysql": {
			{"{" + mysql + ", size: 1, backup: {enabled: true, storageSize: 5Gi, destination: {type: volume, bucket: disk}}}", "{" + mysql + ", size: 1, backup: {enabled: true, destination: {type: volume, bucket: disk}}}"},
		}},
		"restoreFrom.id": {"postgresql": {
			{"{" + postgresql + ", size: 1, restoreFrom: {id: 20260101-020000F, " + from + "}}", "{" + postgresql + ", size: 1, restoreFrom: {" + from + "}}"},
		}},
		"restoreFrom.beforeTransaction": {"postgresql": {
			{"{" + postgresql + ", size: 1, restoreFrom: {beforeTransaction: '3e11fa47-71ca-11e1-9e33-c80aa9429562:23', " + from + "}}", "{" + postgresql + ", size: 1, restoreFrom: {time: '2026-01-01T00:00:00Z', " + from + "}}"},
		}},
	}
	cells := engineCells(t)
	for field, engines := range cells {
		for engine, cell := range engines {
			if has := len(cases[field][engine]) > 0; strings.Contains(cell, "refused") != has {
				t.Errorf("%s with engine %s: the table of engines has %q, and this test has cases: %t", field, engine, strings.TrimSpace(cell), has)
			}
		}
	}
	for field, engines := range cases {
		of, leaf, dotted := strings.Cut(field, ".")
		of = strings.TrimSuffix(of, "[]")
		names := func(message string) bool {
			return strings.HasPrefix(message, of) && (!dotted || strings.Contains(message, "."+leaf+" "))
		}
		for engine, pairs := range engines {
			for _, p := range pairs {
				if got := functionstest.Refused(t, functionstest.DatabaseCluster(p.refused)); !names(got) {
					t.Errorf("%s with engine %s, %s: want a refusal that names it, got %q", field, engine, p.refused, got)
				}
				if got := functionstest.Refused(t, functionstest.DatabaseCluster(p.accepted)); got != "" && !strings.Contains(got, "Secret store of namespace team") {
					t.Errorf("%s with engine %s, %s: want it accepted, got %q", field, engine, p.accepted, got)
				}
			}
		}
	}
}
