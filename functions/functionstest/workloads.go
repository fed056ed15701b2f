package functionstest

import (
	"encoding/json"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/internal/converge"
	"github.com/storeplane/storeplane/internal/instance"
)

// How long programs take to start, on a cluster in which their images are present.
const (
	serverStarts   = 10 * time.Second // PostgreSQL, from the StatefulSet to a pod that is ready
	cacheStarts    = 2 * time.Second
	appStarts      = 2500 * time.Millisecond
	migrationTakes = 4500 * time.Millisecond
	gathers        = 200 * time.Millisecond // the AppConfig controller, for changes of its targets
)

// react lets other controllers react to a new object, or to a change of its spec.
func (c *Cluster) react(k Key) {
	switch k.Kind {
	case "Deployment":
		c.reactToDeployment(k)
	case "StatefulSet":
		c.reactToStatefulSet(k)
	case "Job":
		c.runJob(k)
	case "AppConfig":
		c.reactToAppConfig(k)
	}
}

// step is a change of an object's status by its controller. The fields that it names are set, all
// others stay.
type step struct {
	after  time.Duration
	status map[string]any
}

// play sets an object's status step by step, until its spec changes.
func (c *Cluster) play(k Key, then func(), steps ...step) {
	generation := Get(c.Object(k), "metadata", "generation").GetNumberValue()
	for i, s := range steps {
		c.after(s.after, func() {
			if Get(c.Object(k), "metadata", "generation").GetNumberValue() != generation {
				return
			}
			c.update(k, func(o *structpb.Struct) {
				for f, v := range s.status {
					if v == nil {
						delete(Fields(o, "status"), f)
						continue
					}
					Set(o, v, "status", f)
				}
			})
			if then != nil && i == len(steps)-1 {
				then()
			}
		})
	}
}

// conditions returns conditions of one of Kubernetes' own kinds: type, status and reason of each.
func (c *Cluster) conditions(of ...[3]string) []any {
	out := make([]any, 0, len(of))
	for _, f := range of {
		out = append(out, map[string]any{"type": f[0], "status": f[1], "reason": f[2], "lastUpdateTime": c.time(), "lastTransitionTime": c.time()})
	}
	return out
}

// reactToDeployment does what the Deployment controller and the pods do. A paused Deployment gets
// no pods.
func (c *Cluster) reactToDeployment(k Key) {
	o := c.Object(k)
	generation := Get(o, "metadata", "generation").GetNumberValue()
	changed := func() {
		for a := range c.objects {
			if a.Kind == "AppConfig" {
				c.after(gathers, func() { c.judgeAppConfig(a) })
			}
		}
	}
	changed()
	if Get(o, "spec", "paused").GetBoolValue() {
		c.play(k, changed,
			step{20 * time.Millisecond, map[string]any{"conditions": c.conditions([3]string{"Progressing", "Unknown", "DeploymentPaused"})}},
			step{30 * time.Millisecond, map[string]any{"observedGeneration": generation, "unavailableReplicas": 1, "conditions": c.conditions([3]string{"Progressing", "Unknown", "DeploymentPaused"}, [3]string{"Available", "False", "MinimumReplicasUnavailable"})}})
		return
	}
	starts := appStarts
	if strings.HasSuffix(k.Name, "-cache") {
		starts = cacheStarts
	}
	unavailable := [3]string{"Available", "False", "MinimumReplicasUnavailable"}
	if Get(o, "status") != nil {
		c.play(k, nil, step{10 * time.Millisecond, map[string]any{"conditions": c.conditions([3]string{"Progressing", "Unknown", "DeploymentResumed"}, unavailable)}})
	}
	c.startPod(k, starts)
	c.play(k, changed,
		step{20 * time.Millisecond, map[string]any{"conditions": c.conditions([3]string{"Progressing", "True", "NewReplicaSetCreated"})}},
		step{35 * time.Millisecond, map[string]any{"observedGeneration": generation, "unavailableReplicas": 1, "conditions": c.conditions([3]string{"Progressing", "True", "NewReplicaSetCreated"}, unavailable)}},
		step{80 * time.Millisecond, map[string]any{"replicas": 1, "updatedReplicas": 1, "conditions": c.conditions([3]string{"Progressing", "True", "ReplicaSetUpdated"}, unavailable)}},
		step{starts, map[string]any{"readyReplicas": 1, "availableReplicas": 1, "unavailableReplicas": nil, "conditions": c.conditions([3]string{"Progressing", "True", "NewReplicaSetAvailable"}, [3]string{"Available", "True", "MinimumReplicasAvailable"})}})
}

