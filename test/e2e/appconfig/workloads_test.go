//go:build e2e

package appconfig

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/e2e-framework/pkg/types"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/test/e2e/harness"
)

// workloads returns the checks of all kinds of workloads. Each check has its own.
func workloads() types.Feature {
	g := newGround("e2e-appconfig-workloads")
	f := tests.Feature("workloads of all kinds", g.namespace).
		Full("workloads of every kind are found by their label", g.finds).
		Full("two AppConfigs share one workload", g.shares).
		Full("a target is deleted in the middle of a rollout", g.losesTarget).
		Full("a paused Deployment waits until it is resumed", g.waitsForPaused).
		Full("a CronJob is changed and starts no Job", g.startsNoJob).
		Full("a StatefulSet whose pod is broken comes back", g.recovers).
		Full("one target may not be changed and the others are", g.forbidden).
		Full("a pod that crashes is told without its secrets", g.reportsNoSecret).
		Full("targets are changed one after the other", g.inOrder).
		Full("files of a ConfigMap and a Secret are one volume", g.mounts).
		Full("a reader of the stable name is not rolled when it is adopted", g.adopts).
		Full("a ConfigMap that is not the AppConfig's is left alone", g.leavesAlone).
		Full("a change without rollback stays and is told", g.stays).
		Full("old bundles go once nothing refers to them", g.collects)
	return f.Feature()
}

// serving creates an AppConfig and its workloads, waits until they run its first bundle, and
// returns that.
func (g *ground) serving(ctx context.Context, p configv1.AppConfigParameters, more ...string) (string, error) {
	if err := g.ready(ctx); err != nil {
		return "", err
	}
	if err := g.first(ctx, p.Application); err != nil {
		return "", err
	}
	for _, t := range p.Targets {
		if err := g.workload(ctx, strings.ToLower(string(t.Kind)), t.Name, p.Application); err != nil {
			return "", err
		}
	}
	for _, file := range more {
		if err := g.workload(ctx, file, p.Application+"-"+file, p.Application); err != nil {
			return "", err
		}
	}
	if err := g.configure(ctx, p.Application, p); err != nil {
		return "", err
	}
	return g.awaitGood(ctx, started, p.Application)
}

func (g *ground) finds(ctx context.Context, n notes) error {
	const app = "found"
	bundle, err := g.serving(ctx, parameters(app, pets()), "deployment", "statefulset", "daemonset", "cronjob")
	if err != nil {
		return err
	}
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet", "CronJob"} {
		u := g.world.Get(kind, app+"-"+strings.ToLower(kind))
		if have := bundles(u, app); !slices.Equal(have, []string{bundle}) {
			return fmt.Errorf("%s runs %v, not %s", kind, have, bundle)
		}
	}
	if err := g.set(ctx, app, map[string]string{"POLL": "p2"}); err != nil {
		return err
	}
	next, err := g.awaitGood(ctx, rolled, app)
	if err != nil {
		return err
	}
	for _, kind := range []string{"Deployment", "StatefulSet"} {
		if err := g.awaitRuns(ctx, soon, kind, app+"-"+strings.ToLower(kind), app, next); err != nil {
			return err
		}
	}
	targets := g.appConfig(app).Status.AtProvider.Targets
	n.Addf("%d targets", len(targets))
	if len(targets) != 4 {
		return fmt.Errorf("the status has targets %v", targets)
	}
	// A workload that is created later, with a config that it already runs, becomes a target too.
	if err := g.workload(ctx, "deployment", app+"-late", app); err != nil {
		return err
	}
	return g.awaitRuns(ctx, rolled, "Deployment", app+"-late", app, next)
}

