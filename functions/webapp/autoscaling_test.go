package webapp_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	k8sappsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/storeplane/storeplane/functions/functionstest"
)

func TestAutoscaling(t *testing.T) {
	c := functionstest.New(t, functionstest.BigApp)
	c.Settle()
	hpa := functionstest.As[autoscalingv2.HorizontalPodAutoscaler](t, c.Observed["autoscaler"])
	type want struct {
		target        autoscalingv2.CrossVersionObjectReference
		min, max, cpu int32
	}
	got := want{hpa.Spec.ScaleTargetRef, *hpa.Spec.MinReplicas, hpa.Spec.MaxReplicas, *hpa.Spec.Metrics[0].Resource.Target.AverageUtilization}
	if diff := cmp.Diff(want{autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "hello-web"}, 2, 5, 70}, got, cmp.AllowUnexported(want{})); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if got := functionstest.As[k8sappsv1.Deployment](t, c.Observed["web"]).Name; got != hpa.Spec.ScaleTargetRef.Name {
		t.Errorf("The autoscaler scales %s, the Deployment is %s", hpa.Spec.ScaleTargetRef.Name, got)
	}

	// replicas is ignored while autoscaling is set, and applies again afterwards.
	c.Edit(7, "replicas")
	c.Reconcile()
	if got := functionstest.As[k8sappsv1.Deployment](t, c.Observed["web"]).Spec.Replicas; got == nil || *got != 2 {
		t.Errorf("replicas is ignored while autoscaling is set: got %v", got)
	}
	c.Edit(nil, "autoscaling")
	c.Settle()
	if got := functionstest.As[k8sappsv1.Deployment](t, c.Observed["web"]).Spec.Replicas; got == nil || *got != 7 {
		t.Errorf("Without autoscaling replicas holds again: got %v", got)
	}
	if slices.Contains(c.ComponentNames(), "autoscaler") {
		t.Errorf("and the autoscaler goes")
	}
}