// reactToStatefulSet does what the StatefulSet controller, Patroni and the instance manager do for
// a DatabaseCluster of one server.
func (c *Cluster) reactToStatefulSet(k Key) {
	generation := Get(c.Object(k), "metadata", "generation").GetNumberValue()
	c.play(k, nil,
		step{20 * time.Millisecond, map[string]any{"observedGeneration": generation, "currentRevision": "1", "updateRevision": "1", "replicas": 0}},
		step{60 * time.Millisecond, map[string]any{"replicas": 1, "currentReplicas": 1, "updatedReplicas": 1}},
		step{serverStarts, map[string]any{"readyReplicas": 1, "availableReplicas": 1}})
	if generation > 1 {
		return
	}
	c.startPod(k, serverStarts)
	for after := serverStarts - 5*time.Second; after < 30*time.Second; after += 2500 * time.Millisecond {
		// Patroni writes the state of its server.
		c.after(after, func() {
			c.update(podOf(k), func(o *structpb.Struct) { Set(o, c.time(), "metadata", "annotations", "status") })
		})
	}
	state := Key{Kind: "ConfigMap", Name: k.Name + "-config"}
	for after, value := range map[time.Duration]string{serverStarts - 3*time.Second: "", serverStarts - time.Second: "7000000000000000001"} {
		c.after(after, func() {
			c.update(state, func(o *structpb.Struct) { Set(o, value, "metadata", "annotations", "initialize") })
		})
	}
	member := instance.MemberKey(instance.Pod(k.Name, 0))
	c.after(serverStarts-4*time.Second, func() { c.reportMember(k, member, instance.Member{Protocol: instance.Protocol, Capacity: "10Gi"}) })
	c.after(serverStarts+1500*time.Millisecond, func() { c.reportCluster(k) })
}

func podOf(workload Key) Key { return Key{Kind: "Pod", Name: workload.Name + "-0"} }

// startPod does what the scheduler and the kubelet do for a workload's only pod.
func (c *Cluster) startPod(workload Key, starts time.Duration) {
	labels := Get(c.Object(workload), "spec", "template", "metadata", "labels")
	c.after(50*time.Millisecond, func() {
		c.write(podOf(workload), func(*structpb.Struct) *structpb.Struct {
			pod := &structpb.Struct{Fields: map[string]*structpb.Value{}}
			Set(pod, "v1", "apiVersion")
			Set(pod, "Pod", "kind")
			Set(pod, podOf(workload).Name, "metadata", "name")
			Set(pod, "team", "metadata", "namespace")
			Fields(pod, "metadata")["labels"] = structpb.NewStructValue(proto.CloneOf(labels.GetStructValue()))
			if workload.Kind == "Job" {
				Set(pod, workload.Name, "metadata", "labels", batchv1.JobNameLabel)
			}
			return pod
		})
	})
	conditions := []string{"PodScheduled", "Initialized", "PodReadyToStartContainers", "ContainersReady", "Ready"}
	for i := range conditions {
		at := starts * time.Duration(i+1) / time.Duration(len(conditions))
		c.after(at, func() {
			c.update(podOf(workload), func(o *structpb.Struct) {
				var all [][3]string
				for _, typ := range conditions[:i+1] {
					all = append(all, [3]string{typ, "True", ""})
				}
				Set(o, c.conditions(all...), "status", "conditions")
				Set(o, map[bool]string{false: "Pending", true: "Running"}[i > 2], "status", "phase")
			})
		})
	}
}

func statusOf(set Key) Key { return Key{Kind: "ConfigMap", Name: set.Name + "-status"} }

func (c *Cluster) reportMember(set Key, key string, m instance.Member) {
	b, err := json.Marshal(m)
	if err != nil {
		c.t.Fatal(err)
	}
	c.update(statusOf(set), func(o *structpb.Struct) { Set(o, string(b), "data", key) })
}

// reportCluster reports what is desired as done, and the version of the server.
func (c *Cluster) reportCluster(set Key) {
	var objects []*unstructured.Unstructured
	for _, o := range c.objects {
		objects = append(objects, Unstructured(o.live))
	}
	converge.RunInstances(objects)
	for _, u := range objects {
		if k := (Key{Kind: u.GetKind(), Name: u.GetName()}); k == statusOf(set) {
			reports, _, _ := unstructured.NestedStringMap(u.Object, "data")
			c.update(k, func(o *structpb.Struct) {
				for key, report := range reports {
					Set(o, report, "data", key)
				}
			})
		}
	}
}

