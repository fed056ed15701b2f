//go:build e2e

package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/test/e2e/harness"
	"github.com/storeplane/storeplane/test/e2e/manifests"
)

// migrates is the name of a WebApp, and migratesNamespace its namespace.
const (
	migrates          = "migrates"
	migratesNamespace = "e2e-core-migrates"
)

// neverOverlap checks that a migration that is edited while it runs ends before the next one
// begins. The running one is ended as the message of the claim proposes.
func neverOverlap(ctx context.Context, n notes) (err error) {
	if err := cluster.CreateNamespace(ctx, migratesNamespace); err != nil {
		return err
	}
	w, err := cluster.Watch(ctx, migratesNamespace)
	if err != nil {
		return err
	}
	u, err := manifests.Read("webapp/migrating.yaml", map[string]string{"NAME": migrates, "NAMESPACE": migratesNamespace, "REGISTRY": cluster.Registry})
	if err != nil {
		return err
	}
	if _, err := cluster.Create(ctx, u); err != nil {
		return err
	}
	defer func() {
		ctx := context.WithoutCancel(ctx)
		err = errors.Join(err, cluster.Delete(ctx, "WebApp", migratesNamespace, migrates), w.AwaitGone(ctx, started, "WebApp", migrates))
	}()

	first := ""
	err = w.Await(ctx, started, "a migration that runs", func() (bool, string) {
		for _, j := range migrationJobs(w) {
			if harness.Number(j, "status", "ready") > 0 {
				first = j.GetName()
			}
		}
		return first != "", w.Claim("WebApp", migrates).String()
	})
	if err != nil {
		return err
	}
	if _, err := cluster.Patch(ctx, "WebApp", migratesNamespace, migrates, harness.Patch{"spec": harness.Patch{"migration": harness.Patch{"args": []string{"0"}}}}); err != nil {
		return err
	}
	words := "Job " + first + " of image "
	err = w.Await(ctx, soon, "the claim to say what it waits for", func() (bool, string) {
		c := w.Claim("WebApp", migrates)
		return strings.Contains(c.String(), words) && len(migrationJobs(w)) == 1, c.String()
	})
	if err != nil {
		return err
	}
	jobs := cluster.Kube.BatchV1().Jobs(migratesNamespace)
	if err := jobs.Delete(ctx, first, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}); err != nil {
		return fmt.Errorf("cannot give up Job %s: %w", first, err)
	}
	second := ""
	err = w.Await(ctx, started, "the next migration to complete", func() (bool, string) {
		for _, j := range migrationJobs(w) {
			if j.GetName() != first && harness.ClaimOf(j).Is("Complete") {
				second = j.GetName()
			}
		}
		return second != "", w.Claim("WebApp", migrates).String()
	})
	if err != nil {
		return err
	}
	n.Addf("%s after %s", second, first)
	return afterEach(w, first, second)
}

// migrationJobs returns the Jobs of the WebApp's migrations that exist.
func migrationJobs(w *harness.World) []*unstructured.Unstructured {
	return slices.DeleteFunc(w.List("Job"), func(j *unstructured.Unstructured) bool {
		return !strings.HasPrefix(j.GetName(), migrates+"-migration-")
	})
}

// afterEach checks that the Job of the second migration was created after that of the first, and
// with it its pods, was gone.
func afterEach(w *harness.World, first, second string) error {
	ended := w.History("Job", first)
	begun := w.History("Job", second)
	if len(ended) == 0 || len(begun) == 0 {
		return fmt.Errorf("Jobs %s and %s were not both seen", first, second)
	}
	last := ended[len(ended)-1]
	if !last.Deleted {
		return fmt.Errorf("Job %s is still there", first)
	}
	if begun[0].At.Before(last.At) {
		return fmt.Errorf("Job %s began at %s, before %s was gone at %s", second, begun[0].At, first, last.At)
	}
	return nil
}
