package archive

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/pgbackrest"
)

func TestChoose(t *testing.T) {
	at := func(hour int) time.Time { return time.Date(2026, 3, 1, hour, 0, 0, 0, time.UTC) }
	sets := []pgbackrest.Set{{Stanza: "7100", Label: "old", Stop: at(1)}, {Stanza: "7200", Label: "new", Stop: at(2)}}
	cases := map[string]struct {
		reason string
		sets   []pgbackrest.Set
		system string
		want   string
	}{
		"One":   {reason: "The only database is meant.", sets: sets[:1], want: "old"},
		"Two":   {reason: "Of several the claim names one.", sets: sets, want: "cannot restore from shop/orders: there are backups of several databases: 7100 (1 backup, complete at 2026-03-01T01:00:01Z), 7200 (1 backup, complete at 2026-03-01T02:00:01Z): set restoreFrom.systemIdentifier to that of the one to restore"},
		"Named": {reason: "Which is taken, though it is not the newest.", sets: sets, system: "7100", want: "old"},
		"Wrong": {reason: "One that is not there is refused.", sets: sets[:1], system: "7300", want: "cannot restore from shop/orders: there is no backup of system identifier 7300, only of 7100 (1 backup, complete at 2026-03-01T01:00:01Z)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := choose(tc.sets, instance.Restore{Namespace: "shop", Name: "orders", System: tc.system}, time.Time{}, at(12))
			said := got.Label
			if err != nil {
				said = err.Error()
			}
			if diff := cmp.Diff(tc.want, said); diff != "" {
				t.Errorf("%s\nchoose(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