func (g *ground) shares(ctx context.Context, n notes) error {
	const one, two, name = "one", "two", "shared"
	if _, err := g.serving(ctx, parameters(one, map[string]string{"OPTIONS": "Cats,Dogs"}, deployment(name))); err != nil {
		return err
	}
	if err := g.configure(ctx, two, parameters(two, map[string]string{"POLL": "p1"}, deployment(name))); err != nil {
		return err
	}
	// Permission to create an AppConfig must not imply permission to change the workloads of other
	// users.
	err := g.await(ctx, soon, two, "to be told that it is not allowed", func(a configv1.AppConfig) bool {
		return target(a, name).State == configv1.TargetForbidden && strings.HasSuffix(a.GetCondition("Ready").Message, configv1.AllowAnnotation+": one,two")
	})
	if err != nil {
		return err
	}
	if have := bundles(g.world.Get("Deployment", name), two); len(have) > 0 {
		return fmt.Errorf("%s runs %v of an AppConfig that it does not name", name, have)
	}
	if err := g.change(ctx, "Deployment", name, harness.Patch{"metadata": harness.Patch{"annotations": harness.Patch{configv1.AllowAnnotation: one + "," + two}}}); err != nil {
		return err
	}
	if _, err := g.awaitGood(ctx, rolled, two); err != nil {
		return err
	}
	if err := g.set(ctx, one, map[string]string{"OPTIONS": "Cats,Dogs,Fish"}); err != nil {
		return err
	}
	if err := g.set(ctx, two, map[string]string{"POLL": "p2"}); err != nil {
		return err
	}
	for _, app := range []string{one, two} {
		bundle, err := g.awaitGood(ctx, 2*rolled, app)
		if err != nil {
			return err
		}
		if err := g.awaitRuns(ctx, soon, "Deployment", name, app, bundle); err != nil {
			return err
		}
		if err := g.torn(name, app); err != nil {
			return err
		}
	}
	// A rollback of one AppConfig leaves the bundle of the other one in place.
	kept := g.appConfig(two).Status.AtProvider.Bundle
	good := g.appConfig(one).Status.AtProvider.Bundle
	if err := g.set(ctx, one, map[string]string{"OPTIONS": "Cats"}); err != nil {
		return err
	}
	if err := g.awaitTakenBack(ctx, progressDeadline+rollbackSlack, one, good); err != nil {
		return err
	}
	if err := g.awaitRuns(ctx, rolled, "Deployment", name, one, good); err != nil {
		return err
	}
	if err := g.awaitRuns(ctx, soon, "Deployment", name, two, kept); err != nil {
		return err
	}
	n.Addf("both changed, one taken back")
	return g.awaitEvents(ctx, one, "RollingOut", "RolledOut", "RolledBack")
}

func (g *ground) losesTarget(ctx context.Context, _ notes) error {
	const app, stays, goes = "loses", "loses-stays", "loses-goes"
	if _, err := g.serving(ctx, parameters(app, pets(), deployment(stays), deployment(goes))); err != nil {
		return err
	}
	was := g.appConfig(app).Status.AtProvider.Bundle
	if err := g.set(ctx, app, map[string]string{"POLL": "p2"}); err != nil {
		return err
	}
	err := g.world.Await(ctx, soon, "the rollout to begin", func() (bool, string) {
		have := bundles(g.world.Get("Deployment", goes), app)
		return !slices.Equal(have, []string{was}), fmt.Sprintf("%s refers to %v", goes, have)
	})
	if err != nil {
		return err
	}
	if err := cluster.Delete(ctx, "Deployment", g.namespace, goes); err != nil {
		return err
	}
	err = g.await(ctx, rolled, app, "to go on without its target", func(a configv1.AppConfig) bool {
		return is(a, "Ready", corev1.ConditionFalse, "TargetsUnavailable") && strings.Contains(a.GetCondition("Ready").Message, goes) &&
			target(a, goes).State == configv1.TargetMissing && target(a, stays).State == configv1.TargetUpdated
	})
	if err != nil {
		return err
	}
	next := g.appConfig(app).Status.AtProvider.Bundle
	if next == was {
		return errors.New("the rollout went back without need")
	}
	if err := g.awaitRuns(ctx, soon, "Deployment", stays, app, next); err != nil {
		return err
	}
	// If the target is created again, it gets the bundle that it missed.
	if err := g.workload(ctx, "deployment", goes, app); err != nil {
		return err
	}
	if _, err := g.awaitGood(ctx, rolled, app); err != nil {
		return err
	}
	return g.awaitRuns(ctx, soon, "Deployment", goes, app, next)
}

func (g *ground) waitsForPaused(ctx context.Context, _ notes) error {
	const app, paused, other = "pauses", "pauses-paused", "pauses-other"
	was, err := g.serving(ctx, parameters(app, pets(), deployment(paused), deployment(other)))
	if err != nil {
		return err
	}
	pause := func(v bool) error {
		return g.change(ctx, "Deployment", paused, harness.Patch{"spec": harness.Patch{"paused": v}})
	}
	if err := pause(true); err != nil {
		return err
	}
	generation := g.world.Get("Deployment", paused).GetGeneration()
	if err := g.set(ctx, app, map[string]string{"POLL": "p2"}); err != nil {
		return err
	}
	err = g.await(ctx, rolled, app, "to leave what is paused", func(a configv1.AppConfig) bool {
		return a.Status.AtProvider.Bundle != was && target(a, paused).State == configv1.TargetPaused && target(a, other).State == configv1.TargetUpdated
	})
	if err != nil {
		return err
	}
	if now := g.world.Get("Deployment", paused).GetGeneration(); now != generation {
		return fmt.Errorf("a paused Deployment was changed: generation %d, was %d", now, generation)
	}
	if err := pause(false); err != nil {
		return err
	}
	bundle, err := g.awaitGood(ctx, rolled, app)
	if err != nil {
		return err
	}
	return g.awaitRuns(ctx, rolled, "Deployment", paused, app, bundle)
}

