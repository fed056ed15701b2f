package compose

import (
	"slices"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/protobuf/types/known/structpb"
)

// TestDecidePaused: a paused object is created at once, and does not count as healthy, whatever its
// status, until it is no longer declared as paused.
func TestDecidePaused(t *testing.T) {
	migration := Component{Name: "migration", Object: job("migration", "app:1"), Once: true}
	declare := func(paused bool) *Plan {
		web := Component{Name: "web", Object: deployment("web", "app:1"), ChangeAfter: []string{"migration"}, Paused: paused}
		return &Plan{Components: []Component{migration, web, {Name: "clean", Object: configMap("clean", ""), After: []string{"web"}}}}
	}
	web := madeHealthy(observe(Component{Name: "web", Object: deployment("web", "app:1")}))
	at, complete := observe(migration), madeHealthy(observe(migration))
	cases := map[string]struct {
		reason   string
		paused   bool
		observed map[string]*structpb.Struct
		applied  []string
		withheld []string
		message  string
	}{
		"New":      {reason: "It is created beside what it waits for.", paused: true, applied: []string{"migration", "web"}, withheld: []string{"web", "clean"}, message: "Waits for migration"},
		"Waits":    {reason: "Replicas that are ready, none for example, do not make it healthy.", paused: true, observed: map[string]*structpb.Struct{"migration": at, "web": web}, applied: []string{"migration", "web"}, withheld: []string{"web", "clean"}, message: "Waits for migration"},
		"Released": {reason: "What it waited for is healthy, and the intent is about to release it.", paused: true, observed: map[string]*structpb.Struct{"migration": complete, "web": web}, applied: []string{"migration", "web"}, withheld: []string{"clean"}, message: "A change is being applied"},
		"Runs":     {reason: "Then its status counts.", observed: map[string]*structpb.Struct{"migration": complete, "web": web}, applied: []string{"clean", "migration", "web"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := request(t, 1, nil, tc.observed)
			req.RequiredResources = map[string]*fnv1.Resources{"existing/migration": nil, "existing/web": nil, "existing/clean": nil}
			d, err := Decide(NewClaim(req, clock{}), declare(tc.paused))
			if err != nil {
				t.Fatal(err)
			}
			if got := names(d.Apply); !slices.Equal(got, tc.applied) {
				t.Errorf("%s\nDecide() applies %v, want %v", tc.reason, got, tc.applied)
			}
			if !slices.Equal(d.Withheld, tc.withheld) {
				t.Errorf("%s\nDecide() withholds %v, want %v", tc.reason, d.Withheld, tc.withheld)
			}
			if h := d.Health["web"]; h.Message != tc.message || h.IsHealthy() != (tc.message == "") {
				t.Errorf("%s\nDecide(): web is %+v, want message %q", tc.reason, h, tc.message)
			}
		})
	}
}
