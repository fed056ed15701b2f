package ecommerceplatform

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	platformv1 "github.com/storeplane/storeplane/apis/platform/v1"
	"github.com/storeplane/storeplane/internal/label"
)

// defaultVersions are the versions of a claim that names none. They never change: another version
// is another database.
var defaultVersions = map[appsv1.Engine]appsv1.Version{appsv1.PostgreSQL: "17", appsv1.MySQL: "9.7"}

// database returns the DatabaseCluster, which only the backend's pods can reach.
func (s *shop) database() *appsv1.DatabaseCluster {
	spec := s.spec.Database
	if spec == nil {
		spec = &platformv1.Database{}
	}
	engine := cmp.Or(spec.Type, appsv1.PostgreSQL)
	size := s.profile.DatabaseSize
	if engine == appsv1.MySQL && size%2 == 0 {
		// A group of an even size survives the loss of no more servers than a smaller one.
		size++
	}
	if spec.Size != nil {
		size = *spec.Size
	}
	return &appsv1.DatabaseCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.GroupVersion.String(), Kind: appsv1.DatabaseClusterKind},
		ObjectMeta: s.Meta(database, "databasecluster"),
		Spec: appsv1.DatabaseClusterSpec{
			Size:        size,
			Version:     cmp.Or(spec.Version, defaultVersions[engine]),
			Engine:      engine,
			Environment: environment(&s.spec),
			StorageSize: spec.Storage,
			Monitoring:  s.spec.Monitoring,
			Maintenance: s.spec.Maintenance,
			// All other options are those of the kind DatabaseCluster.
			DatabaseOptions: spec.DatabaseOptions,
			// The database is as protected as the EcommercePlatform, since each
			// can be deleted by itself.
			DeletionProtection: new(s.protected()),
			Clients:            map[string]string{label.Instance: s.Name(backend)},
		},
	}
}

func environment(s *platformv1.EcommercePlatformSpec) appsv1.Environment {
	if s.Environment == "" {
		return appsv1.Development
	}
	return s.Environment
}
