package v1

import (
	"os"
	"reflect"
	"slices"
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

// TestEngineFields: a table shows what each field of a DatabaseCluster is with each engine, down to the fields of its
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
	named := map[string]int{}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		if len(cells) != 3 || strings.TrimSpace(cells[1]) == "" || strings.TrimSpace(cells[2]) == "" {
			t.Errorf("The table of engines does not have three cells in %q", line)
		}
		prefix := ""
		for name := range strings.SplitSeq(strings.TrimSpace(cells[0]), ", ") {
			name = strings.Trim(name, "`")
			if group, _, ok := strings.Cut(name, "."); ok {
				prefix = group + "."
			} else {
				name = prefix + name
			}
			named[name]++
		}
	}
	// A row of each field, or of the fields that an object of it has.
	want := jsonFields("", DatabaseClusterSpec{})
	for prefix, of := range map[string]any{"backup.": DatabaseBackup{}, "restoreFrom.": RestoreFrom{}} {
		want = slices.DeleteFunc(want, func(name string) bool { return name == strings.TrimSuffix(prefix, ".") })
		want = append(want, jsonFields(prefix, of)...)
	}
	also := slices.Concat(jsonFields("users[].", DatabaseUser{}), jsonFields("databases[].", Database{}))
	for _, name := range want {
		if named[name] != 1 {
			t.Errorf("The table of engines has %d rows for %s, and not one", named[name], name)
		}
	}
	for name := range named {
		if !slices.Contains(want, name) && !slices.Contains(also, name) {
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
