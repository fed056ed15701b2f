package webapp_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	k8sappsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/functions/functionstest"
)

func TestWorkers(t *testing.T) {
	c := functionstest.New(t, functionstest.FullApp)
	c.Settle()
	mailer := functionstest.As[k8sappsv1.Deployment](t, c.Observed["worker-mailer"])
	container := mailer.Spec.Template.Spec.Containers[0]
	if mailer.Name != "hello-worker-mailer" || *mailer.Spec.Replicas != 2 || container.Args[0] != "mail" || len(container.Ports) > 0 {
		t.Errorf("a worker is the application with other arguments and without ports: got %v", mailer)
	}
	if container.ReadinessProbe != nil || container.StartupProbe != nil || !slices.Equal(container.LivenessProbe.Exec.Command, []string{"/hello", "alive"}) {
		t.Errorf("it is only asked whether it is stuck: got %v", container)
	}
	web := functionstest.As[k8sappsv1.Deployment](t, c.Observed["web"]).Spec.Template.Spec.Containers[0]
	if diff := cmp.Diff(web.Env, container.Env); diff != "" || web.Image != container.Image {
		t.Errorf("it has the application's image and environment: -want, +got:\n%s", diff)
	}
	if np := functionstest.As[networkingv1.NetworkPolicy](t, c.Observed["networkpolicy-worker-mailer"]); len(np.Spec.Ingress) > 0 || !slices.Equal(np.Spec.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}) {
		t.Errorf("no client reaches it: got %v", np.Spec)
	}
	if hpa := functionstest.As[autoscalingv2.HorizontalPodAutoscaler](t, c.Observed["autoscaler-worker-mailer-x"]); hpa.Spec.ScaleTargetRef.Name != "hello-worker-mailer-x" {
		t.Errorf("its autoscaler scales it: got %v", hpa.Spec.ScaleTargetRef)
	}
	if got := *functionstest.As[k8sappsv1.Deployment](t, c.Observed["worker-mailer-x"]).Spec.Replicas; got != 2 {
		t.Errorf("until it does its lower bound holds: got %d", got)
	}
	want := []any{map[string]any{"name": "mailer", "availableReplicas": 2.0}, map[string]any{"name": "mailer-x", "availableReplicas": 2.0}}
	if diff := cmp.Diff(want, functionstest.Get(c.Claim, "status", "workers").GetListValue().AsSlice()); diff != "" {
		t.Errorf("status: -want, +got:\n%s", diff)
	}

	c.Edit([]any{map[string]any{"name": "mailer", "args": []any{"mail"}, "replicas": 3}}, "workers")
	c.Settle()
	var left []string
	for _, n := range c.ComponentNames() {
		if strings.Contains(n, "mailer") {
			left = append(left, n)
		}
	}
	if diff := cmp.Diff([]string{"disruptionbudget-worker-mailer", "networkpolicy-worker-mailer", "worker-mailer"}, left); diff != "" {
		t.Errorf("a worker goes with all that it had: -want, +got:\n%s", diff)
	}
	if got := *functionstest.As[k8sappsv1.Deployment](t, c.Observed["worker-mailer"]).Spec.Replicas; got != 3 {
		t.Errorf("the other one changes: got %d", got)
	}
}

// TestWorkerScaled: once its autoscaler has scaled a worker, it owns the number of replicas.
func TestWorkerScaled(t *testing.T) {
	c := simulate(t, "{image: x, workers: [{name: w, args: [w], autoscaling: {minReplicas: 2, maxReplicas: 5}}]}")
	c.Settle()
	c.Scale("worker-w", 4)
	c.Edit("y", "image")
	rsp := c.Reconcile()
	if v := functionstest.Get(rsp.GetDesired().GetResources()["worker-w"].GetResource(), "spec", "replicas"); v != nil {
		t.Errorf("want no number applied, got %v", v)
	}
	c.Settle()
	if got := functionstest.Get(c.Observed["worker-w"], "spec", "replicas").GetNumberValue(); got != 4 {
		t.Errorf("want the autoscaler's 4, got %v", got)
	}
}

