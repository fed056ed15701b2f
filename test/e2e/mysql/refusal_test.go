//go:build e2e

package mysql

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// impossible are changes that are refused: by the API server if rejected is true, else by condition Accepted of
// the claim, because the API server alone cannot check them.
var impossible = map[string]struct {
	change, undo harness.Patch
	rejected     bool
	want         string
}{
	"Downgrade":          {harness.Patch{"version": "9.7.0"}, harness.Patch{"version": "9.7"}, false, "version may not go back: 9.7."},
	"UnsupportedVersion": {harness.Patch{"version": "8.4"}, harness.Patch{"version": "9.7"}, false, "version 8.4 is not supported: MySQL 9.7 is"},
	"EvenSize":           {harness.Patch{"size": 2}, harness.Patch{"size": baseSize}, false, "size must be odd with engine mysql"},
	"OwnParameter":       {harness.Patch{"parameters": harness.Patch{"sync_binlog": "0"}}, harness.Patch{"parameters": nil}, false, "parameters.sync_binlog cannot be set with engine mysql"},
	"StrictMode":         {harness.Patch{"synchronousMode": "strict"}, harness.Patch{"synchronousMode": "quorum"}, false, "synchronousMode strict is not available with engine mysql"},
	"EngineChange":       {harness.Patch{"engine": "postgresql"}, nil, true, "engine is immutable"},
	"Shrink":             {harness.Patch{"storageSize": "5Gi"}, nil, true, "storageSize may not shrink: 10Gi to 5Gi"},
	"RemoveStorageSize":  {harness.Patch{"storageSize": nil}, nil, true, "storageSize may not be removed once it is set"},
}

// refuses: what the group cannot do is refused with a message, and no pod is replaced for it.
func (d *database) refuses(ctx context.Context, n notes) error {
	if err := d.ready(ctx); err != nil {
		return err
	}
	before := d.uids()
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(impossible)) {
		if err := d.refusesOne(ctx, name); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	n.Addf("%d changes", len(impossible))
	return errors.Join(append(errs, d.ready(ctx), d.keptPods(before))...)
}

func (d *database) refusesOne(ctx context.Context, name string) error {
	tc := impossible[name]
	if tc.rejected {
		err := d.change(ctx, tc.change, metav1.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			return fmt.Errorf("it was not refused with %q: %w", tc.want, err)
		}
		return nil
	}
	if err := d.change(ctx, tc.change); err != nil {
		return err
	}
	refused := d.says(ctx, soon, "Accepted False: "+tc.want)
	if err := d.change(ctx, tc.undo); err != nil {
		return errors.Join(refused, err)
	}
	return errors.Join(refused, d.whole(ctx, baseSize))
}
