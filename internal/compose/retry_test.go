package compose

import (
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
)

// at is a source with a time of its own.
type at struct {
	SystemSource

	now time.Time
}

func (a at) Now() time.Time { return a.now }

// TestRetryAfter: nothing waits for a component with a RetryAfter that cannot be created. Its creation is tried
// again when it is due, and once what it waits for is healthy.
func TestRetryAfter(t *testing.T) {
	web := Component{Name: "web", Object: deployment("web", "web:1")}
	conf := Component{Name: "conf", Object: configMap("conf", "new")}
	late := Component{Name: "late", Object: configMap("late", "x"), RetryAfter: []string{"web"}}
	const stoppedThere = `cannot compose resources: cannot apply composed resource "late": exceeded quota`
	var record *structpb.Value
	step := func(what string, after time.Duration, webHealthy, refused bool, want ...string) {
		t.Helper()
		observed := map[string]*structpb.Struct{"web": observe(web)}
		if webHealthy {
			observed["web"] = madeHealthy(observed["web"])
		}
		synced := map[string]any{"type": "Synced", "status": "True", "observedGeneration": 2}
		if refused {
			synced["status"], synced["message"] = "False", stoppedThere
		}
		req := request(t, 2, map[string]any{"phase": "Deploying", "conditions": []any{synced}}, observed)
		if record != nil {
			child(req.GetObserved().GetComposite().GetResource(), "status").Fields["refusal"] = record
		}
		req.RequiredResources = map[string]*fnv1.Resources{"existing/conf": nil, "existing/late": nil}
		rsp := respondNext(req, planned(&Plan{Components: []Component{web, conf, late}}), at{now: noon.Add(after)})
		record = rsp.GetDesired().GetComposite().GetResource().GetFields()["status"].GetStructValue().GetFields()["refusal"]
		var got []string
		for _, n := range []string{"conf", "late"} {
			if rsp.GetDesired().GetResources()[n] != nil {
				got = append(got, n)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: applied -want, +got:\n%s", what, diff)
		}
		if ttl := rsp.GetMeta().GetTtl().AsDuration(); record != nil && ttl > refusedCreationTTL {
			t.Errorf("%s: want a pass when it is due, got a time to live of %v", what, ttl)
		}
	}
	step("at first", 0, false, false, "conf", "late")
	step("right after the refusal", 0, false, true, "conf")
	step("before it is due", 20*time.Second, false, false, "conf")
	step("when it is due", 31*time.Second, false, false, "conf", "late")
	step("after another refusal", 31*time.Second, false, true, "conf")
	step("when what it waits for is healthy", 40*time.Second, true, false, "conf", "late")
	step("after a refusal then, when all waits as for others", 40*time.Second, true, true)
}
