// Package profile holds the defaults of each environment. Every value can be overridden by its own
// field of the claim.
package profile

import (
	corev1 "k8s.io/api/core/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/build"
)

// Profile holds the defaults of one environment.
type Profile struct {
	// Replicas is the number of pods of a web tier.
	Replicas int32
	// MaxReplicas is the largest number of pods that a web tier may request.
	MaxReplicas int32

	// DatabaseSize is the number of database servers.
	DatabaseSize int32
	// DatabaseStorage is the storage of each of them.
	DatabaseStorage string
	// Synchronous turns on synchronous replication of databases.
	Synchronous bool
	// Backups turns on backups of databases.
	Backups bool
	// KeepVolumes retains the volumes of a database that is deleted.
	KeepVolumes bool
	// DeletionProtection protects databases from deletion.
	DeletionProtection bool

	// CacheMemory is the memory of Redis, and CacheCPU the CPU that it requests.
	CacheMemory, CacheCPU string

	// HighlyAvailable adds disruption budgets and spread over nodes and zones.
	HighlyAvailable bool

	// Web and Database are the resources of one pod.
	Web, Database corev1.ResourceRequirements
}

// The profiles are shared: treat them as constants.
var (
	development = Profile{
		Replicas: 1, MaxReplicas: 100,
		DatabaseSize: 1, DatabaseStorage: "10Gi",
		CacheMemory: "64Mi", CacheCPU: "20m",
		Web:      build.Resources("50m", "64Mi", "256Mi"),
		Database: build.Resources("100m", "256Mi", "512Mi"),
	}
	staging = Profile{
		Replicas: 2, MaxReplicas: 100,
		DatabaseSize: 2, DatabaseStorage: "50Gi", Backups: true,
		CacheMemory: "256Mi", CacheCPU: "50m",
		HighlyAvailable: true,
		Web:             build.Resources("100m", "128Mi", "512Mi"),
		Database:        build.Resources("250m", "512Mi", "1Gi"),
	}
	production = Profile{
		Replicas: 2, MaxReplicas: 10,
		DatabaseSize: 3, DatabaseStorage: "100Gi", Synchronous: true, Backups: true, KeepVolumes: true, DeletionProtection: true,
		CacheMemory: "512Mi", CacheCPU: "100m",
		HighlyAvailable: true,
		Web:             build.Resources("100m", "128Mi", "512Mi"),
		Database:        build.Resources("250m", "1Gi", "2Gi"),
	}
)

// Of returns the profile of an environment: development's for none.
func Of(env appsv1.Environment) *Profile {
	switch env {
	case appsv1.Production:
		return &production
	case appsv1.Staging:
		return &staging
	case appsv1.Development:
		return &development
	default:
		return &development
	}
}
