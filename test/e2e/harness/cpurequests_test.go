package harness

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/test/plane"
	"github.com/storeplane/storeplane/test/plane/planetest"
)

// TestCramp: on an API server of its own, the CPU requests of all containers shrink and nothing
// else changes.
func TestCramp(t *testing.T) {
	c, err := NewCluster(planetest.Start(t, false).Config(plane.Admin))
	if err != nil {
		t.Fatal(err)
	}
	const suite = "e2e-one"
	if did, err := c.Cramp(t.Context(), suite); err != nil || !did {
		t.Fatalf("Cramp() on a cluster without cores: want true, got %t, %v", did, err)
	}

	requests := corev1.ResourceList{"cpu": resource.MustParse("250m"), "memory": resource.MustParse("1Gi")}
	spec := restrictedPod("a")
	spec.Containers[0].Resources.Requests = requests
	spec.Containers = append(spec.Containers, *spec.Containers[0].DeepCopy())
	spec.Containers[1].Name, spec.Containers[1].Resources = "another", corev1.ResourceRequirements{}
	spec.InitContainers = []corev1.Container{*spec.Containers[0].DeepCopy()}
	spec.InitContainers[0].Name = "first"
	spec.InitContainers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("20m"), "memory": resource.MustParse("1Gi")}
	spec.InitContainers[0].Resources.Limits = corev1.ResourceList{"memory": resource.MustParse("2Gi")}

	for name, tc := range map[string]struct {
		reason, suite     string
		main, other, init string
	}{
		"Ours":    {reason: "Pods of the suite's namespaces ask for a fifth, and for something.", suite: suite, main: "50m", other: "5m", init: "5m"},
		"Another": {reason: "Pods of others ask for what they say.", suite: "e2e-another", main: "250m", other: "0", init: "20m"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.CreateNamespaceOf(t.Context(), tc.suite, tc.suite); err != nil {
				t.Fatal(err)
			}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "tried"}, Spec: spec}
			got, err := c.Kube.CoreV1().Pods(tc.suite).Create(t.Context(), pod, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			cpu := []string{
				got.Spec.Containers[0].Resources.Requests.Cpu().String(), got.Spec.Containers[1].Resources.Requests.Cpu().String(),
				got.Spec.InitContainers[0].Resources.Requests.Cpu().String(),
			}
			if diff := cmp.Diff([]string{tc.main, tc.other, tc.init}, cpu); diff != "" {
				t.Errorf("%s\nrequests: -want, +got:\n%s", tc.reason, diff)
			}
			rest := []string{got.Spec.Containers[0].Resources.Requests.Memory().String(), got.Spec.InitContainers[0].Resources.Limits.Memory().String(), got.Spec.Containers[0].Image}
			if diff := cmp.Diff([]string{"1Gi", "2Gi", "a"}, rest); diff != "" {
				t.Errorf("What is not CPU stays.\n-want, +got:\n%s", diff)
			}
		})
	}
}
