package compose

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
)

func TestKeep(t *testing.T) {
	cases := map[string]struct {
		reason string
		obj    map[string]any
		want   map[string]any
	}{
		"Empty": {
			reason: "Nothing stays nothing.",
			obj:    map[string]any{},
			want:   map[string]any{},
		},
		"ServerOwned": {
			reason: "All stays but the status and what the API server sets in metadata, which cannot be applied.",
			obj: map[string]any{
				"apiVersion": "apps/v1", "kind": "StatefulSet",
				"metadata": map[string]any{
					"name": "shop-db", "namespace": "team", "labels": map[string]any{"a": "b"}, "annotations": map[string]any{"c": "d"},
					"uid": "1", "resourceVersion": "2", "generation": 3, "creationTimestamp": "2024-01-01T00:00:00Z", "deletionTimestamp": "2024-01-01T00:00:00Z",
					"deletionGracePeriodSeconds": 1, "managedFields": []any{map[string]any{"manager": "x"}}, "ownerReferences": []any{map[string]any{"uid": "9"}},
					"finalizers": []any{"f"}, "generateName": "shop-", "selfLink": "/x",
				},
				"spec":   map[string]any{"replicas": 3, "template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "a"}}}}},
				"status": map[string]any{"replicas": 3},
			},
			want: map[string]any{
				"apiVersion": "apps/v1", "kind": "StatefulSet",
				"metadata": map[string]any{"name": "shop-db", "namespace": "team", "labels": map[string]any{"a": "b"}, "annotations": map[string]any{"c": "d"}},
				"spec":     map[string]any{"replicas": 3, "template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "a"}}}}},
			},
		},
		"Secret": {
			reason: "Fields beside spec are content too.",
			obj:    map[string]any{"kind": "Secret", "metadata": map[string]any{"name": "s", "uid": "1"}, "type": "Opaque", "immutable": true, "data": map[string]any{"k": "dg=="}},
			want:   map[string]any{"kind": "Secret", "metadata": map[string]any{"name": "s"}, "type": "Opaque", "immutable": true, "data": map[string]any{"k": "dg=="}},
		},
		"Composite": {
			reason: "A nested composite's references are Crossplane's: an old copy would orphan its newest resources. Nothing else of its spec goes.",
			obj:    map[string]any{"kind": "DatabaseCluster", "spec": map[string]any{"size": 1, "crossplane": map[string]any{"resourceRefs": []any{}}}},
			want:   map[string]any{"kind": "DatabaseCluster", "spec": map[string]any{"size": 1}},
		},
		"Paused": {
			reason: "Whoever paused it must be able to take that away again.",
			obj:    map[string]any{"kind": "WebApp", "metadata": map[string]any{"name": "w", "annotations": map[string]any{"a": "b", "crossplane.io/paused": "true", "storeplane.example.com/paused-with": "EcommercePlatform store"}}},
			want:   map[string]any{"kind": "WebApp", "metadata": map[string]any{"name": "w", "annotations": map[string]any{"a": "b"}}},
		},
		"NoSpecStruct": {
			reason: "A spec of another shape is kept as it is.",
			obj:    map[string]any{"kind": "Odd", "spec": "text"},
			want:   map[string]any{"kind": "Odd", "spec": "text"},
		},
		"NestedStatus": {
			reason: "Only the object's own status goes, not a field of that name deeper down.",
			obj:    map[string]any{"kind": "Odd", "spec": map[string]any{"status": "on", "metadata": map[string]any{"uid": "1"}}, "data": map[string]any{"status": "x"}},
			want:   map[string]any{"kind": "Odd", "spec": map[string]any{"status": "on", "metadata": map[string]any{"uid": "1"}}, "data": map[string]any{"status": "x"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			obj := mustStruct(t, tc.obj)
			before := proto.CloneOf(obj)
			if diff := cmp.Diff(mustStruct(t, tc.want), claimOf(nil).keep(obj), protocmp.Transform()); diff != "" {
				t.Errorf("%s\nkeep(): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before, obj, protocmp.Transform()); diff != "" {
				t.Errorf("%s\nkeep() changed what was observed: -before, +after:\n%s", tc.reason, diff)
			}
		})
	}
}
