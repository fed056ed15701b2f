package cli

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/waves"
)

func TestWriteWaves(t *testing.T) {
	failing := func(name string) waves.Claim {
		return waves.Claim{Kind: "DatabaseCluster", Namespace: "shop", Name: name, Phase: "Failed", Message: "Waiting for instances (cannot pull image)"}
	}
	cases := map[string]struct {
		reason string
		p      waves.Progress
		want   string
	}{
		"Rest": {reason: "Where no claim waits there is nothing to say."},
		"Pauses": {
			reason: "When the next wave begins is said.",
			p: waves.Progress{Release: "v0.2.0-a1b2c3", Waves: []waves.WaveProgress{
				{Name: "canaries", State: waves.Pausing, Claims: 3, Upgraded: 2, Aside: 1, Until: time.Date(2026, time.March, 1, 12, 30, 0, 0, time.UTC)},
				{Name: "others", State: waves.Waiting, Claims: 20},
			}},
			want: `
Waves of release v0.2.0-a1b2c3:
  canaries  Pausing  2 of 3 claims upgraded, 1 do not count: paused, being deleted, or not ready before, the next wave begins at 2026-03-01T12:30:00Z
  others    Waiting  0 of 20 claims upgraded
`,
		},
		"Halted": {
			reason: "What halts is named, and the rest counted.",
			p: waves.Progress{Release: "v0.2.0-a1b2c3", Waves: []waves.WaveProgress{
				{Name: "canaries", State: waves.Halted, Claims: 5, Upgraded: 1, Failing: []waves.Claim{failing("a"), failing("b"), failing("c"), failing("d")}},
			}},
			want: `
Waves of release v0.2.0-a1b2c3:
  canaries  Halted  1 of 5 claims upgraded; DatabaseCluster a in namespace shop is Failed: Waiting for instances (cannot pull image); DatabaseCluster b in namespace shop is Failed: Waiting for instances (cannot pull image); DatabaseCluster c in namespace shop is Failed: Waiting for instances (cannot pull image); and 1 more fail
`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			if err := writeWaves(&got, tc.p); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.String()); diff != "" {
				t.Errorf("%s\nwriteWaves(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
