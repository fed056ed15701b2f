package cli

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	kerrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/storeplane/storeplane/internal/plan/state"
	"github.com/storeplane/storeplane/internal/waves"
)

// printWaves prints the waves of an upgrade. It prints nothing without waves, where no claim waits,
// and to users who may not read the settings and the claims of all namespaces.
func printWaves(ctx context.Context, live *state.Live, out io.Writer) error {
	p, err := progress(ctx, live)
	if kerrors.IsForbidden(err) {
		return nil // Waves are for the platform team.
	}
	if err != nil {
		return err
	}
	return writeWaves(out, p)
}

// writeWaves writes the waves of an upgrade as a table.
func writeWaves(out io.Writer, p waves.Progress) error {
	if len(p.Waves) == 0 {
		return nil
	}
	fmt.Fprintf(out, "\nWaves of release %s:\n", p.Release)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, wave := range p.Waves {
		fmt.Fprintf(w, "  %s\t%s\t%s\n", wave.Name, wave.State, describe(wave))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("cannot print waves: %w", err)
	}
	return nil
}

// progress returns the progress of an upgrade in the waves of the installation's settings.
func progress(ctx context.Context, live *state.Live) (waves.Progress, error) {
	settings, err := live.Get(ctx, waves.SettingsKind.GroupVersion().String(), waves.SettingsKind.Kind, "", waves.SettingsName)
	if err != nil {
		return waves.Progress{}, err
	}
	list, err := waves.Of(settings)
	if err != nil || len(list) == 0 {
		return waves.Progress{}, err
	}
	all, err := allClaims(ctx, live, "")
	if err != nil {
		return waves.Progress{}, err
	}
	namespaces, err := live.List(ctx, "v1", "Namespace", "", "")
	if err != nil {
		return waves.Progress{}, err
	}
	labelsOf := map[string]map[string]string{}
	for _, n := range namespaces {
		labelsOf[n.GetName()] = n.GetLabels()
	}
	claims := make([]waves.Claim, 0, len(all))
	for _, u := range all {
		claims = append(claims, waves.Read(u))
	}
	return waves.Decide(list, waves.Target(claims), claims, func(namespace string) map[string]string { return labelsOf[namespace] }, time.Now()), nil
}

// describe describes the progress of a wave.
func describe(w waves.WaveProgress) string {
	text := fmt.Sprintf("%d of %d claims upgraded", w.Upgraded, w.Claims)
	if w.Aside > 0 {
		text += fmt.Sprintf(", %d do not count: paused, being deleted, or not ready before", w.Aside)
	}
	if w.State == waves.Halted && len(w.Failing) == 0 {
		text += ". The next wave begins once a claim of this one is upgraded and ready"
	}
	if !w.Until.IsZero() {
		text += ", the next wave begins at " + w.Until.UTC().Format(time.RFC3339)
	}
	for i, c := range w.Failing {
		if i == maxFailing {
			return text + fmt.Sprintf("; and %d more fail", len(w.Failing)-i)
		}
		text += fmt.Sprintf("; %s %s in namespace %s is %s: %s", c.Kind, c.Name, c.Namespace, c.Phase, c.Message)
	}
	return text
}

// maxFailing is how many failing claims of a wave are named.
const maxFailing = 3