// TestWorkersMigrate: workers roll out only after the migration has completed, like the pods that
// serve requests.
func TestWorkersMigrate(t *testing.T) {
	c := simulate(t, "{image: 'x:1', migration: {args: [m]}, workers: [{name: w, args: [w]}]}")
	c.Settle()
	image := func() string {
		return functionstest.As[k8sappsv1.Deployment](t, c.Observed["worker-w"]).Spec.Template.Spec.Containers[0].Image
	}
	c.Edit("x:2", "image")
	c.Reconcile()
	c.Reconcile()
	if image() != "x:1" {
		t.Errorf("The migration is not through: want x:1, got %s", image())
	}
	for _, n := range c.ComponentNames() {
		if strings.HasPrefix(n, "migration-") {
			c.Heal(n)
		}
	}
	c.Reconcile()
	if image() != "x:2" {
		t.Errorf("It is: want x:2, got %s", image())
	}
}

// TestAutoscalingTargets: the autoscaler has the metrics and targets of the claim.
func TestAutoscalingTargets(t *testing.T) {
	utilization := func(of corev1.ResourceName, percent int32) autoscalingv2.MetricSpec {
		return autoscalingv2.MetricSpec{Type: "Resource", Resource: &autoscalingv2.ResourceMetricSource{
			Name: of, Target: autoscalingv2.MetricTarget{Type: "Utilization", AverageUtilization: &percent},
		}}
	}
	value := func(v string) autoscalingv2.MetricTarget {
		return autoscalingv2.MetricTarget{Type: "AverageValue", AverageValue: new(resource.MustParse(v))}
	}
	requests := autoscalingv2.MetricSpec{Type: "Pods", Pods: &autoscalingv2.PodsMetricSource{Metric: autoscalingv2.MetricIdentifier{Name: "requests"}, Target: value("100")}}
	queue := autoscalingv2.MetricSpec{Type: "External", External: &autoscalingv2.ExternalMetricSource{
		Metric: autoscalingv2.MetricIdentifier{Name: "queue", Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"name": "mail"}}}, Target: value("500m"),
	}}
	cases := map[string]struct {
		reason string
		spec   string
		want   []autoscalingv2.MetricSpec
	}{
		"None":   {reason: "Without a target it is CPU.", spec: "{maxReplicas: 5}", want: []autoscalingv2.MetricSpec{utilization("cpu", 80)}},
		"CPU":    {reason: "Or as much of it as the claim says.", spec: "{maxReplicas: 5, targetCPUUtilization: 60}", want: []autoscalingv2.MetricSpec{utilization("cpu", 60)}},
		"Memory": {reason: "Another target takes the default's place.", spec: "{maxReplicas: 5, targetMemoryUtilization: 150}", want: []autoscalingv2.MetricSpec{utilization("memory", 150)}},
		"Pods":   {reason: "So does a metric.", spec: `{maxReplicas: 5, metrics: [{type: Pods, name: requests, averageValue: "100"}]}`, want: []autoscalingv2.MetricSpec{requests}},
		"All": {
			reason: "Of several the one that asks for most pods counts.",
			spec:   `{maxReplicas: 5, targetCPUUtilization: 60, targetMemoryUtilization: 70, metrics: [{type: Pods, name: requests, averageValue: "100"}, {type: External, name: queue, averageValue: 500m, selector: {matchLabels: {name: mail}}}]}`,
			want:   []autoscalingv2.MetricSpec{utilization("cpu", 60), utilization("memory", 70), requests, queue},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, "{image: x, autoscaling: "+tc.spec+"}")
			c.Settle()
			hpa := functionstest.As[autoscalingv2.HorizontalPodAutoscaler](t, c.Observed["autoscaler"])
			if diff := cmp.Diff(tc.want, hpa.Spec.Metrics); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
