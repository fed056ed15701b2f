package profile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
)

// TestOf: the defaults of each environment.
func TestOf(t *testing.T) {
	type row struct {
		DatabaseSize    int32
		DatabaseStorage string
		Backups         bool
		HighlyAvailable bool
		Synchronous     bool
		Protected       bool
		KeepVolumes     bool
		MaxReplicas     int32
		Replicas        int32
		CacheMemory     string
		CacheCPU        string
	}
	development := row{DatabaseSize: 1, DatabaseStorage: "10Gi", MaxReplicas: 100, Replicas: 1, CacheMemory: "64Mi", CacheCPU: "20m"}
	cases := map[string]struct {
		reason string
		env    appsv1.Environment
		want   row
	}{
		"Development": {reason: "The most frugal: one server, no backups, nothing kept.", env: appsv1.Development, want: development},
		"Staging": {
			reason: "Like production but smaller, and nothing of it is protected.",
			env:    appsv1.Staging,
			want:   row{DatabaseSize: 2, DatabaseStorage: "50Gi", Backups: true, HighlyAvailable: true, MaxReplicas: 100, Replicas: 2, CacheMemory: "256Mi", CacheCPU: "50m"},
		},
		"Production": {
			reason: "The safest, with at most ten pods a tier.",
			env:    appsv1.Production,
			want: row{
				DatabaseSize: 3, DatabaseStorage: "100Gi", Backups: true, HighlyAvailable: true, Synchronous: true, Protected: true, KeepVolumes: true,
				MaxReplicas: 10, Replicas: 2, CacheMemory: "512Mi", CacheCPU: "100m",
			},
		},
		"None":    {reason: "A claim that names none gets development's.", want: development},
		"Unknown": {reason: "So does one that slipped by the XRD.", env: "qa", want: development},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := Of(tc.env)
			got := row{
				p.DatabaseSize, p.DatabaseStorage, p.Backups, p.HighlyAvailable, p.Synchronous, p.DeletionProtection, p.KeepVolumes,
				p.MaxReplicas, p.Replicas, p.CacheMemory, p.CacheCPU,
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nOf(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestResources: every environment has requests of CPU and memory and a limit of memory, and none
// has less than a smaller environment.
func TestResources(t *testing.T) {
	envs := []appsv1.Environment{appsv1.Development, appsv1.Staging, appsv1.Production}
	for what, of := range map[string]func(*Profile) corev1.ResourceRequirements{
		"Web":      func(p *Profile) corev1.ResourceRequirements { return p.Web },
		"Database": func(p *Profile) corev1.ResourceRequirements { return p.Database },
	} {
		t.Run(what, func(t *testing.T) {
			for i, env := range envs {
				r := of(Of(env))
				for _, q := range []string{r.Requests.Cpu().String(), r.Requests.Memory().String(), r.Limits.Memory().String()} {
					if q == "0" {
						t.Errorf("%s: want requests of CPU and memory and a limit of memory, got %v", env, r)
					}
				}
				if r.Requests.Memory().Cmp(*r.Limits.Memory()) > 0 {
					t.Errorf("%s requests more memory than it may use: %v", env, r)
				}
				if i == 0 {
					continue
				}
				before := of(Of(envs[i-1]))
				if r.Requests.Cpu().Cmp(*before.Requests.Cpu()) < 0 || r.Limits.Memory().Cmp(*before.Limits.Memory()) < 0 {
					t.Errorf("%s gives less than %s: %v, %v", env, envs[i-1], r, before)
				}
			}
		})
	}
}
