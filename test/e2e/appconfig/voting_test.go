//go:build e2e

package appconfig

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/e2e-framework/pkg/types"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/test/e2e/harness"
)

// Names of the vote app, its AppConfig, its Deployment and its Secret.
const (
	vote    = "vote"
	voteWeb = "vote-web"
	ballots = "vote-ballots"
)

// voters is the vote app under load.
type voters struct {
	*ground

	// keys are the keys that sign the receipts of polls, by the name of the poll.
	keys map[string]string
}

func voting() types.Feature {
	v := &voters{ground: newGround("e2e-appconfig"), keys: map[string]string{}}
	f := tests.Feature("the vote app", v.namespace).
		Quick("a change reaches every pod under load", v.changes).
		Quick("a value that does not work is taken back under load", v.takesBack).
		Full("config and Secret change together and no pod has half", v.changesTogether).
		Full("twenty edits in ten seconds are two rollouts at most", v.debounces).
		Full("what cannot be made replaces nothing and says why", v.refuses).
		Full("provider is killed at every stage of a change", v.losesProviderWhileChanging).
		Full("provider is killed at every stage of a rollback", v.losesProviderWhileTakingBack).
		Full("deletion leaves pods running and able to restart", v.deletes)
	return f.Feature()
}

// votes waits until the app runs the config of its AppConfig. The first check that calls it creates
// both, so that each check can run alone.
func (v *voters) votes(ctx context.Context) error {
	if err := v.ready(ctx); err != nil {
		return err
	}
	err := v.once.Do("vote", func() error {
		if err := v.secret(ctx, ballots, map[string]string{"key": "key-of-p1"}); err != nil {
			return err
		}
		p := parameters(vote, pets(), deployment(voteWeb))
		p.SecretRefs = []configv1.SecretReference{{Name: ballots, Keys: []configv1.SecretKey{{Key: "key", As: "BALLOT_KEY"}}}}
		if err := v.configure(ctx, vote, p); err != nil {
			return err
		}
		v.keys["p1"] = "key-of-p1"
		return v.create(ctx, "vote.yaml", nil)
	})
	if err != nil {
		return err
	}
	if _, err := v.awaitGood(ctx, started, vote); err != nil {
		return err
	}
	return v.world.AwaitReady(ctx, started, "WebApp", vote)
}

// poll returns the config of a poll and records the key that signs its receipts.
func (v *voters) poll(name, key string) map[string]string {
	v.keys[name] = key
	return map[string]string{"POLL": name}
}

// runsPoll waits until all pods run the config of the AppConfig, and checks that it is this poll.
func (v *voters) runsPoll(ctx context.Context, name string) error {
	bundle, err := v.awaitGood(ctx, rolled, vote)
	if err != nil {
		return err
	}
	if err := v.awaitRuns(ctx, soon, "Deployment", voteWeb, vote, bundle); err != nil {
		return err
	}
	if err := v.answers(ctx, voteWeb, name); err != nil {
		return err
	}
	return v.torn(voteWeb, vote)
}

// oneRollout makes a change under load, which must cause exactly one rollout.
func (v *voters) oneRollout(ctx context.Context, n notes, poll string, change func() error) error {
	return v.rollsOnce(ctx, n, v.keys, func() error {
		begin := time.Now()
		if err := change(); err != nil {
			return err
		}
		if err := v.runsPoll(ctx, poll); err != nil {
			return err
		}
		n.Addf("all pods after %.1fs", time.Since(begin).Seconds())
		return nil
	})
}

// rollsOnce calls do under load and checks that it causes exactly one rollout.
func (v *voters) rollsOnce(ctx context.Context, n notes, keys map[string]string, do func() error) error {
	before, err := v.replicaSets(ctx, voteWeb)
	if err != nil {
		return err
	}
	if err := v.under(ctx, n, voteWeb, keys, do); err != nil {
		return err
	}
	now, err := v.replicaSets(ctx, voteWeb)
	if err != nil {
		return err
	}
	if made := newOf(before, now); len(made) != 1 {
		return fmt.Errorf("it took %d ReplicaSets: %v", len(made), made)
	}
	return nil
}

