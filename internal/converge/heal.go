package converge

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/internal/appconfig"
	"github.com/storeplane/storeplane/internal/backup"
)

// healers return the status that an object has once the cluster has reconciled it, by kind. The
// status of other kinds does not matter.
var healers = map[schema.GroupKind]func(*unstructured.Unstructured) map[string]any{
	{Group: "apps", Kind: "Deployment"}:                     deployment,
	{Group: "apps", Kind: "StatefulSet"}:                    statefulSet,
	{Group: "batch", Kind: "Job"}:                           job,
	{Group: "policy", Kind: "PodDisruptionBudget"}:          disruptionBudget,
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: autoscaler,
	{Group: "networking.k8s.io", Kind: "Ingress"}:           ingress,
	{Group: "gateway.networking.k8s.io", Kind: "HTTPRoute"}: route,
	configv1.AppConfigGroupVersionKind.GroupKind():          appConfig,
	backupv1.BackupGroupVersionKind.GroupKind():             backedUp,
	{Kind: "PersistentVolumeClaim"}:                         volumeClaim,
}

// Heal sets the status of an object that is no claim to what it is once all went well.
func Heal(u *unstructured.Unstructured) {
	gk := u.GroupVersionKind().GroupKind()
	if h, ok := healers[gk]; ok {
		u.Object["status"] = h(u)
		return
	}
	if hasReadyCondition(gk.Group) {
		u.Object["status"] = managed(u)
	}
}

// managed returns the status of a healthy managed resource.
func managed(u *unstructured.Unstructured) map[string]any {
	return map[string]any{"conditions": []any{
		condition("Synced", "True", "ReconcileSuccess", "", u.GetGeneration()),
		condition("Ready", "True", "Available", "", u.GetGeneration()),
	}}
}

// backedUp returns the status of a healthy Backup, with the copy of its key if one is requested.
func backedUp(u *unstructured.Unstructured) map[string]any {
	out := managed(u)
	if u.GetAnnotations()[backup.EscrowAnnotation] != "" {
		conditions, _ := out["conditions"].([]any)
		out["conditions"] = append(conditions, condition(backupv1.TypeEscrowed, "True", backupv1.ReasonKept, "", u.GetGeneration()))
	}
	return out
}

// appConfig returns the status of an AppConfig whose targets run its configuration.
func appConfig(u *unstructured.Unstructured) map[string]any {
	application, _, _ := unstructured.NestedString(u.Object, "spec", "forProvider", "application")
	config, _, _ := unstructured.NestedStringMap(u.Object, "spec", "forProvider", "config")
	bundle := appconfig.Name(application, config)
	out := managed(u)
	out["atProvider"] = map[string]any{"bundle": bundle, "lastGood": bundle, "configMapName": appconfig.StableName(application)}
	return out
}

// hasReadyCondition reports whether the kinds of a group have a Ready condition when they are
// healthy: those of Kubernetes and of Prometheus do not.
func hasReadyCondition(group string) bool {
	return strings.Contains(group, ".") && !strings.HasSuffix(group, ".k8s.io") && group != "monitoring.coreos.com"
}

// replicas returns the replicas of an object's spec, which the API server defaults to 1.
func replicas(u *unstructured.Unstructured) int64 {
	n, ok, err := unstructured.NestedInt64(u.Object, "spec", "replicas")
	if !ok || err != nil {
		return 1
	}
	return n
}

func deployment(u *unstructured.Unstructured) map[string]any {
	n := replicas(u)
	return map[string]any{
		"observedGeneration": u.GetGeneration(),
		"replicas":           n,
		"updatedReplicas":    n,
		"readyReplicas":      n,
		"availableReplicas":  n,
		"conditions": []any{
			plainCondition("Available", "MinimumReplicasAvailable"),
			plainCondition("Progressing", "NewReplicaSetAvailable"),
		},
	}
}

func statefulSet(u *unstructured.Unstructured) map[string]any {
	n := replicas(u)
	revision := u.GetName() + "-1"
	return map[string]any{
		"observedGeneration": u.GetGeneration(),
		"replicas":           n,
		"currentReplicas":    n,
		"updatedReplicas":    n,
		"readyReplicas":      n,
		"availableReplicas":  n,
		"currentRevision":    revision,
		"updateRevision":     revision,
	}
}

func job(*unstructured.Unstructured) map[string]any {
	return map[string]any{
		"succeeded":      int64(1),
		"startTime":      now,
		"completionTime": now,
		"conditions": []any{
			plainCondition("SuccessCriteriaMet", "CompletionsReached"),
			plainCondition("Complete", "CompletionsReached"),
		},
	}
}

func disruptionBudget(u *unstructured.Unstructured) map[string]any {
	return map[string]any{
		"observedGeneration": u.GetGeneration(),
		"currentHealthy":     int64(2),
		"desiredHealthy":     int64(1),
		"disruptionsAllowed": int64(1),
		"expectedPods":       int64(2),
		"conditions":         []any{plainCondition("DisruptionAllowed", "SufficientPods")},
	}
}

func autoscaler(u *unstructured.Unstructured) map[string]any {
	n, ok, err := unstructured.NestedInt64(u.Object, "spec", "minReplicas")
	if !ok || err != nil {
		n = 1
	}
	return map[string]any{
		"currentReplicas": n,
		"desiredReplicas": n,
		"conditions":      []any{plainCondition("AbleToScale", "ReadyForNewScale"), plainCondition("ScalingActive", "ValidMetricFound")},
	}
}

func ingress(*unstructured.Unstructured) map[string]any {
	return map[string]any{"loadBalancer": map[string]any{"ingress": []any{map[string]any{"ip": "192.0.2.1"}}}}
}

// route returns the status of an HTTPRoute that its Gateway has accepted.
func route(u *unstructured.Unstructured) map[string]any {
	parents, _, _ := unstructured.NestedSlice(u.Object, "spec", "parentRefs")
	out := make([]any, 0, len(parents))
	for _, p := range parents {
		out = append(out, map[string]any{
			"parentRef":      p,
			"controllerName": "example.com/gateway-controller",
			"conditions": []any{
				condition("Accepted", "True", "Accepted", "", u.GetGeneration()),
				condition("ResolvedRefs", "True", "ResolvedRefs", "", u.GetGeneration()),
			},
		})
	}
	return map[string]any{"parents": out}
}

func volumeClaim(u *unstructured.Unstructured) map[string]any {
	out := map[string]any{"phase": "Bound"}
	if r, ok, err := unstructured.NestedMap(u.Object, "spec", "resources", "requests"); ok && err == nil {
		out["capacity"] = r
	}
	return out
}

// plainCondition returns a condition of one of Kubernetes' own kinds, which has no generation.
func plainCondition(typ, reason string) map[string]any {
	return map[string]any{"type": typ, "status": "True", "reason": reason, "lastTransitionTime": now}
}
