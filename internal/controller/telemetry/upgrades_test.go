package telemetry

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/storeplane/storeplane/internal/waves"
)

// TestUpgrades: while claims are upgraded the numbers of a wave add up, and afterwards there are no
// series.
func TestUpgrades(t *testing.T) {
	u := newUpgrades()
	u.Observe(waves.Progress{Release: "v2", Waves: []waves.WaveProgress{{Name: "canaries", State: waves.Halted, Claims: 7, Upgraded: 3, Aside: 1, Failing: make([]waves.Claim, 2)}}})
	want := `
# HELP storeplane_upgrade_claims How many claims of a wave are in a state, while claims are upgraded in waves: waiting, upgraded, failing, or aside, which are paused, or were not ready before. Claims of a shop are counted with it.
# TYPE storeplane_upgrade_claims gauge
storeplane_upgrade_claims{release="v2",state="aside",wave="canaries"} 1
storeplane_upgrade_claims{release="v2",state="failing",wave="canaries"} 2
storeplane_upgrade_claims{release="v2",state="upgraded",wave="canaries"} 3
storeplane_upgrade_claims{release="v2",state="waiting",wave="canaries"} 1
# HELP storeplane_upgrade_halted Whether a wave is halted, while claims are upgraded in waves: 1 or 0.
# TYPE storeplane_upgrade_halted gauge
storeplane_upgrade_halted{release="v2",wave="canaries"} 1
`
	if err := testutil.CollectAndCompare(u, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	u.Observe(waves.Progress{})
	if n := testutil.CollectAndCount(u); n != 0 {
		t.Errorf("where nothing is upgraded there are %d series", n)
	}
}
