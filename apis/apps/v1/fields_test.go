package v1

import (
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
