package compose

import (
	"maps"
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
)

// noon is the time of clock.
var noon = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

type clock struct{ SystemSource }

func (clock) Now() time.Time { return noon }

// ago returns the time that long before noon, in the format of conditions.
func ago(d time.Duration) string { return noon.Add(-d).Format(time.RFC3339) }

func since(typ, status string, d time.Duration) map[string]any {
	return map[string]any{"type": typ, "status": status, "reason": "Waiting", "message": "old", "lastTransitionTime": ago(d)}
}

func failedCondition(typ string) map[string]any { return reasoned(typ, "Failed") }

// reasoned returns a condition that is False for a reason.
func reasoned(typ, reason string) map[string]any {
	c := since(typ, "False", time.Second)
	c["reason"] = reason
	return c
}

// renamed gives an observed object another name.
func renamed(obj *structpb.Struct) *structpb.Struct {
	child(obj, "metadata").Fields["name"] = structpb.NewStringValue("another")
	return obj
}

// TestHoldsStatus: which changes of the status a claim writes before it is ready.
func TestHoldsStatus(t *testing.T) {
	db := Component{Name: "db", Object: deployment("db", "db:1")}
	web := Component{Name: "web", Object: deployment("web", "web:1"), After: []string{"db"}}
	unready := map[string]*structpb.Struct{"db": observe(db), "web": observe(web)}
	const held, failure = "held", "shop-web-1: the image cannot be pulled"
	comingUp := func(d time.Duration) []any { return []any{since("Ready", "False", d)} }

	cases := map[string]struct {
		reason     string
		first      bool                        // the claim has no status yet
		stored     bool                        // it is in a cluster
		phase      string                      // the phase in the claim's status, if it is not that of a starting claim
		referenced map[string]*structpb.Struct // if these are not the observed ones
		alone      bool                        // no other claim composes it
		review     bool
		conditions []any
		observed   map[string]*structpb.Struct
		failure    string         // of a pod, in the claim's status
		status     map[string]any // of the plan
		want       string         // message that is written
	}{
		"Step":        {reason: "While a claim of a claim comes up, its steps are not written.", conditions: comingUp(20 * time.Second), observed: unready, want: held},
		"Trouble":     {reason: "After a minute each change is reported.", conditions: comingUp(time.Minute), observed: unready, want: "new"},
		"Alone":       {reason: "A claim without a parent is read by its team.", alone: true, conditions: comingUp(20 * time.Second), observed: unready, want: "new"},
		"WasReady":    {reason: "That it is not ready any more is news.", conditions: []any{since("Ready", "True", time.Second)}, observed: unready, want: "new"},
		"NoCondition": {reason: "Without an age each change is reported.", observed: unready, want: "new"},
		"Failed":      {reason: "A failure is news.", conditions: comingUp(time.Second), observed: map[string]*structpb.Struct{"db": broken(observe(db)), "web": observe(web)}, want: "new"},
		"Done":        {reason: "Ready is news.", conditions: comingUp(time.Second), observed: map[string]*structpb.Struct{"db": madeHealthy(observe(db)), "web": madeHealthy(observe(web))}, want: "new"},
		"PodFails":    {reason: "And why a pod does not come up: its parent passes that on.", conditions: comingUp(time.Second), observed: unready, status: map[string]any{"podFailure": failure}, want: "new"},
		"PodRuns":     {reason: "Or that it does at last.", conditions: comingUp(time.Second), observed: unready, failure: failure, want: "new"},
		"Settings":    {reason: "A claim goes on with the settings that it had: it must not forget them.", conditions: comingUp(time.Second), observed: unready, status: map[string]any{"acceptedSettings": "{}"}, want: "new"},
		"Added":       {reason: "A pass that adds objects leaves the status to the next, with or without a parent.", alone: true, conditions: comingUp(time.Second), observed: map[string]*structpb.Struct{"db": madeHealthy(observe(db))}, want: held},
		"AddedOld":    {reason: "However long that takes.", alone: true, conditions: comingUp(time.Hour), observed: map[string]*structpb.Struct{"db": madeHealthy(observe(db))}, want: held},
		"Removed":     {reason: "One that removes objects is reported.", alone: true, observed: map[string]*structpb.Struct{"db": observe(db), "web": observe(web), "old": stored(applied(t, configMap("old", "")))}, want: "new"},
		"Refused":     {reason: "What the API server refuses is referenced and never observed: the status is written all the same.", alone: true, conditions: comingUp(time.Hour), observed: map[string]*structpb.Struct{"db": madeHealthy(observe(db))}, referenced: unready, want: "new"},
		"Renamed":     {reason: "An object that has another name than it would get today is no new one.", alone: true, conditions: comingUp(time.Hour), observed: map[string]*structpb.Struct{"db": renamed(madeHealthy(observe(db))), "web": observe(web)}, want: "new"},
		"Phase":       {reason: "Another phase is news.", phase: "Running", conditions: comingUp(20 * time.Second), observed: unready, want: "new"},
		"Stored":      {reason: "Nor does the first pass of a claim in a cluster: its conditions are written, and begin the next one.", first: true, stored: true, alone: true, observed: map[string]*structpb.Struct{}},
		"StoredNext":  {reason: "Which writes it.", first: true, stored: true, alone: true, observed: unready, want: "new"},
		"First":       {reason: "There is no other pass for a claim from a file.", first: true, alone: true, observed: map[string]*structpb.Struct{}, want: "new"},
		"Corrected":   {reason: "That a claim no longer fails is reported at once.", phase: "Failed", alone: true, observed: map[string]*structpb.Struct{}, want: "new"},
		"Review":      {reason: "A review has the status at once.", first: true, review: true, observed: map[string]*structpb.Struct{}, want: "new"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var status map[string]any
			if !tc.first {
				status = map[string]any{"phase": "Deploying", "message": held, "conditions": tc.conditions}
			}
			if tc.failure != "" {
				status["podFailure"] = tc.failure
			}
			if tc.phase != "" {
				status["phase"] = tc.phase
			}
			req := request(t, 1, status, tc.observed)
			if tc.stored {
				child(req.GetObserved().GetComposite().GetResource(), "metadata").Fields["resourceVersion"] = structpb.NewStringValue("1")
			}
			if tc.referenced != nil {
				refs, err := structpb.NewList(references(tc.referenced))
				if err != nil {
					t.Fatal(err)
				}
				child(child(req.GetObserved().GetComposite().GetResource(), "spec"), "crossplane").Fields["resourceRefs"] = structpb.NewListValue(refs)
			}
			if !tc.alone {
				parent := structpb.NewStructValue(mustStruct(t, map[string]any{"controller": true}))
				child(req.GetObserved().GetComposite().GetResource(), "metadata").Fields["ownerReferences"] = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{parent}})
			}
			req.RequiredResources = map[string]*fnv1.Resources{"existing/db": nil, "existing/web": nil}
			var source Source = clock{}
			if tc.review {
				source = ReviewSource{}
			}
			plan := &Plan{Components: []Component{db, web}, Status: func(o Outcome) any {
				out := map[string]any{"phase": string(o.Phase), "message": "new"}
				maps.Copy(out, tc.status)
				return mustStruct(t, out)
			}}
			s := Respond(req, planned(plan), source).GetDesired().GetComposite().GetResource().GetFields()["status"].GetStructValue()
			if got := s.GetFields()["message"].GetStringValue(); got != tc.want {
				t.Errorf("%s\nRespond(): want message %q, got %v", tc.reason, tc.want, s.AsMap())
			}
			if s.GetFields()["conditions"] != nil {
				t.Errorf("%s\nRespond() writes conditions, which are Crossplane's: %v", tc.reason, s.AsMap())
			}
		})
	}
}

