package xrd_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestDefault(t *testing.T) {
	got, err := schemas.Default(with(t, webApp, remove("spec.replicas"), remove("spec.port")))
	if err != nil {
		t.Fatal(err)
	}
	want := with(t, webApp,
		set("metadata.namespace", "default"),
		set("spec.replicas", int64(1)),
		set("spec.port", int64(8080)))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("\nDefaults of the definition are filled in.\nDefault(...): -want, +got:\n%s", diff)
	}

	got, err = schemas.Default(with(t, productionStore,
		remove("spec.environment"), remove("spec.database"), remove("spec.cache"), remove("spec.monitoring")))
	if err != nil {
		t.Fatal(err)
	}
	spec, _, _ := unstructured.NestedMap(got.Object, "spec")
	delete(spec, "frontend")
	delete(spec, "backend")
	wantSpec := map[string]any{
		"environment": "development",
		"database":    map[string]any{"type": "postgresql", "synchronousMode": "quorum", "tls": map[string]any{"required": true}},
		"cache":       map[string]any{"enabled": true, "evictionPolicy": "allkeys-lru"},
		"monitoring":  map[string]any{"enabled": true},
	}
	if diff := cmp.Diff(wantSpec, spec); diff != "" {
		t.Errorf("\nDefaults are filled in within defaulted objects too.\nDefault(...): -want, +got:\n%s", diff)
	}
}

// TestDefaultDatabase: fields that a DatabaseCluster does not set have defaults, also within
// objects that it sets in part.
func TestDefaultDatabase(t *testing.T) {
	cases := map[string]struct {
		reason string
		claim  *unstructured.Unstructured
		want   map[string]any // without size, version and storageSize
	}{
		"Nothing": {
			reason: "Connections are encrypted, and synchronous replication is a quorum's where there is any.",
			claim:  with(t, databaseCluster),
			want: map[string]any{
				"engine": "postgresql", "environment": "development", "synchronousMode": "quorum",
				"tls": map[string]any{"required": true}, "monitoring": map[string]any{"enabled": true},
			},
		},
		"InPart": {
			reason: "Who brings certificates has not said that he takes clear text.",
			claim:  with(t, databaseCluster, set("spec.tls", map[string]any{"secretName": "certs"}), set("spec.monitoring", map[string]any{"enabled": false}), set("spec.synchronousMode", "strict")),
			want: map[string]any{
				"engine": "postgresql", "environment": "development", "synchronousMode": "strict",
				"tls": map[string]any{"required": true, "secretName": "certs"}, "monitoring": map[string]any{"enabled": false},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := schemas.Default(tc.claim)
			if err != nil {
				t.Fatal(err)
			}
			spec, _, _ := unstructured.NestedMap(got.Object, "spec")
			for _, f := range []string{"size", "version", "storageSize"} {
				delete(spec, f)
			}
			if diff := cmp.Diff(tc.want, spec); diff != "" {
				t.Errorf("\n%s\nDefault(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
