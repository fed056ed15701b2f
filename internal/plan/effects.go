package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/internal/label"
)

// forecast is what effects are derived from.
type forecast struct {
	pairs []pair

	// had are the objects that exist in the cluster.
	had objects
}

// rules return the effects of the change of one object, by its kind. Changes of other kinds have no
// effects that a client or user notices: they are applied while everything runs.
var rules = map[schema.GroupKind]func(*forecast, pair) []Effect{
	{Group: "apps", Kind: "Deployment"}:                     (*forecast).deployment,
	{Group: "apps", Kind: "StatefulSet"}:                    (*forecast).statefulSet,
	{Group: "batch", Kind: "Job"}:                           (*forecast).job,
	{Group: "batch", Kind: "CronJob"}:                       (*forecast).cronJob,
	{Kind: "ConfigMap"}:                                     (*forecast).configMap,
	{Kind: "Secret"}:                                        (*forecast).secret,
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:     (*forecast).networkPolicy,
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: (*forecast).autoscaler,
	{Group: "protection.crossplane.io", Kind: "Usage"}:      (*forecast).usage,
	{Kind: "Service"}:                                       (*forecast).service,
	{Group: "networking.k8s.io", Kind: "Ingress"}:           (*forecast).route,
	{Group: "gateway.networking.k8s.io", Kind: "HTTPRoute"}: (*forecast).route,
	backupv1.BackupGroupVersionKind.GroupKind():             (*forecast).backup,
	configv1.AppConfigGroupVersionKind.GroupKind():          (*forecast).appConfig,
}

// effectsOf returns the effects of changes, in their order.
func effectsOf(pairs []pair, had objects) []Effect {
	f := &forecast{pairs: pairs, had: had}
	var out []Effect
	for _, p := range pairs {
		if rule, ok := rules[keyOf(p.either()).GroupKind]; ok {
			out = append(out, rule(f, p)...)
		}
	}
	return out
}

// either returns the object after the edit, or else the one before it.
func (p pair) either() *unstructured.Unstructured {
	if p.after != nil {
		return p.after
	}
	return p.before
}

// touches reports whether the field of the object at a path, or one below it, changes.
func (p pair) touches(path string) bool {
	return slices.ContainsFunc(p.Fields, func(f Field) bool { return within(f.Path, path) })
}

// within reports whether a path equals another one or leads below it.
func within(path, outer string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// field returns the change of the field at a path, or nil.
func (p pair) field(path string) *Field {
	i := slices.IndexFunc(p.Fields, func(f Field) bool { return f.Path == path })
	if i < 0 {
		return nil
	}
	return &p.Fields[i]
}

// part returns the component label of the object.
func (p pair) part() string { return p.either().GetLabels()[label.Component] }

// effect returns an effect on the object.
func (p pair) effect(verb Verb, format string, args ...any) Effect {
	return Effect{Verb: verb, Object: p.Object, Message: fmt.Sprintf(format, args...)}
}

// replicasOf returns the replicas of an object: 1 where they are not set, as the API server
// defaults them.
func replicasOf(u *unstructured.Unstructured) int {
	if u == nil {
		return 0
	}
	n, ok, err := unstructured.NestedInt64(u.Object, "spec", "replicas")
	if !ok || err != nil {
		return 1
	}
	return int(n)
}
