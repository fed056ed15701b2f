package supervisor

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/internal/instance"
)

// TestShownPrimary: which pod may serve clients although its server does not answer.
func TestShownPrimary(t *testing.T) {
	marked := func(name string, ready corev1.ConditionStatus) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
		}
	}
	ending := marked(pod(1), corev1.ConditionTrue)
	ending.DeletionTimestamp = new(metav1.Now())
	for name, c := range map[string]struct {
		reason string
		pods   []*corev1.Pod
		want   string
	}{
		"None":     {reason: "None is marked."},
		"Ready":    {reason: "One serves.", pods: []*corev1.Pod{marked(pod(1), corev1.ConditionTrue)}, want: pod(1)},
		"NotReady": {reason: "A mark stays on a server that was killed.", pods: []*corev1.Pod{marked(pod(1), corev1.ConditionFalse)}},
		"Unknown":  {reason: "A node that is gone reports nothing.", pods: []*corev1.Pod{marked(pod(1), corev1.ConditionUnknown)}},
		"Own":      {reason: "This server knows itself.", pods: []*corev1.Pod{marked(pod(0), corev1.ConditionTrue)}},
		"Ending":   {reason: "A pod that is being deleted has been given up.", pods: []*corev1.Pod{ending}},
		"Stranger": {reason: "A copy of a pod with its labels is no server.", pods: []*corev1.Pod{marked("orders-mysql-debug", corev1.ConditionTrue), marked("debug-1", corev1.ConditionTrue)}},
		"Second":   {reason: "Of several the one that is ready.", pods: []*corev1.Pod{marked(pod(1), corev1.ConditionFalse), marked(pod(2), corev1.ConditionTrue)}, want: pod(2)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := shownPrimary(c.pods, "orders-mysql", pod(0)); got != c.want {
				t.Errorf("%s\nshownPrimary(): want %q, got %q", c.reason, c.want, got)
			}
		})
	}
}

// TestHasLed: whether a report shows that a cluster had data.
func TestHasLed(t *testing.T) {
	for name, c := range map[string]struct {
		reason, report string
		want           bool
	}{
		"Led":     {reason: "A primary has reported.", report: `{"primary": "orders-mysql-0", "timeline": 2, "databaseCluster": "uid"}`, want: true},
		"None":    {reason: "None has."},
		"Earlier": {reason: "One of a deleted claim of the same name has.", report: `{"primary": "orders-mysql-0", "timeline": 2, "databaseCluster": "earlier"}`},
		"Never":   {reason: "No group was confirmed.", report: `{"primary": "orders-mysql-0", "databaseCluster": "uid"}`},
		"Broken":  {reason: "What cannot be read shows nothing.", report: `{`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := hasLed(&corev1.ConfigMap{Data: map[string]string{instance.ClusterKey: c.report}}, "uid"); got != c.want {
				t.Errorf("%s\nhasLed(): want %t, got %t", c.reason, c.want, got)
			}
		})
	}
}
