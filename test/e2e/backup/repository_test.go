//go:build e2e

package backup

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// repositoryGrows checks that backup.storageSize expands the volume of the backups without a
// restart, and that it cannot shrink.
func (d *timed) repositoryGrows(ctx context.Context, _ notes) error {
	if err := d.claimed(ctx); err != nil {
		return err
	}
	const volume, server = "data-" + ledgerName + "-repository-0", ledgerName + "-repository-0"
	if have := harness.Field(d.world.Get("PersistentVolumeClaim", volume), "spec", "resources", "requests", "storage"); have != "20Gi" {
		return fmt.Errorf("volume claim %s asks for %s, want five times the 4Gi of the database", volume, have)
	}
	before := d.world.Get("Pod", server).GetUID()
	size := func(want string, options ...string) error {
		patch := harness.Patch{"spec": harness.Patch{"backup": harness.Patch{"storageSize": want}}}
		_, err := cluster.Patch(ctx, "DatabaseCluster", d.namespace, ledgerName, patch, options...)
		return err
	}
	if err := size("25Gi"); err != nil {
		return err
	}
	err := d.world.Await(ctx, done, "a volume of 25Gi", func() (bool, string) {
		have := harness.Field(d.world.Get("PersistentVolumeClaim", volume), "status", "capacity", "storage")
		return have == "25Gi", "it has " + have
	})
	if err != nil {
		return err
	}
	if after := d.world.Get("Pod", server).GetUID(); after != before {
		return fmt.Errorf("pod %s was replaced", server)
	}
	if err := size("24Gi", metav1.DryRunAll); err == nil || !strings.Contains(err.Error(), "backup.storageSize may not shrink: 25Gi to 24Gi") {
		return fmt.Errorf("shrinking was not refused with a message: %w", err)
	}
	return d.healthy(ctx)
}
