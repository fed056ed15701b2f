package guardrails

import (
	"fmt"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	platformv1 "github.com/storeplane/storeplane/apis/platform/v1"
	"github.com/storeplane/storeplane/internal/compose"
)

// Of returns the subject of a claim of any kind.
func Of(c *compose.Claim) (Subject, error) {
	switch c.Kind() {
	case platformv1.EcommercePlatformKind:
		return read(c, EcommercePlatform)
	case appsv1.WebAppKind:
		return read(c, WebApp)
	case appsv1.DatabaseClusterKind:
		return read(c, DatabaseCluster)
	default:
		return Subject{}, fmt.Errorf("cannot judge %s: there are no rules for that kind", c.Kind())
	}
}

func read[T any](c *compose.Claim, of func(string, *T) Subject) (Subject, error) {
	spec := new(T)
	if err := c.Spec(spec); err != nil {
		return Subject{}, err
	}
	return of(c.Namespace(), spec), nil
}