func (g *ground) startsNoJob(ctx context.Context, _ notes) error {
	const app, name = "scheduled", "scheduled-job"
	p := parameters(app, pets(), deployment(app), configv1.Target{Kind: configv1.CronJob, Name: name})
	if _, err := g.serving(ctx, p); err != nil {
		return err
	}
	if err := g.set(ctx, app, map[string]string{"POLL": "p2"}); err != nil {
		return err
	}
	bundle, err := g.awaitGood(ctx, rolled, app)
	if err != nil {
		return err
	}
	err = g.world.Await(ctx, soon, "the CronJob's template to have the bundle", func() (bool, string) {
		have := bundles(g.world.Get("CronJob", name), app)
		return slices.Equal(have, []string{bundle}), fmt.Sprintf("it has %v", have)
	})
	if err != nil {
		return err
	}
	for _, k := range g.world.Keys() {
		if k.Kind == "Job" && strings.HasPrefix(k.Name, name) {
			return fmt.Errorf("%s was started though its time had not come", k)
		}
	}
	return nil
}

func (g *ground) recovers(ctx context.Context, n notes) error {
	const app, name = "stateful", "stateful-set"
	good, err := g.serving(ctx, parameters(app, pets(), configv1.Target{Kind: configv1.StatefulSet, Name: name}))
	if err != nil {
		return err
	}
	first := g.world.Get("Pod", name+"-0").GetUID()
	begin := time.Now()
	if err := g.set(ctx, app, map[string]string{"OPTIONS": "Cats"}); err != nil {
		return err
	}
	if err := g.awaitTakenBack(ctx, progressDeadline+rollbackSlack, app, good); err != nil {
		return err
	}
	// The StatefulSet's controller gets some time to replace the broken pod by itself.
	if err := g.awaitRuns(ctx, 2*rollbackSlack, "StatefulSet", name, app, good); err != nil {
		return err
	}
	n.Addf("back after %.1fs", time.Since(begin).Seconds())
	if now := g.world.Get("Pod", name+"-0").GetUID(); now != first {
		return errors.New("the pod that was well was replaced, too")
	}
	return nil
}

// secretWord is a value that no status, event or log of Storeplane may contain.
const secretWord = "hunter2-and-more"

func (g *ground) reportsNoSecret(ctx context.Context, n notes) error {
	const app = "crashes"
	p := parameters(app, pets(), deployment(app))
	// The deadline is so long that only the crash can end the rollout.
	p.Rollout.ProgressDeadline.Duration = 10 * time.Minute
	good, err := g.serving(ctx, p)
	if err != nil {
		return err
	}
	if err := g.secret(ctx, app, map[string]string{"closes": secretWord}); err != nil {
		return err
	}
	begin := time.Now()
	// The app logs the value that it cannot parse.
	err = g.edit(ctx, app, harness.Patch{"secretRefs": []any{harness.Patch{"name": app, "keys": []any{harness.Patch{"key": "closes", "as": "CLOSES"}}}}})
	if err != nil {
		return err
	}
	if err := g.awaitTakenBack(ctx, rolled, app, good); err != nil {
		return err
	}
	n.Addf("said after %.1fs", time.Since(begin).Seconds())
	f := g.appConfig(app).Status.AtProvider.Failed
	if !strings.Contains(f.Message, "container app") || !strings.Contains(f.Message, app+"-") || f.Reason != "PodFailing" {
		return fmt.Errorf("the failure does not name its pod and container: %+v", f)
	}
	if !strings.Contains(f.Log, "cannot parse CLOSES") {
		return fmt.Errorf("the failure has no log: %q", f.Log)
	}
	if err := g.awaitRuns(ctx, soon, "Deployment", app, app, good); err != nil {
		return err
	}
	out, err := harness.Kubectl(ctx, "get", "appconfigs,events", "--namespace="+g.namespace, "-o", "yaml")
	if err != nil {
		return err
	}
	if strings.Contains(out, secretWord) {
		return errors.New("an AppConfig or an Event has a secret in it")
	}
	return nil
}