// TestAutoscaledRequests: a pod's utilization is only known if each of its containers requests the
// resource that the autoscaler targets.
func TestAutoscaledRequests(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   string
		want   map[string]string // requests, by container
	}{
		"Defaults":  {reason: "The defaults request both.", spec: "autoscaling: {maxReplicas: 2}", want: map[string]string{"app": "50m 64Mi"}},
		"Fixed":     {reason: "Without an autoscaler requests are not needed.", spec: "resources: {requests: {memory: 1Gi}}", want: map[string]string{"app": "0 1Gi"}},
		"CPU":       {reason: "What is aimed at is requested, by the default, and the claim's own stays.", spec: "autoscaling: {maxReplicas: 2}, resources: {requests: {memory: 1Gi}}", want: map[string]string{"app": "50m 1Gi"}},
		"Memory":    {reason: "Of memory too.", spec: "autoscaling: {maxReplicas: 2, targetMemoryUtilization: 70}, resources: {requests: {cpu: 1}}", want: map[string]string{"app": "1 64Mi"}},
		"Limited":   {reason: "The API server makes a limit the request.", spec: "autoscaling: {maxReplicas: 2}, resources: {limits: {cpu: 2}}", want: map[string]string{"app": "0 0"}},
		"Unrelated": {reason: "A metric of its own is no share of a request.", spec: "autoscaling: {maxReplicas: 2, metrics: [{type: Pods, name: rps, averageValue: '5'}]}, resources: {}", want: map[string]string{"app": "0 0"}},
		"Sidecar":   {reason: "Sidecars count, init containers do not.", spec: "autoscaling: {maxReplicas: 2}, sidecars: [{name: log, resources: {limits: {memory: 1Gi}}}], initContainers: [{name: warm, resources: {}}]", want: map[string]string{"app": "50m 64Mi", "log": "20m 0", "warm": "0 0"}},
		"Worker":    {reason: "A worker has an autoscaler of its own.", spec: "workers: [{name: w, args: [w], autoscaling: {maxReplicas: 2}, resources: {}}], resources: {}", want: map[string]string{"app": "0 0", "worker": "50m 0"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			for _, p := range webAppPods(t, functionstest.WebApp("{image: x, "+tc.spec+"}")) {
				for _, c := range slices.Concat(p.InitContainers, p.Containers) {
					got[c.Name] = c.Resources.Requests.Cpu().String() + " " + c.Resources.Requests.Memory().String()
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestAutoscaledReplicas: the number of replicas that is applied, and the one that results in the
// cluster. Applying a claim must neither remove pods that the autoscaler has added nor take the
// field from it.
func TestAutoscaledReplicas(t *testing.T) {
	const app = "apiVersion: apps.example.com/v1\nkind: WebApp\nmetadata: {name: hello, namespace: team}\nspec: "
	const autoscaled = app + "{image: x, autoscaling: {minReplicas: 3, maxReplicas: 9}}"
	const none = 0 // no replicas are applied
	settled := func(c *crossplane) { c.Settle() }
	cases := map[string]struct {
		reason  string
		claim   string
		before  func(*crossplane)
		applied int
		live    int
	}{
		"First":    {reason: "At first there is no autoscaler: its lower bound holds.", claim: autoscaled, applied: 3, live: 3},
		"FirstOne": {reason: "Without a lower bound it is the one that the API server gives.", claim: app + "{image: x, autoscaling: {maxReplicas: 9}}", applied: none, live: 1},
		"Ignored":  {reason: "The claim's own number is ignored.", claim: app + "{image: x, replicas: 7, autoscaling: {minReplicas: 3, maxReplicas: 9}}", applied: 3, live: 3},
		"Again":    {reason: "As long as no other field manager scaled it, the live number is applied: to let it go would make it one.", claim: autoscaled, before: settled, applied: 3, live: 3},
		"Scaled":   {reason: "Once the autoscaler did, the number is its own.", claim: autoscaled, before: func(c *crossplane) { c.Settle(); c.Scale("web", 6) }, applied: none, live: 6},
		"ScaledAndSettled": {
			reason: "And stays so.", claim: autoscaled,
			before:  func(c *crossplane) { c.Settle(); c.Scale("web", 6); c.Settle(); c.Scale("web", 4); c.Settle() },
			applied: none, live: 4,
		},
		"ScaledAndChanged": {
			reason: "Whatever else is changed.", claim: autoscaled,
			before:  func(c *crossplane) { c.Settle(); c.Scale("web", 6); c.Edit("y", "image") },
			applied: none, live: 6,
		},
		"ScaledToOne": {reason: "Also when it is one.", claim: autoscaled, before: func(c *crossplane) { c.Settle(); c.Scale("web", 1) }, applied: none, live: 1},
		"ScaledByHand": {
			reason: "Who it was does not matter.", claim: autoscaled,
			before: func(c *crossplane) {
				c.Settle()
				c.Scale("web", 5)
				c.SetFieldManager("web", "kubectl", "scale", "f:spec", "f:replicas")
			},
			applied: none, live: 5,
		},
		"StatusOnly": {
			reason: "Who writes the status has not scaled anything.", claim: autoscaled,
			before: func(c *crossplane) {
				c.Settle()
				c.SetFieldManager("web", "kube-controller-manager", "status", "f:status", "f:replicas")
			},
			applied: 3, live: 3,
		},
		"LowerBound": {
			reason: "A new lower bound is the autoscaler's to reach.", claim: autoscaled,
			before:  func(c *crossplane) { c.Settle(); c.Edit(5, "autoscaling", "minReplicas") },
			applied: 3, live: 3,
		},
		"BecomesAutoscaled": {
			reason: "A claim that had a number keeps it until the autoscaler has another.", claim: app + "{image: x, replicas: 5}",
			before: func(c *crossplane) {
				c.Settle()
				c.Edit(nil, "replicas")
				c.Edit(map[string]any{"minReplicas": 2, "maxReplicas": 9}, "autoscaling")
			},
			applied: 5, live: 5,
		},
		"NoLongerAutoscaled": {
			reason: "Without autoscaling the claim's number holds, whoever scaled it.", claim: autoscaled,
			before:  func(c *crossplane) { c.Settle(); c.Scale("web", 6); c.Edit(nil, "autoscaling"); c.Edit(2, "replicas") },
			applied: 2, live: 2,
		},
		"ScaledByHandWithoutAutoscaling": {
			reason: "Nor does it without autoscaling.", claim: app + "{image: x, replicas: 2}",
			before:  func(c *crossplane) { c.Settle(); c.Scale("web", 6) },
			applied: 2, live: 2,
		},
		"AutoscaledAgain": {
			reason: "And the way back is the same as the first time.", claim: autoscaled,
			before: func(c *crossplane) {
				c.Settle()
				c.Scale("web", 6)
				c.Edit(nil, "autoscaling")
				c.Edit(2, "replicas")
				c.Settle()
				c.Edit(map[string]any{"minReplicas": 3, "maxReplicas": 9}, "autoscaling")
			},
			applied: 2, live: 2,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := functionstest.New(t, tc.claim)
			if tc.before != nil {
				c.Reconcile()
				tc.before(c)
			}
			rsp := c.Reconcile()
			applied := functionstest.Get(rsp.GetDesired().GetResources()["web"].GetResource(), "spec", "replicas")
			if got := int(applied.GetNumberValue()); got != tc.applied || (applied == nil) != (tc.applied == none) {
				t.Errorf("%s\nwant %d replicas applied (0 is none), got %v", tc.reason, tc.applied, applied)
			}
			if got := int(functionstest.Get(c.Observed["web"], "spec", "replicas").GetNumberValue()); got != tc.live {
				t.Errorf("%s\nwant %d pods in the cluster, got %d", tc.reason, tc.live, got)
			}
		})
	}
}

// TestAutoscaledHealth: pods that the autoscaler adds do not make the claim Degraded, but a rollout
// and too few pods do.
func TestAutoscaledHealth(t *testing.T) {
	const up, down = `[{type: Available, status: "True"}]`, `[{type: Available, status: "False"}]`
	cases := map[string]struct {
		reason string
		status string
		want   string
	}{
		"Scales":      {reason: "More start while the others serve.", status: "replicas: 4, updatedReplicas: 4, readyReplicas: 2, availableReplicas: 2, conditions: " + up, want: "Running"},
		"Unavailable": {reason: "Too few serve.", status: "replicas: 4, updatedReplicas: 4, readyReplicas: 1, availableReplicas: 1, conditions: " + down, want: "Degraded"},
		"Rolls":       {reason: "Not all are of the newest template.", status: "replicas: 4, updatedReplicas: 1, readyReplicas: 4, availableReplicas: 4, conditions: " + up, want: "Degraded"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := functionstest.New(t, functionstest.BigApp)
			c.Settle()
			c.Scale("web", 4)
			c.Settle()
			c.SetStatus("web", fmt.Sprintf("{observedGeneration: %v, %s}", functionstest.Get(c.Observed["web"], "metadata", "generation").GetNumberValue(), tc.status))
			c.Reconcile()
			if c.Phase() != tc.want {
				t.Errorf("%s\nwant %s, got %s (%s)", tc.reason, tc.want, c.Phase(), c.Message())
			}
		})
	}

	// Without autoscaling all replicas must be available.
	c := functionstest.New(t, functionstest.MigratedApp)
	c.Settle()
	c.SetStatus("web", "{observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 1, availableReplicas: 1, conditions: "+up+"}")
	c.Reconcile()
	if c.Phase() != "Degraded" {
		t.Errorf("Without autoscaling a pod that is missing is a problem: got %s", c.Phase())
	}
}

// TestAutoscaledHeldChange: the autoscaler owns the number of replicas also while a change waits
// for its migration. Applying the observed number would take the field from it.
func TestAutoscaledHeldChange(t *testing.T) {
	c := functionstest.New(t, functionstest.BigApp)
	c.Settle()
	c.Scale("web", 4)
	c.Edit("registry.example.com/hello:2", "image")
	rsp := c.Reconcile()
	if v := functionstest.Get(rsp.GetDesired().GetResources()["web"].GetResource(), "spec", "replicas"); v != nil {
		t.Errorf("want no replicas in what is applied, got %v", v)
	}
	if got := functionstest.Get(c.Observed["web"], "spec", "replicas").GetNumberValue(); got != 4 {
		t.Errorf("want the 4 pods that the autoscaler asked for, got %v", got)
	}
}

// TestBecomesAutoscaledWhileHeld: a claim that turns on autoscaling together with a new image keeps
// all its pods while the change waits: the autoscaler does not exist yet, and a Deployment without
// a number of replicas has one pod.
func TestBecomesAutoscaledWhileHeld(t *testing.T) {
	cases := map[string]struct {
		reason  string
		scale   func(*crossplane)
		applied float64 // 0: none is applied
	}{
		"Unscaled": {reason: "No other field manager has scaled it: its number is applied as it is.", scale: func(*crossplane) {}, applied: 5},
		"Other":    {reason: "Another one has: the number is its own.", scale: func(c *crossplane) { c.Scale("web", 5) }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := functionstest.New(t, functionstest.MigratedApp)
			c.Edit(5, "replicas")
			c.Settle()
			tc.scale(c)
			c.Edit("registry.example.com/hello:2", "image")
			c.Edit(map[string]any{"minReplicas": 3, "maxReplicas": 9}, "autoscaling")
			rsp := c.Reconcile()
			if got := functionstest.Get(rsp.GetDesired().GetResources()["web"].GetResource(), "spec", "replicas").GetNumberValue(); got != tc.applied {
				t.Errorf("%s\nwant %v replicas applied (0 is none), got %v", tc.reason, tc.applied, got)
			}
			if got := functionstest.Get(c.Observed["web"], "spec", "replicas").GetNumberValue(); got != 5 {
				t.Errorf("%s\nwant the 5 pods that serve, got %v", tc.reason, got)
			}
		})
	}
}
