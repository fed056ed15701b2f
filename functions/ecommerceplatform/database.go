package ecommerceplatform

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	platformv1 "github.com/storeplane/storeplane/apis/platform/v1"
	"github.com/storeplane/storeplane/internal/label"
)

// defaultDatabaseVersion is the version of PostgreSQL for a claim that names none.
const defaultDatabaseVersion = "17"

// database returns the DatabaseCluster, which only the backend's pods can reach.
func (s *shop) database() *appsv1.DatabaseCluster {
	spec := s.spec.Database
	if spec == nil {
		spec = &platformv1.Database{}
	}
	size := s.profile.DatabaseSize
	if spec.Size != nil {
		size = *spec.Size
	}
	version := spec.Version
	if version == "" {
		version = defaultDatabaseVersion
	}
	engine := spec.Type
	if engine == "" {
		engine = appsv1.PostgreSQL
	}
	return &appsv1.DatabaseCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.GroupVersion.String(), Kind: appsv1.DatabaseClusterKind},
		ObjectMeta: s.Meta(database, "databasecluster"),
		Spec: appsv1.DatabaseClusterSpec{
			Size:        size,
			Version:     version,
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