func (g *ground) inOrder(ctx context.Context, _ notes) error {
	const app, first, second = "ordered", "ordered-b", "ordered-a"
	p := parameters(app, pets(), deployment(first), deployment(second))
	p.Rollout.Order = configv1.Sequential
	if _, err := g.serving(ctx, p); err != nil {
		return err
	}
	if err := g.set(ctx, app, map[string]string{"POLL": "p2"}); err != nil {
		return err
	}
	bundle, err := g.awaitGood(ctx, 2*rolled, app)
	if err != nil {
		return err
	}
	changed, rolledOut := harness.Version{}, harness.Version{}
	for _, v := range g.world.History("Deployment", second) {
		if slices.Contains(bundles(v.Object, app), bundle) {
			changed = v
			break
		}
	}
	for _, v := range g.world.History("Deployment", first) {
		replicas, status := harness.Number(v.Object, "spec", "replicas"), func(f string) int64 { return harness.Number(v.Object, "status", f) }
		if slices.Contains(bundles(v.Object, app), bundle) && status("observedGeneration") == v.Object.GetGeneration() && status("updatedReplicas") == replicas && status("availableReplicas") == replicas {
			rolledOut = v
			break
		}
	}
	if changed.Object == nil || rolledOut.Object == nil {
		return fmt.Errorf("%s or %s was never seen with %s", first, second, bundle)
	}
	later, err := resourceversion.CompareResourceVersion(changed.Revision(), rolledOut.Revision())
	if err != nil {
		return fmt.Errorf("cannot compare revisions: %w", err)
	}
	if later <= 0 {
		return fmt.Errorf("%s was changed at revision %s, before %s had rolled out at %s", second, changed.Revision(), first, rolledOut.Revision())
	}
	return nil
}

func (g *ground) mounts(ctx context.Context, _ notes) error {
	const app, path = "mounted", "/etc/vote"
	if err := g.ready(ctx); err != nil {
		return err
	}
	if err := g.secret(ctx, app, map[string]string{"token": "one"}); err != nil {
		return err
	}
	config := pets()
	config["application.properties"] = "a=b\nc={{ .Environment }}\n"
	p := parameters(app, config, deployment(app))
	p.Inject = &configv1.Inject{MountPath: path}
	p.SecretRefs = []configv1.SecretReference{{Name: app}}
	bundle, err := g.serving(ctx, p)
	if err != nil {
		return err
	}
	var sources []corev1.VolumeProjection
	spec := podSpec(g.world.Get("Deployment", app))
	for _, v := range spec.Volumes {
		if v.Projected != nil {
			sources = v.Projected.Sources
		}
	}
	if len(sources) != 2 || sources[0].ConfigMap == nil || sources[0].ConfigMap.Name != bundle || sources[1].Secret == nil || sources[1].Secret.Name != bundle {
		return fmt.Errorf("one volume should hold both of %s: %+v", bundle, sources)
	}
	if !slices.ContainsFunc(spec.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == path }) {
		return fmt.Errorf("nothing is mounted at %s", path)
	}
	made, err := cluster.Get(ctx, "ConfigMap", g.namespace, bundle)
	if err != nil {
		return err
	}
	if text := harness.Field(made, "data", "application.properties"); text != "a=b\nc=dev\n" || harness.Field(made, "immutable") != "true" {
		return fmt.Errorf("the bundle holds %q, immutable %q", text, harness.Field(made, "immutable"))
	}
	return g.awaitRuns(ctx, soon, "Deployment", app, app, bundle)
}

// adopts checks that a workload that already reads the stable name is not rolled when it becomes a
// target.
func (g *ground) adopts(ctx context.Context, _ notes) error {
	const app = "reader"
	if err := g.ready(ctx); err != nil {
		return err
	}
	if err := g.configure(ctx, app, parameters(app, pets(), deployment(app))); err != nil {
		return err
	}
	err := g.world.Await(ctx, soon, "the stable name", func() (bool, string) {
		return g.world.Get("ConfigMap", app+"-config") != nil, "there is no such ConfigMap"
	})
	if err != nil {
		return err
	}
	if err := g.create(ctx, "reader.yaml", map[string]string{"NAME": app}); err != nil {
		return err
	}
	if _, err := g.awaitGood(ctx, started, app); err != nil {
		return err
	}
	if now := g.world.Get("Deployment", app).GetGeneration(); now != 1 {
		return fmt.Errorf("a reader was changed when it was adopted: generation %d", now)
	}
	pods := uids(g.podsOf(app))
	// The same content from another place of the spec is no change.
	err = g.edit(ctx, app, harness.Patch{"config": harness.Patch{"POLL": nil}, "overlays": harness.Patch{"dev": harness.Patch{"config": harness.Patch{"POLL": "p1"}}}})
	if err != nil {
		return err
	}
	if _, err := g.awaitGood(ctx, soon, app); err != nil {
		return err
	}
	if now := g.world.Get("Deployment", app).GetGeneration(); now != 1 {
		return fmt.Errorf("the same content was rolled out: generation %d", now)
	}
	if err := g.set(ctx, app, map[string]string{"TITLE": "Another one"}); err != nil {
		return err
	}
	if _, err := g.awaitGood(ctx, rolled, app); err != nil {
		return err
	}
	if old := newOf(uids(g.podsOf(app)), pods); len(old) != len(pods) {
		return errors.New("a change did not replace the reader's pods")
	}
	if have := harness.Field(g.world.Get("ConfigMap", app+"-config"), "data", "TITLE"); have != "Another one" {
		return fmt.Errorf("the stable name holds %q", have)
	}
	return nil
}

