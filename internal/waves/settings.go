package waves

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SettingsKind is the kind of the installation's settings, which are one object named SettingsName.
var SettingsKind = schema.GroupVersionKind{Group: "apiextensions.crossplane.io", Version: "v1beta1", Kind: "EnvironmentConfig"}

// SettingsName is the name of the installation's settings.
const SettingsName = "storeplane"

// Of returns the waves in the installation's settings, or none if these are nil. Waves that cannot
// be used are an error.
func Of(settings *unstructured.Unstructured) ([]Wave, error) {
	if settings == nil {
		return nil, nil
	}
	list, ok, err := unstructured.NestedFieldNoCopy(settings.Object, "data", "upgrades", "waves")
	if err != nil || !ok {
		return nil, err
	}
	b, err := json.Marshal(list)
	if err != nil {
		return nil, fmt.Errorf("cannot use EnvironmentConfig %s: data.upgrades.waves: %w", SettingsName, err)
	}
	var raw []map[string]any
	var out []Wave
	for _, into := range []any{&raw, &out} {
		if err := json.Unmarshal(b, into); err != nil {
			return nil, fmt.Errorf("cannot use EnvironmentConfig %s: data.upgrades.waves: %w", SettingsName, err)
		}
	}
	if err := CheckFields(raw); err != nil {
		return nil, fmt.Errorf("cannot use EnvironmentConfig %s: data.upgrades.waves%w", SettingsName, err)
	}
	if err := Check(out); err != nil {
		return nil, fmt.Errorf("cannot use EnvironmentConfig %s: data.upgrades.waves%w", SettingsName, err)
	}
	return out, nil
}
