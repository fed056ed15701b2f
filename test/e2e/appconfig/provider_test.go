//go:build e2e

package appconfig

import (
	"context"
	"fmt"
	"slices"
	"time"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/test/e2e/harness"
)

// reelected is how much longer things take if the provider was killed: another pod has to start and
// to be elected.
const reelected = time.Minute

// touch requests a reconcile of an AppConfig without a change, and waits until the provider has
// handled it.
func (g *ground) touch(ctx context.Context, name, token string) error {
	if err := g.change(ctx, kind, name, harness.Patch{"metadata": harness.Patch{"annotations": harness.Patch{xpmeta.AnnotationKeyReconcileRequestedAt: token}}}); err != nil {
		return err
	}
	return g.await(ctx, soon, name, "to be looked at", func(a configv1.AppConfig) bool { return a.GetLastHandledReconcileAt() == token })
}

// stage is a stage of a rollout, recognized by the AppConfig or its target.
type stage struct {
	name string
	here func(configv1.AppConfig) bool
}

// killedAt kills the provider as soon as each stage is reached.
func (v *voters) killedAt(ctx context.Context, n notes, stages []stage) error {
	for _, s := range stages {
		err := v.await(ctx, rolled+reelected, vote, s.name, s.here)
		if err != nil {
			return err
		}
		if err := cluster.KillProvider(ctx, started); err != nil {
			return err
		}
		n.Addf("killed when it was %s", s.name)
	}
	return nil
}

// losesProviderWhileChanging checks that a rollout is completed, and nothing is done twice, if the
// provider is killed.
func (v *voters) losesProviderWhileChanging(ctx context.Context, n notes) error {
	if err := v.votes(ctx); err != nil {
		return err
	}
	was := v.appConfig(vote).Status.AtProvider.Bundle
	patched := func() bool { return !slices.Equal(bundles(v.world.Get("Deployment", voteWeb), vote), []string{was}) }
	return v.rollsOnce(ctx, n, nil, func() error {
		// The provider is down while the AppConfig is edited.
		if err := v.set(ctx, vote, map[string]string{"POLL": "without-provider"}); err != nil {
			return err
		}
		if err := cluster.KillProvider(ctx, started); err != nil {
			return err
		}
		err := v.killedAt(ctx, n, []stage{
			{"rolling out", func(a configv1.AppConfig) bool { return a.Status.AtProvider.Bundle != was }},
			{"changed at its target", func(configv1.AppConfig) bool { return patched() }},
			{"ended", isGood},
		})
		if err != nil {
			return err
		}
		return v.runsPoll(ctx, "without-provider")
	})
}

// losesProviderWhileTakingBack checks that a bundle that does not work is tried only once, even if
// the provider is killed.
func (v *voters) losesProviderWhileTakingBack(ctx context.Context, n notes) error {
	if err := v.votes(ctx); err != nil {
		return err
	}
	good := v.appConfig(vote).Status.AtProvider.Bundle
	pods := uids(v.podsOf(voteWeb))
	bad := ""
	err := v.under(ctx, n, voteWeb, nil, func() error {
		if err := v.set(ctx, vote, map[string]string{"OPTIONS": "Cats"}); err != nil {
			return err
		}
		return v.killedAt(ctx, n, []stage{
			{"rolling out", func(a configv1.AppConfig) bool { return a.Status.AtProvider.Bundle != good }},
			{"changed at its target", func(configv1.AppConfig) bool {
				return !slices.Equal(bundles(v.world.Get("Deployment", voteWeb), vote), []string{good})
			}},
			{"taken back", func(a configv1.AppConfig) bool {
				if f := a.Status.AtProvider.Failed; f != nil {
					bad = f.Bundle
				}
				return bad != ""
			}},
			{"back at its target", func(configv1.AppConfig) bool {
				return slices.Equal(bundles(v.world.Get("Deployment", voteWeb), vote), []string{good})
			}},
		})
	})
	if err != nil {
		return err
	}
	if err := v.awaitTakenBack(ctx, reelected, vote, good); err != nil {
		return err
	}
	if err := v.awaitRuns(ctx, rolled, "Deployment", voteWeb, vote, good); err != nil {
		return err
	}
	if now := uids(v.podsOf(voteWeb)); !slices.Equal(pods, now) {
		return fmt.Errorf("the pods were %v, are %v", pods, now)
	}
	if tries := v.changesTo("Deployment", voteWeb, vote, bad); tries != 1 {
		return fmt.Errorf("bundle %s was tried %d times", bad, tries)
	}
	if err := v.set(ctx, vote, map[string]string{"OPTIONS": "Cats,Dogs"}); err != nil {
		return err
	}
	_, err = v.awaitGood(ctx, soon+reelected, vote)
	return err
}
