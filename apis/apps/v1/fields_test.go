package v1

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// TestFields: every status has the fields by which programs read it.
func TestFields(t *testing.T) {
	for _, status := range []any{DatabaseClusterStatus{}, WebAppStatus{}} {
		has := map[string]bool{}
		for _, f := range reflect.VisibleFields(reflect.TypeOf(status)) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			has[name] = true
		}
		for _, name := range []string{
			FieldPhase, FieldMessage, FieldPodFailure, FieldObservedGeneration, FieldReadyGeneration, FieldAcceptedSettings, FieldRelease, FieldPendingRelease,
		} {
			if !has[name] {
				t.Errorf("%T has no field %s", status, name)
			}
		}
	}
}

// TestEngineFields: a table says what each field of a DatabaseCluster is with each engine, down to the fields of its
// objects that engines differ in.
func TestEngineFields(t *testing.T) {
	page, err := os.ReadFile("../../../docs/databasecluster.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "<!-- engines -->")
	table, _, ended := strings.Cut(table, "<!-- end of engines -->")
	if !ended {
		t.Fatal("docs/databasecluster.md has no table of engines")
	}
	named := map[string]bool{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, " | ")
		if len(cells) != 3 || !strings.HasPrefix(line, "| `") {
			continue
		}
		prefix := ""
		for _, name := range strings.Split(strings.TrimPrefix(cells[0], "| "), ", ") {
			name = strings.Trim(name, "`")
			if group, _, ok := strings.Cut(name, "."); ok {
				prefix = group + "."
				named[strings.TrimSuffix(group, "[]")] = true
			} else if prefix != "" {
				name = prefix + name
			}
			named[name] = true
		}
	}
	want := jsonFields("", DatabaseClusterSpec{})
	want = append(want, jsonFields("backup.", DatabaseBackup{})...)
	want = append(want, jsonFields("restoreFrom.", RestoreFrom{})...)
	for _, name := range want {
		if !named[name] {
			t.Errorf("The table of engines has no row for %s", name)
		}
		delete(named, name)
	}
	for name := range named {
		if !strings.Contains(name, "[].") {
			t.Errorf("The table of engines has %s, which is no field", name)
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