func (v *voters) changes(ctx context.Context, n notes) error {
	if err := v.votes(ctx); err != nil {
		return err
	}
	values := v.poll("p2", "key-of-p1")
	values["TITLE"] = "Which pet ({{ .Environment }} of {{ .Application }})?"
	err := v.oneRollout(ctx, n, "p2", func() error { return v.set(ctx, vote, values) })
	if err != nil {
		return err
	}
	body, err := v.ask(ctx, voteWeb, "/poll")
	if err != nil {
		return err
	}
	if !strings.Contains(body, "Which pet (dev of vote)?") {
		return fmt.Errorf("the template was not filled in: %s", body)
	}
	a := v.appConfig(vote).Status.AtProvider
	if a.ConfigMapName != vote+"-config" || a.LastUpdated == nil {
		return fmt.Errorf("the status names ConfigMap %q, updated at %v", a.ConfigMapName, a.LastUpdated)
	}
	stable, err := cluster.Get(ctx, "ConfigMap", v.namespace, a.ConfigMapName)
	if err != nil {
		return err
	}
	if have := harness.Field(stable, "data", "POLL"); have != "p2" {
		return fmt.Errorf("ConfigMap %s has poll %q", a.ConfigMapName, have)
	}
	return nil
}

// takesBack checks that a poll without a choice is rolled back within the deadline and
// rollbackSlack, while all old pods keep running.
func (v *voters) takesBack(ctx context.Context, n notes) error {
	if err := v.votes(ctx); err != nil {
		return err
	}
	good := v.appConfig(vote).Status.AtProvider.Bundle
	pods, after := uids(v.podsOf(voteWeb)), len(v.world.History("Deployment", voteWeb))
	err := v.under(ctx, n, voteWeb, v.keys, func() error {
		begin := time.Now()
		if err := v.set(ctx, vote, map[string]string{"OPTIONS": "Cats"}); err != nil {
			return err
		}
		within := progressDeadline + rollbackSlack
		if err := v.awaitTakenBack(ctx, within, vote, good); err != nil {
			return err
		}
		if err := v.awaitRuns(ctx, within-time.Since(begin), "Deployment", voteWeb, vote, good); err != nil {
			return err
		}
		n.Addf("back after %.1fs", time.Since(begin).Seconds())
		return nil
	})
	if err != nil {
		return err
	}
	if now := uids(v.podsOf(voteWeb)); !slices.Equal(pods, now) {
		return fmt.Errorf("the pods were %v, are %v", pods, now)
	}
	if least := v.leastAvailable(voteWeb, after); least < int64(len(pods)) {
		return fmt.Errorf("only %d of %d pods took requests for a while", least, len(pods))
	}
	if err := v.awaitEvents(ctx, vote, "RollingOut", "RolledOut", "RolledBack"); err != nil {
		return err
	}
	return v.staysBack(ctx, good)
}

// awaitTakenBack waits until the status of an AppConfig reports a rollback to this bundle.
func (g *ground) awaitTakenBack(ctx context.Context, within time.Duration, name, good string) error {
	return g.await(ctx, within, name, "to be taken back to "+good, func(a configv1.AppConfig) bool {
		p := a.Status.AtProvider
		return is(a, "Ready", corev1.ConditionFalse, "RolledBack") && p.Bundle == good && p.Failed != nil && p.Failed.Bundle != good
	})
}

// staysBack checks that a failed bundle is not tried again, whatever causes a reconcile, and that a
// correction is applied.
func (v *voters) staysBack(ctx context.Context, good string) error {
	failed := v.appConfig(vote).Status.AtProvider.Failed
	if !strings.Contains(failed.Message, voteWeb) {
		return fmt.Errorf("the failure does not say where: %+v", failed)
	}
	for _, touch := range []string{"once", "twice"} {
		if err := v.touch(ctx, vote, touch); err != nil {
			return err
		}
	}
	if tries := v.changesTo("Deployment", voteWeb, vote, failed.Bundle); tries != 1 {
		return fmt.Errorf("bundle %s was tried %d times", failed.Bundle, tries)
	}
	generation := v.world.Get("Deployment", voteWeb).GetGeneration()
	if err := v.set(ctx, vote, map[string]string{"OPTIONS": "Cats,Dogs"}); err != nil {
		return err
	}
	bundle, err := v.awaitGood(ctx, soon, vote)
	if err != nil {
		return err
	}
	if now := v.world.Get("Deployment", voteWeb).GetGeneration(); bundle != good || now != generation {
		return fmt.Errorf("to take the edit back was a rollout: bundle %s instead of %s, generation %d of the Deployment instead of %d", bundle, good, now, generation)
	}
	return nil
}