// runJob does what the Job controller does for a Job whose pod completes.
func (c *Cluster) runJob(k Key) {
	succeeded := [3]string{"SuccessCriteriaMet", "True", "CompletionsReached"}
	c.startPod(k, 1500*time.Millisecond)
	c.after(migrationTakes-1100*time.Millisecond, func() {
		c.update(podOf(k), func(o *structpb.Struct) { Set(o, "Succeeded", "status", "phase") })
	})
	c.play(k, nil,
		step{20 * time.Millisecond, map[string]any{"startTime": c.time()}},
		step{50 * time.Millisecond, map[string]any{"active": 1, "ready": 0}},
		step{1500 * time.Millisecond, map[string]any{"ready": 1}},
		step{migrationTakes - 1100*time.Millisecond, map[string]any{"active": nil, "ready": 0, "uncountedTerminatedPods": map[string]any{"succeeded": []any{"uid"}}}},
		step{migrationTakes - 100*time.Millisecond, map[string]any{"uncountedTerminatedPods": map[string]any{}, "succeeded": 1, "conditions": c.conditions(succeeded)}},
		step{migrationTakes, map[string]any{"completionTime": c.time(), "conditions": c.conditions(succeeded, [3]string{"Complete", "True", "CompletionsReached"})}})
}

// reactToAppConfig does what the provider does for a new AppConfig.
func (c *Cluster) reactToAppConfig(k Key) {
	c.after(30*time.Millisecond, func() {
		c.update(k, func(o *structpb.Struct) {
			Set(o, []any{"finalizer.managedresource.crossplane.io"}, "metadata", "finalizers")
		})
	})
	c.after(60*time.Millisecond, func() { c.judgeAppConfig(k) })
	c.after(80*time.Millisecond, func() {
		c.update(k, func(o *structpb.Struct) {
			conditions := Get(o, "status", "conditions").GetListValue().GetValues()
			synced, _ := structpb.NewValue(map[string]any{"type": "Synced", "status": "True", "reason": "ReconcileSuccess", "observedGeneration": 1, "lastTransitionTime": c.time()})
			Fields(o, "status")["conditions"] = structpb.NewListValue(&structpb.ListValue{Values: withCondition(conditions, synced)})
		})
	})
}

// judgeAppConfig reports the state of an AppConfig's targets. Its bundle is good once those that run
// it are healthy.
func (c *Cluster) judgeAppConfig(k Key) {
	o := c.Object(k)
	p := Get(o, "spec", "forProvider").GetStructValue()
	bundle := BundleName(Get(p, "application").GetStringValue(), Get(p, "config").GetStructValue().AsMap())
	lastGood := Get(o, "status", "atProvider", "lastGood").GetStringValue()
	var targets []any
	counted, good, all := 0, 0, true
	for _, v := range Get(p, "targets").GetListValue().GetValues() {
		name := Get(v.GetStructValue(), "name").GetStringValue()
		d := c.Object(Key{Kind: "Deployment", Name: name})
		state := "Progressing"
		switch {
		case d == nil, Get(d, "spec", "paused").GetBoolValue():
			state = "Missing" // One that its claim holds is taken for missing.
		case Get(d, "status", "availableReplicas").GetNumberValue() > 0:
			state = "Updated"
		}
		if state == "Progressing" || state == "Updated" {
			counted++
		}
		if state == "Updated" {
			good++
		}
		all = all && state == "Updated"
		targets = append(targets, map[string]any{"kind": "Deployment", "name": name, "state": state})
	}
	at := map[string]any{"bundle": bundle, "targets": targets}
	if lastGood == "" && counted > 0 && good == counted {
		lastGood = bundle
	}
	ready, reason := "False", "RollingOut"
	if lastGood == "" {
		at["pending"] = bundle
	} else {
		at["lastGood"] = lastGood
		if all {
			ready, reason = "True", "Available"
		}
	}
	c.update(k, func(o *structpb.Struct) {
		conditions := Get(o, "status", "conditions").GetListValue().GetValues()
		Set(o, at, "status", "atProvider")
		v, _ := structpb.NewValue(map[string]any{"type": "Ready", "status": ready, "reason": reason, "observedGeneration": 1, "lastTransitionTime": c.time()})
		if conditionOf(c.Object(k), "Ready") != ready {
			conditions = withCondition(conditions, v)
		}
		Fields(o, "status")["conditions"] = structpb.NewListValue(&structpb.ListValue{Values: conditions})
	})
}
