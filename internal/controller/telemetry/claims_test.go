package telemetry

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"
)

func TestClaims(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	tel := New(r)
	born := time.Unix(1000, 0)
	tel.Claims.Observe(Claim{Kind: "EcommercePlatform", Namespace: "shop", Name: "store", Environment: "production", Created: born, Generation: 1}, true)
	tel.Claims.Observe(Claim{
		Kind: "WebApp", Namespace: "shop", Name: "store-backend", Environment: "production", OwnerKind: "EcommercePlatform", OwnerName: "store",
		Phase: "Deploying", Ready: true, Since: born, Refused: true, Created: born, Generation: 3, ReadyGeneration: 1,
	}, false)
	want := `
# HELP storeplane_claim_accepted Whether the claim can be carried out as it is: 0 while its condition Accepted is False, else 1.
# TYPE storeplane_claim_accepted gauge
storeplane_claim_accepted{environment="production",kind="EcommercePlatform",name="store",namespace="shop"} 1
storeplane_claim_accepted{environment="production",kind="WebApp",name="store-backend",namespace="shop"} 0
# HELP storeplane_claim_created_timestamp_seconds When the claim was filed.
# TYPE storeplane_claim_created_timestamp_seconds gauge
storeplane_claim_created_timestamp_seconds{environment="production",kind="EcommercePlatform",name="store",namespace="shop"} 1000
storeplane_claim_created_timestamp_seconds{environment="production",kind="WebApp",name="store-backend",namespace="shop"} 1000
# HELP storeplane_claim_generation_lag By how many generations the claim is ahead of the newest one at which all of it was healthy. 0 once its last change is done.
# TYPE storeplane_claim_generation_lag gauge
storeplane_claim_generation_lag{environment="production",kind="EcommercePlatform",name="store",namespace="shop"} 1
storeplane_claim_generation_lag{environment="production",kind="WebApp",name="store-backend",namespace="shop"} 2
# HELP storeplane_claim_info A claim, always 1. Its owner is the claim that composes it, if one does.
# TYPE storeplane_claim_info gauge
storeplane_claim_info{environment="production",kind="EcommercePlatform",name="store",namespace="shop",owner_kind="",owner_name=""} 1
storeplane_claim_info{environment="production",kind="WebApp",name="store-backend",namespace="shop",owner_kind="EcommercePlatform",owner_name="store"} 1
# HELP storeplane_claim_phase The claim's present phase, always 1.
# TYPE storeplane_claim_phase gauge
storeplane_claim_phase{environment="production",kind="WebApp",name="store-backend",namespace="shop",phase="Deploying"} 1
# HELP storeplane_claim_ready Whether the claim's condition Ready is True: 1 or 0.
# TYPE storeplane_claim_ready gauge
storeplane_claim_ready{environment="production",kind="EcommercePlatform",name="store",namespace="shop"} 0
storeplane_claim_ready{environment="production",kind="WebApp",name="store-backend",namespace="shop"} 1
`
	if err := testutil.GatherAndCompare(r, strings.NewReader(want), "storeplane_claim_accepted", "storeplane_claim_created_timestamp_seconds", "storeplane_claim_generation_lag", "storeplane_claim_info", "storeplane_claim_phase", "storeplane_claim_ready"); err != nil {
		t.Error(err)
	}

	tel.Claims.Forget("EcommercePlatform", types.NamespacedName{Namespace: "shop", Name: "store"})
	tel.Claims.Forget("WebApp", types.NamespacedName{Namespace: "shop", Name: "store"})
	if n := testutil.CollectAndCount(tel.Claims, "storeplane_claim_info"); n != 1 {
		t.Errorf("Series go with their claim, and no other's: want one, got %d", n)
	}
}

// TestClaimsReadyDuration: which times of a claim are counted until it is Ready.
func TestClaimsReadyDuration(t *testing.T) {
	born := time.Unix(1000, 0)
	ready := func(uid types.UID, after time.Duration) Claim {
		return Claim{Kind: "WebApp", Namespace: "shop", Name: "web", UID: uid, Environment: "staging", Created: born, Ready: true, Since: born.Add(after), ReadyGeneration: 1}
	}
	coming := Claim{Kind: "WebApp", Namespace: "shop", Name: "web", UID: "1", Environment: "staging", Created: born}
	broken := coming
	broken.ReadyGeneration = 1

	type look struct {
		claim Claim
		fresh bool
	}
	type want struct {
		count uint64
		sum   float64
	}
	cases := map[string]struct {
		reason string
		looks  []look
		want   want
	}{
		"Becomes":     {reason: "A claim that becomes Ready is counted once, by its own times.", looks: []look{{coming, true}, {ready("1", 42*time.Second), false}, {ready("1", 42*time.Second), false}}, want: want{1, 42}},
		"Resumed":     {reason: "One that was not Ready when this process started is as well.", looks: []look{{coming, false}, {ready("1", 42*time.Second), false}}, want: want{1, 42}},
		"WasReady":    {reason: "One that was Ready then was counted by another process.", looks: []look{{ready("1", time.Second), false}, {ready("1", time.Second), false}}},
		"Breaks":      {reason: "Who was Ready is not new when it is again.", looks: []look{{coming, true}, {ready("1", 42*time.Second), false}, {broken, false}, {ready("1", time.Hour), false}}, want: want{1, 42}},
		"BrokeBefore": {reason: "The status tells that it had been, though it is not now.", looks: []look{{broken, false}, {ready("1", time.Hour), false}}},
		"Swift":       {reason: "It was filed and Ready between two looks.", looks: []look{{ready("1", 2*time.Second), true}}, want: want{1, 2}},
		"NextName":    {reason: "Another claim of the name is another claim, though the end of the first one was not observed.", looks: []look{{ready("1", time.Second), false}, {ready("2", 5*time.Second), false}}, want: want{1, 5}},
		"Clocks":      {reason: "Times are whole seconds, by two clocks.", looks: []look{{coming, true}, {ready("1", -time.Second), false}}, want: want{1, 0}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := prometheus.NewPedanticRegistry()
			tel := New(r)
			for _, l := range tc.looks {
				tel.Claims.Observe(l.claim, l.fresh)
			}
			families, err := r.Gather()
			if err != nil {
				t.Fatal(err)
			}
			got := want{}
			for _, f := range families {
				if f.GetName() == "storeplane_claim_ready_duration_seconds" {
					h := f.GetMetric()[0].GetHistogram()
					got = want{h.GetSampleCount(), h.GetSampleSum()}
				}
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