// changesTogether checks that one edit that also names another Secret is one rollout, and that
// edits of both while the AppConfig is paused are one too.
func (v *voters) changesTogether(ctx context.Context, n notes) error {
	if err := v.votes(ctx); err != nil {
		return err
	}
	if err := v.secret(ctx, ballots+"-2", map[string]string{"key": "key-of-p3"}); err != nil {
		return err
	}
	config := v.poll("p3", "key-of-p3")
	err := v.oneRollout(ctx, n, "p3", func() error {
		return v.edit(ctx, vote, harness.Patch{
			"config":     config,
			"secretRefs": []any{harness.Patch{"name": ballots + "-2", "keys": []any{harness.Patch{"key": "key", "as": "BALLOT_KEY"}}}},
		})
	})
	if err != nil {
		return fmt.Errorf("by one edit: %w", err)
	}
	config = v.poll("p4", "key-of-p4")
	err = v.oneRollout(ctx, n, "p4", func() error {
		if err := v.edit(ctx, vote, harness.Patch{"rollout": harness.Patch{"pause": true}}); err != nil {
			return err
		}
		if _, err := cluster.Patch(ctx, "Secret", v.namespace, ballots+"-2", harness.Patch{"stringData": harness.Patch{"key": "key-of-p4"}}); err != nil {
			return err
		}
		err := v.await(ctx, soon, vote, "to say that it is paused", func(a configv1.AppConfig) bool { return is(a, "Ready", corev1.ConditionFalse, "Paused") })
		if err != nil {
			return err
		}
		return v.edit(ctx, vote, harness.Patch{"config": config, "rollout": harness.Patch{"pause": false}})
	})
	if err != nil {
		return fmt.Errorf("by two edits while paused: %w", err)
	}
	// A change of the Secret alone is a rollout too.
	v.keys = map[string]string{}
	return v.oneRollout(ctx, n, "p4", func() error {
		was := v.appConfig(vote).Status.AtProvider.Bundle
		if _, err := cluster.Patch(ctx, "Secret", v.namespace, ballots+"-2", harness.Patch{"stringData": harness.Patch{"key": "key-of-p4-anew"}}); err != nil {
			return err
		}
		return v.await(ctx, rolled, vote, "to have another bundle", func(a configv1.AppConfig) bool { return a.Status.AtProvider.Bundle != was })
	})
}

func (v *voters) debounces(ctx context.Context, n notes) error {
	if err := v.votes(ctx); err != nil {
		return err
	}
	const edits, pace = 20, 500 * time.Millisecond
	before, err := v.replicaSets(ctx, voteWeb)
	if err != nil {
		return err
	}
	last := fmt.Sprintf("edit-%d", edits)
	err = v.under(ctx, n, voteWeb, nil, func() error {
		tick := time.NewTicker(pace)
		defer tick.Stop()
		for i := range edits {
			if err := v.set(ctx, vote, map[string]string{"POLL": fmt.Sprintf("edit-%d", i+1)}); err != nil {
				return err
			}
			<-tick.C
		}
		return v.runsPoll(ctx, last)
	})
	if err != nil {
		return err
	}
	now, err := v.replicaSets(ctx, voteWeb)
	if err != nil {
		return err
	}
	made := newOf(before, now)
	n.Addf("%d rollouts", len(made))
	if len(made) > 2 {
		return fmt.Errorf("%d edits were %d rollouts: %v", edits, len(made), made)
	}
	return nil
}

