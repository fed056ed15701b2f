package gate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Lookup reports whether a kind is served. It returns an error if that cannot be found out.
type Lookup func(schema.GroupVersionKind) (bool, error)

// In returns a Lookup in a REST mapper, which queries the API server for kinds that it does not
// have yet.
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
