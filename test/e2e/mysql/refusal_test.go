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

// refused is a change that is refused: by the API server if rejected is true, else by condition Accepted of the claim,
// because the API server alone cannot check it. undo is what the spec has otherwise.
type refused struct {
	change, undo harness.Patch
	rejected     bool
	want         string
}

var impossible = map[string]refused{
	"UnsupportedVersion": {harness.Patch{"version": "8.4"}, harness.Patch{"version": "9.7"}, false, "version 8.4 is not supported: MySQL 9.7 is"},
	"EvenSize":           {harness.Patch{"size": 2}, harness.Patch{"size": baseSize}, false, "size must be odd with engine mysql, is 2"},
	"TooLarge":           {harness.Patch{"size": 9}, harness.Patch{"size": baseSize}, false, "size must be 1, 3, 5 or 7 with engine mysql, is 9"},
	"OwnParameter":       {harness.Patch{"parameters": harness.Patch{"sync_binlog": "0"}}, harness.Patch{"parameters": nil}, false, "parameters.sync_binlog cannot be set with engine mysql"},
	"StrictMode":         {harness.Patch{"synchronousMode": "strict"}, harness.Patch{"synchronousMode": "quorum"}, false, "synchronousMode strict is not available with engine mysql"},
	"Asynchronous":       {harness.Patch{"synchronous": false}, harness.Patch{"synchronous": nil}, false, "synchronous cannot be false with engine mysql"},
	"SynchronousAlone":   {harness.Patch{"synchronous": true, "size": 1}, harness.Patch{"synchronous": nil, "size": baseSize}, false, "synchronous needs a size of at least 3 with engine mysql, is 1"},
	"EngineChange":       {harness.Patch{"engine": "postgresql"}, nil, true, "engine is immutable"},
	"Shrink":             {harness.Patch{"storageSize": "5Gi"}, nil, true, "storageSize may not shrink: 10Gi to 5Gi"},
	"RemoveStorageSize":  {harness.Patch{"storageSize": nil}, nil, true, "storageSize may not be removed once it is set"},
}

// refuses: what the group cannot do is refused with a message, and no pod is replaced for it.
func (d *database) refuses(ctx context.Context, n notes) error {
	cases := maps.Clone(impossible)
	running, err := d.release(ctx)
	if err != nil {
		return err
	}
	if i := strings.LastIndex(running, "."); running[i:] != ".0" {
		cases["Downgrade"] = refused{harness.Patch{"version": running[:i] + ".0"}, harness.Patch{"version": "9.7"}, false, "version may not go back: " + running + " → " + running[:i] + ".0"}
	} else {
		n.Addf("servers run %s, the first release of their series, so that no downgrade was tried", running)
	}
	before := d.uids()
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		if err := d.refusesOne(ctx, cases[name]); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	n.Addf("%d changes", len(cases))
	return errors.Join(append(errs, d.keptPods(before))...)
}

func (d *database) refusesOne(ctx context.Context, r refused) error {
	if r.rejected {
		err := d.change(ctx, r.change, metav1.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), r.want) {
			return fmt.Errorf("it was not refused with %q: %w", r.want, err)
		}
		return nil
	}
	if err := d.change(ctx, r.change); err != nil {
		return err
	}
	refusal := d.world.Await(ctx, soon, fmt.Sprintf("the claim to refuse it with %q", r.want), func() (bool, string) {
		c := d.status()
		accepted := c.Condition("Accepted")
		return accepted.Status == metav1.ConditionFalse && strings.Contains(accepted.Message, r.want), c.String()
	})
	if err := d.change(ctx, r.undo); err != nil {
		return errors.Join(refusal, err)
	}
	return errors.Join(refusal, d.whole(ctx, baseSize))
}