// refuses checks several configs that cannot be rendered.
func (v *voters) refuses(ctx context.Context, n notes) error {
	if err := v.votes(ctx); err != nil {
		return err
	}
	good, generation := v.appConfig(vote).Status.AtProvider.Bundle, v.world.Get("Deployment", voteWeb).GetGeneration()
	refs := func(name, key, as string) harness.Patch {
		return harness.Patch{"secretRefs": []any{harness.Patch{"name": name, "keys": []any{harness.Patch{"key": key, "as": as}}}}}
	}
	raw := harness.Patch{}
	u, err := cluster.Get(ctx, kind, v.namespace, vote)
	if err != nil {
		return err
	}
	if l, err := harness.List(u, "spec", "forProvider", "secretRefs"); err == nil && len(l) == 1 {
		raw["secretRefs"] = []any{l[0]}
	}
	title := func(t any) harness.Patch { return harness.Patch{"config": harness.Patch{"TITLE": t}} }
	for _, c := range []struct {
		name       string
		edit, undo harness.Patch
		reason     string
		says       string
	}{
		{"a template that does not parse", title("{{ .Values"), title("Which pet?"), "InvalidTemplate", "TITLE"},
		{"a template that names an unknown key", title("{{ .Values.nobody }}"), title("Which pet?"), "InvalidTemplate", "nobody"},
		{"a Secret that does not exist", refs("nowhere", "key", "BALLOT_KEY"), raw, "SecretNotFound", "nowhere"},
		{"a key that a Secret does not have", refs(ballots, "nothing", "BALLOT_KEY"), raw, "SecretKeyNotFound", "nothing"},
		{"a key that is there twice", refs(ballots, "key", "TITLE"), raw, "KeyConflict", "TITLE"},
		{"a key that is no variable's name", harness.Patch{"config": harness.Patch{"application.properties": "a=b"}}, harness.Patch{"config": harness.Patch{"application.properties": nil}}, "InvalidKey", "application.properties"},
	} {
		if err := v.edit(ctx, vote, c.edit); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		err := v.await(ctx, soon, vote, "to refuse "+c.name, func(a configv1.AppConfig) bool {
			return is(a, "Rendered", corev1.ConditionFalse, c.reason) && is(a, "Ready", corev1.ConditionFalse, "InvalidConfig") &&
				strings.Contains(a.GetCondition("Ready").Message, c.says) && a.Status.AtProvider.Bundle == good
		})
		if err != nil {
			return err
		}
		if err := v.edit(ctx, vote, c.undo); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		if _, err := v.awaitGood(ctx, rolled, vote); err != nil {
			return fmt.Errorf("after %s: %w", c.name, err)
		}
		// The first title may have been another one.
		good, generation = v.appConfig(vote).Status.AtProvider.Bundle, max(generation, v.world.Get("Deployment", voteWeb).GetGeneration())
		n.Addf("%s", c.name)
	}
	// A missing Secret is watched for: it is used as soon as it exists.
	if err := v.edit(ctx, vote, refs("late", "key", "BALLOT_KEY")); err != nil {
		return err
	}
	err = v.await(ctx, soon, vote, "to miss its Secret", func(a configv1.AppConfig) bool {
		return is(a, "Rendered", corev1.ConditionFalse, "SecretNotFound")
	})
	if err != nil {
		return err
	}
	if now := v.world.Get("Deployment", voteWeb).GetGeneration(); now != generation {
		return fmt.Errorf("the Deployment was changed: generation %d, was %d", now, generation)
	}
	if err := v.secret(ctx, "late", map[string]string{"key": "key-that-came-late"}); err != nil {
		return err
	}
	bundle, err := v.awaitGood(ctx, rolled, vote)
	if err != nil {
		return err
	}
	return v.awaitRuns(ctx, soon, "Deployment", voteWeb, vote, bundle)
}

// deletes checks that pods keep running, and that a deleted one is replaced, after the AppConfig is
// deleted.
func (v *voters) deletes(ctx context.Context, _ notes) error {
	if err := v.votes(ctx); err != nil {
		return err
	}
	pods := v.podsOf(voteWeb)
	if err := cluster.Delete(ctx, kind, v.namespace, vote); err != nil {
		return err
	}
	if err := v.world.AwaitGone(ctx, soon, kind, vote); err != nil {
		return err
	}
	if err := cluster.Delete(ctx, "Pod", v.namespace, pods[0].GetName()); err != nil {
		return err
	}
	err := v.world.Await(ctx, rolled, "another pod to take the place of "+pods[0].GetName(), func() (bool, string) {
		now := v.podsOf(voteWeb)
		for _, p := range now {
			if !harness.ClaimOf(p).Is("Ready") || p.GetUID() == pods[0].GetUID() {
				return false, "pod " + p.GetName() + " is not ready, or the old one"
			}
		}
		return len(now) == len(pods), fmt.Sprintf("there are %d pods", len(now))
	})
	if err != nil {
		return err
	}
	if kept := newOf(uids(v.podsOf(voteWeb)), uids(pods[1:])); len(kept) > 0 {
		return fmt.Errorf("pods %v were replaced, too", kept)
	}
	return nil
}
