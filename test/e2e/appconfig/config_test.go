//go:build e2e

package appconfig

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/e2e-framework/klient/wait"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/test/e2e/harness"
)

// kind is the kind under test.
const kind = configv1.AppConfigKind

// parameters returns parameters of an AppConfig for these targets.
func parameters(application string, config map[string]string, targets ...configv1.Target) configv1.AppConfigParameters {
	return configv1.AppConfigParameters{
		Application: application,
		Config:      config,
		Targets:     targets,
		Rollout:     &configv1.Rollout{ProgressDeadline: &metav1.Duration{Duration: progressDeadline}},
	}
}

func deployment(name string) configv1.Target {
	return configv1.Target{Kind: configv1.Deployment, Name: name}
}

// pets returns the config of a poll.
func pets() map[string]string {
	return map[string]string{"POLL": "p1", "TITLE": "Which pet?", "OPTIONS": "Cats,Dogs"}
}

// configure creates an AppConfig.
func (g *ground) configure(ctx context.Context, name string, p configv1.AppConfigParameters) error {
	a := &configv1.AppConfig{Spec: configv1.AppConfigSpec{ForProvider: p}}
	a.APIVersion, a.Kind, a.Name, a.Namespace = configv1.GroupVersion.String(), kind, name, g.namespace
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(a)
	if err != nil {
		return fmt.Errorf("cannot encode %s: %w", name, err)
	}
	u := &unstructured.Unstructured{Object: raw}
	unstructured.RemoveNestedField(u.Object, "status")
	if u, err = cluster.Create(ctx, u); err != nil {
		return err
	}
	return g.world.AwaitSeen(ctx, u)
}

// edit patches the parameters of an AppConfig.
func (g *ground) edit(ctx context.Context, name string, p harness.Patch) error {
	return g.change(ctx, kind, name, harness.Patch{"spec": harness.Patch{"forProvider": p}})
}

// set sets keys of an AppConfig's config.
func (g *ground) set(ctx context.Context, name string, values map[string]string) error {
	config := harness.Patch{}
	for k, v := range values {
		config[k] = v
	}
	return g.edit(ctx, name, harness.Patch{"config": config})
}

// appConfig returns an AppConfig as observed last.
func (g *ground) appConfig(name string) configv1.AppConfig { return decode(g.world.Get(kind, name)) }

func decode(u *unstructured.Unstructured) configv1.AppConfig {
	a := configv1.AppConfig{}
	if u != nil {
		// A field that cannot be converted stays empty, and the checks that need it fail.
		_ = runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &a)
	}
	return a
}

// await waits until done returns true for an AppConfig.
func (g *ground) await(ctx context.Context, within time.Duration, name, what string, done func(configv1.AppConfig) bool) error {
	return g.world.Await(ctx, within, "AppConfig "+name+" "+what, func() (bool, string) {
		a := g.appConfig(name)
		return done(a), describe(a)
	})
}

// awaitGood waits until all targets run the present config of an AppConfig, and returns the name of
// its bundle.
func (g *ground) awaitGood(ctx context.Context, within time.Duration, name string) (string, error) {
	err := g.await(ctx, within, name, "to be Ready", isGood)
	return g.appConfig(name).Status.AtProvider.Bundle, err
}

// isGood reports whether all targets of an AppConfig run its present config.
func isGood(a configv1.AppConfig) bool {
	p := a.Status.AtProvider
	return is(a, "Ready", corev1.ConditionTrue, "") && p.Bundle != "" && p.Bundle == p.LastGood && p.Pending == "" && p.Failed == nil
}

// is reports whether a condition of an AppConfig, at the present generation, has a status and,
// unless it is empty, a reason.
func is(a configv1.AppConfig, typ string, status corev1.ConditionStatus, reason string) bool {
	c := a.GetCondition(xpv2.ConditionType(typ))
	return c.Status == status && (reason == "" || string(c.Reason) == reason) && c.ObservedGeneration >= a.Generation && a.Generation > 0
}

// describe describes the state of an AppConfig.
func describe(a configv1.AppConfig) string {
	if a.Name == "" {
		return "it does not exist"
	}
	p := a.Status.AtProvider
	parts := []string{fmt.Sprintf("bundle %q, last good %q, pending %q", p.Bundle, p.LastGood, p.Pending)}
	for _, c := range a.Status.Conditions {
		parts = append(parts, fmt.Sprintf("%s %s (%s: %s) of generation %d", c.Type, c.Status, c.Reason, c.Message, c.ObservedGeneration))
	}
	if p.Failed != nil {
		parts = append(parts, fmt.Sprintf("failed %s (%s: %s)", p.Failed.Bundle, p.Failed.Reason, p.Failed.Message))
	}
	for _, t := range p.Targets {
		parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s", t.Kind, t.Name, t.State, t.Bundle, t.Message)))
	}
	return strings.Join(append(parts, fmt.Sprintf("generation %d", a.Generation)), "; ")
}

// awaitEvents waits until an AppConfig has events with all of these reasons. Events are written a
// moment after what they report.
func (g *ground) awaitEvents(ctx context.Context, name string, reasons ...string) error {
	var missing []string
	err := wait.For(func(ctx context.Context) (bool, error) {
		l, err := cluster.Kube.CoreV1().Events(g.namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=" + kind + ",involvedObject.name=" + name})
		if err != nil {
			return false, err
		}
		missing = slices.DeleteFunc(slices.Clone(reasons), func(r string) bool {
			return slices.ContainsFunc(l.Items, func(e corev1.Event) bool { return e.Reason == r })
		})
		return len(missing) == 0, nil
	}, wait.WithContext(ctx), wait.WithTimeout(soon), wait.WithInterval(time.Second), wait.WithImmediate())
	if err != nil {
		return fmt.Errorf("waited %s for events %v of AppConfig %s: %w", soon, missing, name, err)
	}
	return nil
}

// target returns the status of a target by its name, or the zero value.
func target(a configv1.AppConfig, name string) configv1.TargetStatus {
	for _, t := range a.Status.AtProvider.Targets {
		if t.Name == name {
			return t
		}
	}
	return configv1.TargetStatus{}
}
