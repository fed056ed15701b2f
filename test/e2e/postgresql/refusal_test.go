//go:build e2e

package postgresql

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

// impossible are changes that are refused: by the API server if rejected is true, else by condition
// Accepted of the claim, because the API server alone cannot check them.
var impossible = map[string]struct {
	change, undo harness.Patch
	rejected     bool
	want         string
}{
	"Downgrade":          {harness.Patch{"version": "16"}, harness.Patch{"version": "17"}, false, "version may not go back: 17."},
	"MajorChange":        {harness.Patch{"version": "18"}, harness.Patch{"version": "17"}, false, "version may not change its major: 17."},
	"UnsupportedVersion": {harness.Patch{"version": "19"}, harness.Patch{"version": "17"}, false, "version 19 is not supported"},
	"OwnParameter":       {harness.Patch{"parameters": harness.Patch{"listen_addresses": "127.0.0.1"}}, harness.Patch{"parameters": nil}, false, "parameters.listen_addresses is set by Storeplane"},
	"SynchronousAlone":   {harness.Patch{"synchronous": true, "size": 1}, harness.Patch{"synchronous": nil, "size": baseSize}, false, "synchronous needs a size of at least 2"},
	"EngineChange":       {harness.Patch{"engine": "mysql"}, nil, true, "engine is immutable"},
	"Shrink":             {harness.Patch{"storageSize": "5Gi"}, nil, true, "storageSize may not shrink"},
	"RemoveStorageSize":  {harness.Patch{"storageSize": nil}, nil, true, "storageSize may not be removed once it is set"},
}

func (d *database) refuses(ctx context.Context, n notes) error {
	before := d.uids()
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(impossible)) {
		tc := impossible[name]
		if tc.rejected {
			err := d.change(ctx, tc.change, metav1.DryRunAll)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				errs = append(errs, fmt.Errorf("%s: was not refused with %q: %w", name, tc.want, err))
			}
			continue
		}
		if err := d.change(ctx, tc.change); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
			continue
		}
		if err := d.says(ctx, soon, "Accepted False: "+tc.want); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
		if err := d.change(ctx, tc.undo); err != nil {
			return errors.Join(append(errs, err)...)
		}
		if err := d.whole(ctx, baseSize); err != nil {
			return errors.Join(append(errs, fmt.Errorf("%s: %w", name, err))...)
		}
	}
	n.Addf("%d changes", len(impossible))
	if after := d.uids(); !maps.Equal(before, after) {
		errs = append(errs, fmt.Errorf("the pods were %v, are %v", before, after))
	}
	return errors.Join(errs...)
}
