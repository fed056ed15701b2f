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
)

func orderIsRow(ctx context.Context, _ notes) error {
	if err := dev.ready(ctx, soon); err != nil {
		return err
	}
	page, err := dev.ask(ctx, rand.Text(), "GET", "/", "", "")
	if err != nil {
		return err
	}
	if page.Status != 200 || !strings.Contains(page.Body, "Stoneware mug") {
		return fmt.Errorf("the page shows no products: %d %.300s", page.Status, page.Body)
	}
	session := rand.Text()
	id, err := dev.order(ctx, session)
	if err != nil {
		return err
	}
	if n, err := dev.rows(ctx, id); err != nil || n != 1 {
		return errors.Join(err, fmt.Errorf("order %s is %d rows in PostgreSQL, not 1", id, n))
	}
	return dev.serves(ctx, session, id)
}

// survives deletes all pods at once, as often as the suite repeats.
func survives(grace *int64) check {
	return func(ctx context.Context, n notes) error {
		for range repeats() {
			if err := surviveOnce(ctx, n, grace); err != nil {
				return err
			}
		}
		return nil
	}
}

func surviveOnce(ctx context.Context, n notes, grace *int64) error {
	if err := dev.ready(ctx, settled); err != nil {
		return err
	}
	session := rand.Text()
	id, err := dev.order(ctx, session)
	if err != nil {
		return err
	}
	old := uids(dev)
	full, err := cluster.FillBucket(ctx, "EcommercePlatform")
	if err != nil {
		return err
	}
	defer full.End()
	start := time.Now()
	all := metav1.ListOptions{LabelSelector: "platform=" + claimName}
	if err := cluster.Kube.CoreV1().Pods(dev.namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: grace}, all); err != nil {
		return fmt.Errorf("cannot delete all pods: %w", err)
	}
	err = dev.world.Await(ctx, settled, "every part to run again", func() (bool, string) {
		if ok, missing := up(dev, old...); !ok {
			return false, missing
		}
		c := dev.status()
		return c.Ready(), c.String()
	})
	if err != nil {
		return err
	}
	n.Addf("%d pods, Ready again after %.1fs", len(old), time.Since(start).Seconds())
	return errors.Join(checkBucket(n, full), dev.serves(ctx, session, id))
}

// uids returns the UIDs of the pods of a shop.
func uids(s *shop) []string {
	var out []string
	for _, p := range s.world.List("Pod") {
		if slices.Contains(s.pods(), p.GetName()) {
			out = append(out, string(p.GetUID()))
		}
	}
	return out
}

// repeats is how often checks with results that may vary are repeated.
func repeats() int {
	if tests.Full() {
		return 5
	}
	return 1
}