// TestHoldConditions: while a claim starts, conditions become True together, and become False at
// once.
func TestHoldConditions(t *testing.T) {
	db, web := Component{Name: "db", Object: deployment("db", "db:1")}, Component{Name: "web", Object: deployment("web", "web:1")}
	half := map[string]*structpb.Struct{"db": madeHealthy(observe(db)), "web": observe(web)}
	all := map[string]*structpb.Struct{"db": madeHealthy(observe(db)), "web": madeHealthy(observe(web))}
	done := map[string]any{"phase": "Running", "readyGeneration": 1, "observedGeneration": 1}

	cases := map[string]struct {
		reason     string
		status     map[string]any
		conditions []any
		observed   map[string]*structpb.Struct
		settles    bool // WebReady
		db, web    string
	}{
		"Steps":      {reason: "One that has several reasons keeps the first.", settles: true, conditions: []any{since("Ready", "False", time.Second), since("WebReady", "False", time.Second)}, observed: half, db: "True Healthy ", web: "False Waiting old"},
		"StepsLong":  {reason: "Not for longer than a minute.", settles: true, conditions: []any{since("Ready", "False", time.Second), since("WebReady", "False", time.Minute)}, observed: half, db: "True Healthy ", web: "False Waiting "},
		"StepsAgain": {reason: "Nor where the claim has been ready, and waits for something else.", settles: true, status: map[string]any{"phase": "Degraded", "readyGeneration": 1}, conditions: []any{since("Ready", "False", time.Second), reasoned("WebReady", "Lagging")}, observed: half, db: "True Healthy ", web: "False Waiting "},
		"ComesUp":    {reason: "While others come up, a part that is healthy waits for them.", conditions: []any{since("Ready", "False", time.Second), since("DbReady", "False", time.Second)}, observed: half, db: "False Waiting old", web: "False Waiting "},
		"Trouble":    {reason: "Not for longer than a minute.", conditions: []any{since("Ready", "False", time.Minute), since("DbReady", "False", time.Minute)}, observed: half, db: "True Healthy ", web: "False Waiting "},
		"Never":      {reason: "What was never reported is reported as it is.", conditions: []any{since("Ready", "False", time.Second)}, observed: half, db: "True Healthy ", web: "False Waiting "},
		"WasTrue":    {reason: "What is True stays so.", conditions: []any{since("Ready", "False", time.Second), since("DbReady", "True", time.Second)}, observed: half, db: "True Healthy ", web: "False Waiting "},
		"Breaks":     {reason: "What breaks is reported at once.", conditions: []any{since("Ready", "False", time.Second), since("WebReady", "True", time.Second)}, observed: half, db: "True Healthy ", web: "False Waiting "},
		"NotTold":    {reason: "Until the status reports Running.", conditions: []any{since("Ready", "False", time.Second), since("DbReady", "False", time.Second), since("WebReady", "False", time.Second)}, observed: all, db: "False Waiting old", web: "False Waiting old"},
		"Settled":    {reason: "Then all are True, with Ready.", status: done, conditions: []any{since("Ready", "False", time.Second), since("DbReady", "False", time.Second), since("WebReady", "False", time.Second)}, observed: all, db: "True Healthy ", web: "True Healthy "},
		"Failed":     {reason: "The end of a failure is reported at once.", conditions: []any{since("Ready", "False", time.Second), failedCondition("DbReady")}, observed: half, db: "True Healthy ", web: "False Waiting "},
		"Long":       {reason: "A claim that comes up step by step has a part wait for a minute and no more.", conditions: []any{since("Ready", "False", time.Second), since("DbReady", "False", time.Minute)}, observed: half, db: "True Healthy ", web: "False Waiting "},
		"LaterNews":  {reason: "A claim that is ready reports what gets better at once.", conditions: []any{since("Ready", "True", time.Second), since("DbReady", "False", time.Second)}, observed: all, db: "True Healthy ", web: "True Healthy "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status := map[string]any{"phase": "Deploying"}
			if tc.status != nil {
				status = tc.status
			}
			status["conditions"] = tc.conditions
			rsp := Respond(request(t, 1, status, tc.observed), planned(&Plan{Components: []Component{db, web}, Conditions: func(o Outcome) []Condition {
				web := PartReady("WebReady", o, "web")
				web.Settles = tc.settles
				return []Condition{PartReady("DbReady", o, "db"), web}
			}}), clock{})
			got := map[string]string{}
			for _, c := range rsp.GetConditions() {
				word := map[fnv1.Status]string{fnv1.Status_STATUS_CONDITION_TRUE: "True", fnv1.Status_STATUS_CONDITION_FALSE: "False"}[c.GetStatus()]
				got[c.GetType()] = word + " " + c.GetReason() + " " + c.GetMessage()
			}
			if diff := cmp.Diff([]string{tc.db, tc.web}, []string{got["DbReady"], got["WebReady"]}); diff != "" {
				t.Errorf("%s\nRespond() conditions: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestProbeCircuit: a claim at rest whose circuit breaker stays open causes one event after each
// cooldown, and none otherwise.
func TestProbeCircuit(t *testing.T) {
	db := Component{Name: "db", Object: deployment("db", "db:1")}
	cases := map[string]struct {
		reason     string
		conditions []any
		last       string
		want       string
	}{
		"Closed":     {reason: "Without an open breaker there is nothing to say.", conditions: []any{since("Responsive", "True", time.Hour)}},
		"Opened":     {reason: "During the cooldown no event closes it.", conditions: []any{since("Responsive", "False", 4*time.Minute)}},
		"Truncated":  {reason: "A condition's time is that of a second, and the breaker may have opened at its end.", conditions: []any{since("Responsive", "False", 5*time.Minute)}},
		"Cooled":     {reason: "After it the next one does.", conditions: []any{since("Responsive", "False", 5*time.Minute+2*time.Second)}, want: ago(0)},
		"Probed":     {reason: "One is enough.", conditions: []any{since("Responsive", "False", 7*time.Minute)}, last: ago(2 * time.Minute), want: ago(2 * time.Minute)},
		"LongerThan": {reason: "An installation may have a longer cooldown: then there is one more.", conditions: []any{since("Responsive", "False", 10*time.Minute)}, last: ago(6 * time.Minute), want: ago(0)},
		"Again":      {reason: "A breaker that opens anew is another one.", conditions: []any{since("Responsive", "False", 6*time.Minute)}, last: ago(time.Hour), want: ago(0)},
		"Kept":       {reason: "What was said stays: to take it away would be another event.", conditions: []any{since("Responsive", "True", time.Hour)}, last: ago(2 * time.Hour), want: ago(2 * time.Hour)},
		"NoTime":     {reason: "A breaker whose age is not known is left alone.", conditions: []any{map[string]any{"type": "Responsive", "status": "False"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status := map[string]any{"phase": "Running", "readyGeneration": 1, "observedGeneration": 1, "conditions": tc.conditions}
			if tc.last != "" {
				status[circuitProbe] = tc.last
			}
			rsp := Respond(request(t, 1, status, map[string]*structpb.Struct{"db": madeHealthy(observe(db))}), planned(&Plan{Components: []Component{db}}), clock{})
			got := desiredStatus(rsp)[circuitProbe].GetStringValue()
			if got != tc.want {
				t.Errorf("%s\nRespond() %s: want %q, got %q", tc.reason, circuitProbe, tc.want, got)
			}
		})
	}
}

// TestTTL: the time to live by the age of a state.
func TestTTL(t *testing.T) {
	cases := map[string]struct {
		reason     string
		conditions []any
		settled    bool
		interval   time.Duration
		want       time.Duration
	}{
		"New":         {reason: "A claim that starts is composed again after four seconds.", want: 4 * time.Second},
		"Young":       {reason: "And what was filed a moment ago.", conditions: []any{since("Ready", "False", 3*time.Second)}, want: 4 * time.Second},
		"Old":         {reason: "The longer a claim is not ready, the less often it is composed.", conditions: []any{since("Ready", "False", 30*time.Second)}, want: 30 * time.Second},
		"Ancient":     {reason: "But every minute.", conditions: []any{since("Ready", "False", 48*time.Hour)}, want: time.Minute},
		"OpenYoung":   {reason: "While events are dropped a claim is polled, though it has settled.", conditions: []any{since("Responsive", "False", time.Second)}, settled: true, want: 5 * time.Second},
		"OpenOld":     {reason: "Then less and less.", conditions: []any{since("Responsive", "False", 2*time.Minute)}, settled: true, want: 10 * time.Second},
		"OpenToEnd":   {reason: "And when the cooldown is over.", conditions: []any{since("Responsive", "False", 5*time.Minute-7*time.Second)}, settled: true, want: 9 * time.Second},
		"OpenForEver": {reason: "A breaker that stays open costs a pass each minute.", conditions: []any{since("Responsive", "False", time.Hour)}, settled: true, want: time.Minute},
		"OpenNoTime":  {reason: "One of unknown age is taken for young.", conditions: []any{map[string]any{"type": "Responsive", "status": "False"}}, settled: true, want: 5 * time.Second},
		"Interval":    {reason: "An installation may set how often a claim that has settled is composed.", settled: true, interval: time.Minute, want: time.Minute},
		"IntervalNot": {reason: "Not one that has not.", interval: time.Hour, want: 4 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := NewClaim(request(t, 1, map[string]any{"conditions": tc.conditions}, nil), clock{})
			if got := c.ttl(tc.settled, tc.interval); got != tc.want {
				t.Errorf("%s\nttl(): want %v, got %v", tc.reason, tc.want, got)
			}
		})
	}

	// Claims that have settled are composed every 10 to 30 minutes, each with its own interval.
	seen := map[time.Duration]bool{}
	for range 100 {
		req := request(t, 1, nil, nil)
		uid, _ := SystemSource{}.Password()
		child(req.GetObserved().GetComposite().GetResource(), "metadata").Fields["uid"] = structpb.NewStringValue(uid)
		got := NewClaim(req, clock{}).ttl(true, 0)
		if got < 10*time.Minute || got >= 30*time.Minute {
			t.Errorf("ttl() of a claim that has settled: want 10 to 30 minutes, got %v", got)
		}
		if again := NewClaim(req, clock{}).ttl(true, 0); again != got {
			t.Errorf("ttl() of one claim: want the same again, got %v and %v", got, again)
		}
		seen[got] = true
	}
	if len(seen) < 50 {
		t.Errorf("ttl() of 100 claims: want them apart, got %d times", len(seen))
	}
}

// TestHeldInPipeline: objects and status fields of other functions of a pipeline do not decide
// whether the status is held, and are not held with it.
func TestHeldInPipeline(t *testing.T) {
	db := Component{Name: "db", Object: deployment("db", "db:1")}
	plan := func() *Plan {
		return &Plan{Components: []Component{db}, Status: func(o Outcome) any { return mustStruct(t, map[string]any{"phase": string(o.Phase), "message": "new"}) }}
	}
	status := map[string]any{"phase": "Deploying", "message": "held", "cost": "3 EUR", "conditions": []any{since("Ready", "False", time.Hour)}}
	nameless := &structpb.Struct{Fields: map[string]*structpb.Value{"apiVersion": structpb.NewStringValue("v1"), "kind": structpb.NewStringValue("ConfigMap")}}
	for name, tc := range map[string]struct {
		observed map[string]*structpb.Struct
		want     string
	}{"Observed": {map[string]*structpb.Struct{"db": observe(db)}, "new"}, "Added": {nil, "held"}} {
		t.Run(name, func(t *testing.T) {
			req := request(t, 1, status, tc.observed)
			req.RequiredResources = map[string]*fnv1.Resources{"existing/db": nil}
			req.Desired = &fnv1.State{
				Composite: &fnv1.Resource{Resource: mustStruct(t, map[string]any{"status": map[string]any{"cost": "4 EUR"}})},
				Resources: map[string]*fnv1.Resource{"theirs": {Resource: nameless}},
			}
			rsp := Respond(req, planned(plan()), clock{})
			s := desiredStatus(rsp)
			if got := s["message"].GetStringValue(); got != tc.want {
				t.Errorf("message: want %q, got %q", tc.want, got)
			}
			if got := s["cost"].GetStringValue(); got != "4 EUR" {
				t.Errorf("another function's field: want its newest, got %q", got)
			}
		})
	}
}

// TestSlowStart: while many claims start together each waits for the passes of the others, and requests few for the time
// alone.
func TestSlowStart(t *testing.T) {
	passes := 0
	for age := time.Duration(0); age < 5*time.Minute; passes++ {
		c := NewClaim(request(t, 1, map[string]any{"conditions": []any{since("Ready", "False", age)}}, nil), clock{})
		age += c.ttl(false, 0)
	}
	if passes > 9 {
		t.Errorf("ttl() of a claim that is not ready for five minutes: want at most 9 passes for the time alone, got %d", passes)
	}
}

// TestHeldUntil: what the status of a claim that starts holds back is reported once it no longer counts as starting,
// though nothing changes then.
func TestHeldUntil(t *testing.T) {
	was := []any{since("Ready", "False", 50*time.Second), map[string]any{"type": "Part", "status": "False", "reason": "Waiting", "lastTransitionTime": ago(50 * time.Second)}}
	c := NewClaim(request(t, 1, map[string]any{"phase": "Deploying", "conditions": was}, nil), clock{})
	holdConditions(c, []Condition{{Type: "Part", True: true, Reason: "Available"}}, false)
	if got, want := c.ttl(false, 0), startWindow-50*time.Second+time.Second; got != want {
		t.Errorf("ttl() of a claim that holds a condition back: want %v, got %v", want, got)
	}
}

// TestRefusedQuietly: a refused claim is composed less often over time, and its circuit breaker
// closes like that of any other claim.
func TestRefusedQuietly(t *testing.T) {
	invalid := refusing(Invalidf("no"))
	old := []any{since("Ready", "False", 24*time.Hour)}
	if got := Respond(request(t, 1, map[string]any{"phase": "Failed", "conditions": old}, nil), invalid, clock{}).GetMeta().GetTtl().AsDuration(); got != time.Minute {
		t.Errorf("Respond() of a claim that has been refused for a day: want a time to live of a minute, got %v", got)
	}
	db := Component{Name: "db", Object: deployment("db", "db:1")}
	req := request(t, 1, map[string]any{"phase": "Running", "conditions": []any{since("Ready", "True", time.Hour), since("Responsive", "False", time.Hour)}}, map[string]*structpb.Struct{"db": observe(db)})
	rsp := Respond(req, invalid, clock{})
	if got := desiredStatus(rsp)[circuitProbe].GetStringValue(); got != ago(0) {
		t.Errorf("Respond() of a refused claim whose breaker is open: want an event of its own, got %q", got)
	}
	if got := rsp.GetResults()[0].GetSeverity(); got != fnv1.Severity_SEVERITY_WARNING || rsp.GetDesired().GetResources()["db"] == nil {
		t.Errorf("Respond() of it: want what exists kept as it is, got %v, %v", got, rsp.GetDesired().GetResources())
	}
}

// TestRequeueWithin: an intent can request an earlier pass, and not a later one.
func TestRequeueWithin(t *testing.T) {
	c := NewClaim(request(t, 1, nil, nil), clock{})
	c.RequeueWithin(time.Hour)
	if got := c.ttl(false, 0); got != startTTL {
		t.Errorf("ttl(): want %v, got %v", startTTL, got)
	}
	c.RequeueWithin(2 * time.Second)
	c.RequeueWithin(3 * time.Second)
	if got := c.ttl(true, 0); got != 2*time.Second {
		t.Errorf("ttl(): want 2s, got %v", got)
	}
}
