package gate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Lookup tells whether a kind is served. It is an error when nobody can tell.
type Lookup func(schema.GroupVersionKind) (bool, error)

// In asks a REST mapper, which asks the API server about what it does not know.
func In(m meta.RESTMapper) Lookup {
	return func(k schema.GroupVersionKind) (bool, error) {
		_, err := m.RESTMapping(k.GroupKind(), k.Version)
		if meta.IsNoMatchError(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("cannot find out whether %s is served: %w", k.Kind, err)
		}
		return true, nil
	}
}