// leavesAlone checks that an existing ConfigMap with the stable name is not overwritten.
func (g *ground) leavesAlone(ctx context.Context, _ notes) error {
	const app = "taken"
	if err := g.ready(ctx); err != nil {
		return err
	}
	if _, err := harness.Kubectl(ctx, "create", "configmap", app+"-config", "--namespace="+g.namespace, "--from-literal=mine=yes"); err != nil {
		return err
	}
	if _, err := g.serving(ctx, parameters(app, pets(), deployment(app))); err != nil {
		return err
	}
	err := g.await(ctx, soon, app, "to say whose the name is", func(a configv1.AppConfig) bool { return is(a, "Published", corev1.ConditionFalse, "AlreadyExists") })
	if err != nil {
		return err
	}
	if have := g.world.Get("ConfigMap", app+"-config"); harness.Field(have, "data", "mine") != "yes" || harness.Field(have, "data", "POLL") != "" {
		return fmt.Errorf("ConfigMap %s-config was overwritten: %v", app, have.Object["data"])
	}
	return nil
}

// stays checks that a failed bundle stays if automatic rollback is turned off.
func (g *ground) stays(ctx context.Context, _ notes) error {
	const app = "stays"
	p := parameters(app, pets(), deployment(app))
	p.Rollout.AutoRollback = new(false)
	if _, err := g.serving(ctx, p); err != nil {
		return err
	}
	if err := g.set(ctx, app, map[string]string{"OPTIONS": "Cats"}); err != nil {
		return err
	}
	err := g.await(ctx, progressDeadline+rollbackSlack, app, "to say that it failed", func(a configv1.AppConfig) bool {
		p := a.Status.AtProvider
		return is(a, "Ready", corev1.ConditionFalse, "RolloutFailed") && p.Failed != nil && p.Failed.Bundle == p.Bundle && p.LastGood != p.Bundle
	})
	if err != nil {
		return err
	}
	if err := g.set(ctx, app, map[string]string{"OPTIONS": "Cats,Fish"}); err != nil {
		return err
	}
	bundle, err := g.awaitGood(ctx, rolled, app)
	if err != nil {
		return err
	}
	return g.awaitRuns(ctx, soon, "Deployment", app, app, bundle)
}

// collects checks that bundles are removed that neither a workload nor its history refers to.
func (g *ground) collects(ctx context.Context, n notes) error {
	const app = "collects"
	first, err := g.serving(ctx, parameters(app, pets(), deployment(app)))
	if err != nil {
		return err
	}
	rolls := []string{first}
	for _, poll := range []string{"p2", "p3", "p4"} {
		if poll == "p4" {
			// A young bundle is kept, and no event reports when it is old enough.
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(young):
			}
		}
		if err := g.set(ctx, app, map[string]string{"POLL": poll}); err != nil {
			return err
		}
		bundle, err := g.awaitGood(ctx, rolled, app)
		if err != nil {
			return err
		}
		rolls = append(rolls, bundle)
	}
	begin := time.Now()
	if err := g.world.AwaitGone(ctx, collected, "ConfigMap", first); err != nil {
		return err
	}
	n.Addf("gone after %.0fs", time.Since(begin).Seconds())
	// The Deployment keeps the ReplicaSet before its newest one.
	for _, bundle := range rolls[len(rolls)-2:] {
		if g.world.Get("ConfigMap", bundle) == nil {
			return fmt.Errorf("bundle %s is gone, too", bundle)
		}
	}
	return nil
}

// young is a little longer than the time for which an unreferenced bundle is kept, because a
// controller may be about to create pods that refer to it.
const young = 65 * time.Second
