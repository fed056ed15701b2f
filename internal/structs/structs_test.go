package structs

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"
)

func deployment() *appsv1.Deployment {
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"a": "b"}},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(3)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
			Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromString("25%"))}},
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				Containers: []corev1.Container{{
					Name: "web",
					Resources: corev1.ResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000m")},
					},
				}},
				Volumes: []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
			}},
		},
		Status: appsv1.DeploymentStatus{Replicas: 3},
	}
}

func TestEncodeObject(t *testing.T) {
	cases := map[string]struct {
		reason string
		obj    any
		want   map[string]any
	}{
		"Deployment": {
			reason: "Inline structs are flattened, quantities canonical, empty structs with omitempty and the status left out, pointers to empty structs kept.",
			obj:    deployment(),
			want: map[string]any{
				"apiVersion": "apps/v1", "kind": "Deployment",
				"metadata": map[string]any{"name": "web", "labels": map[string]any{"a": "b"}},
				"spec": map[string]any{
					"replicas": 3.0,
					"selector": map[string]any{"matchLabels": map[string]any{"a": "b"}},
					"strategy": map[string]any{"rollingUpdate": map[string]any{"maxSurge": "25%"}},
					"template": map[string]any{"spec": map[string]any{
						"containers": []any{map[string]any{"name": "web", "resources": map[string]any{"requests": map[string]any{"cpu": "1"}}}},
						"volumes":    []any{map[string]any{"name": "tmp", "emptyDir": map[string]any{}}},
					}},
				},
			},
		},
		"Secret": {
			reason: "Bytes are base64.",
			obj:    &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Data: map[string][]byte{"k": []byte("v")}},
			want:   map[string]any{"metadata": map[string]any{"name": "s"}, "data": map[string]any{"k": "dg=="}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := EncodeObject(tc.obj)
			if err != nil {
				t.Fatalf("%s\nEncodeObject(...): %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got.AsMap()); diff != "" {
				t.Errorf("%s\nEncodeObject(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRoundTrip: encoding/json and Decode both read what Encode writes.
func TestRoundTrip(t *testing.T) {
	objs := map[string]any{
		"Deployment": deployment(),
		"CronJob": &batchv1.CronJob{Spec: batchv1.CronJobSpec{
			Schedule: "@daily", TimeZone: new("Europe/Paris"), Suspend: new(true),
			JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{BackoffLimit: new(int32(0))}},
		}},
		"PodDisruptionBudget": &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.Unix(1700000000, 0).Rfc3339Copy()},
			Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(1))},
		},
		"Secret": &corev1.Secret{Immutable: new(false), Data: map[string][]byte{"a": {0, 1, 255}, "empty": {}}},
	}
	for name, want := range objs {
		t.Run(name, func(t *testing.T) {
			s, err := Encode(want)
			if err != nil {
				t.Fatal(err)
			}
			b, err := s.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			viaJSON, viaDecode := newOf(want), newOf(want)
			if err := json.Unmarshal(b, viaJSON); err != nil {
				t.Fatal(err)
			}
			if err := Decode(s, viaDecode); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, viaJSON); diff != "" {
				t.Errorf("read by encoding/json: -want, +got:\n%s", diff)
			}
			if diff := cmp.Diff(want, viaDecode); diff != "" {
				t.Errorf("read by Decode: -want, +got:\n%s", diff)
			}
		})
	}
}

func newOf(v any) any {
	switch v.(type) {
	case *appsv1.Deployment:
		return &appsv1.Deployment{}
	case *batchv1.CronJob:
		return &batchv1.CronJob{}
	case *policyv1.PodDisruptionBudget:
		return &policyv1.PodDisruptionBudget{}
	default:
		return &corev1.Secret{}
	}
}

func TestDecodeErrors(t *testing.T) {
	cases := map[string]struct {
		reason string
		in     map[string]any
		want   string
	}{
		"String": {
			reason: "The path leads to the value, the value itself is not repeated.",
			in:     map[string]any{"spec": map[string]any{"replicas": "three"}},
			want:   "spec.replicas: must be a whole number, is a string",
		},
		"Fraction": {
			reason: "A whole number has no fraction.",
			in:     map[string]any{"spec": map[string]any{"replicas": 1.5}},
			want:   "spec.replicas: must be a whole number, is a number",
		},
		"ListElement": {
			reason: "List elements are named by their index.",
			in:     map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": 1}}}}}},
			want:   "spec.template.spec.containers[0].name: must be a string, is a number",
		},
		"Object": {
			reason: "A string is no object.",
			in:     map[string]any{"spec": "x"},
			want:   "spec: must be an object, is a string",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := structpb.NewStruct(tc.in)
			if err != nil {
				t.Fatal(err)
			}
			err = Decode(s, &appsv1.Deployment{})
			if err == nil {
				t.Fatalf("%s\nDecode(...): no error", tc.reason)
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("%s\nDecode(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPropertyRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Name:       rapid.String().Draw(t, "name"),
				Generation: int64(rapid.Int32().Draw(t, "generation")),
				Finalizers: rapid.SliceOfN(rapid.String(), 1, 3).Draw(t, "finalizers"),
			},
			Data:       rapid.MapOfN(rapid.String(), rapid.String(), 1, 5).Draw(t, "data"),
			BinaryData: map[string][]byte{"b": rapid.SliceOfN(rapid.Byte(), 1, 9).Draw(t, "bytes")},
		}
		s, err := Encode(want)
		if err != nil {
			t.Fatal(err)
		}
		got := &corev1.ConfigMap{}
		if err := Decode(s, got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
	})
}
