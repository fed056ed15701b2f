//go:build e2e

package core

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/e2e-framework/pkg/features"
	"sigs.k8s.io/e2e-framework/pkg/types"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// other has the same name as dev, in another namespace.
var other = &shop{namespace: "e2e-core-other", manifest: "shop/store.yaml"}

func neighbours() types.Feature {
	return features.New("a second shop").
		Assess("killed functions and a restarted Crossplane end in a Ready shop with the same UIDs", assess(survivesOutage, other.namespace, dev.namespace)).
		Assess("two shops of the same name share neither passwords nor orders", assess(apart, other.namespace, dev.namespace)).
		Assess("deleting one shop leaves the other as it was", assess(leavesOther, other.namespace, dev.namespace)).
		Feature()
}

// survivesOutage kills the pods of the function and of Crossplane at several points while the claim
// starts.
func survivesOutage(ctx context.Context, n notes) error {
	functions, err := functionNames(ctx)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := other.claim(ctx); err != nil {
		return err
	}
	for _, blow := range []struct {
		at       harness.Key
		selector string
	}{
		{harness.Key{Kind: "DatabaseCluster", Name: databaseClaim}, functionLabel + "=" + functions[0]},
		{harness.Key{Kind: "StatefulSet", Name: databaseSet}, "app=crossplane"},
		{harness.Key{Kind: "WebApp", Name: backendClaim}, functionLabel + "=" + functions[0]},
	} {
		err := other.world.Await(ctx, settled, blow.at.String()+" to appear", func() (bool, string) {
			return other.world.Get(blow.at.Kind, blow.at.Name) != nil, other.status().String()
		})
		if err != nil {
			return err
		}
		err = cluster.Kube.CoreV1().Pods(systemNamespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, metav1.ListOptions{LabelSelector: blow.selector})
		if err != nil {
			return fmt.Errorf("cannot kill pods of %s: %w", blow.selector, err)
		}
	}
	if err := other.ready(ctx, started); err != nil {
		return err
	}
	n.Addf("Ready after %.1fs", time.Since(start).Seconds())
	return errors.Join(once(other), once(dev))
}

// once returns an error if a composed object was deleted or created twice. Jobs are an exception:
// there is a migration for each image.
func once(s *shop) error {
	if s.world == nil {
		return nil
	}
	var errs []error
	for _, k := range s.world.Keys() {
		h := s.world.History(k.Kind, k.Name)
		if !composed(h[0]) || k.Kind == "Job" {
			continue
		}
		for _, v := range h {
			if v.Deleted {
				errs = append(errs, fmt.Errorf("%s in %s was deleted", k, s.namespace))
			}
			if v.Object.GetUID() != h[0].Object.GetUID() {
				errs = append(errs, fmt.Errorf("%s in %s was made again", k, s.namespace))
				break
			}
		}
	}
	return errors.Join(errs...)
}

// composed reports whether Crossplane created an object for a claim.
func composed(v harness.Version) bool {
	return slices.ContainsFunc(v.Object.GetOwnerReferences(), func(o metav1.OwnerReference) bool {
		return strings.HasSuffix(strings.Split(o.APIVersion, "/")[0], ".example.com")
	})
}

func apart(ctx context.Context, n notes) error {
	if err := errors.Join(dev.ready(ctx, settled), other.ready(ctx, settled)); err != nil {
		return err
	}
	mine, err := passwords(dev.world)
	if err != nil {
		return err
	}
	theirs, err := passwords(other.world)
	if err != nil {
		return err
	}
	if len(mine) != len(theirs) {
		return fmt.Errorf("one shop has %d passwords, the other %d", len(mine), len(theirs))
	}
	for _, m := range mine {
		for _, t := range theirs {
			if m.value == t.value {
				return fmt.Errorf("%s in %s and %s in %s are the same", m.where, dev.namespace, t.where, other.namespace)
			}
		}
	}

	session := rand.Text()
	id, err := dev.order(ctx, session)
	if err != nil {
		return err
	}
	a, err := other.ask(ctx, session, "GET", "/api/orders/"+id, "", "")
	if err != nil {
		return err
	}
	if a.Status != 404 {
		return fmt.Errorf("the other shop answers %d for an order of this one", a.Status)
	}
	if have, err := other.rows(ctx, id); err != nil || have != 0 {
		return errors.Join(err, fmt.Errorf("the order is %d rows in the other shop's database", have))
	}
	n.Addf("%d passwords each", len(mine))
	return nil
}

func leavesOther(ctx context.Context, n notes) error {
	if err := errors.Join(dev.ready(ctx, settled), other.ready(ctx, settled)); err != nil {
		return err
	}
	session := rand.Text()
	id, err := dev.order(ctx, session)
	if err != nil {
		return err
	}
	before := uids(dev)
	took, err := end(ctx, other)
	if err != nil {
		return err
	}
	n.Addf("gone after %.1fs", took.Seconds())
	if after := uids(dev); !slices.Equal(before, after) {
		return fmt.Errorf("the pods of the shop that stays were %v, are %v", before, after)
	}
	if c := dev.status(); !c.Ready() {
		return fmt.Errorf("the shop that stays is not Ready: %s", c)
	}
	return errors.Join(once(dev), dev.serves(ctx, session, id))
}
