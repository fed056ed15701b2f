package compose

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/health"
)

func TestPhase(t *testing.T) {
	web := Component{Name: "web", Object: deployment("web", "web:1")}
	svc := Component{Name: "svc", Object: deployment("svc", "svc:1")}
	changed := Component{Name: "web", Object: deployment("web", "web:2")}
	type want struct {
		Phase           Phase
		ReadyGeneration int64
	}
	cases := map[string]struct {
		reason     string
		generation int
		ready      int // status.readyGeneration as observed
		components []Component
		observed   map[string]*structpb.Struct
		want       want
	}{
		"Pending":                {reason: "Nothing exists yet.", generation: 1, components: []Component{web}, want: want{Pending, 0}},
		"Deploying":              {reason: "It is on its way for the first time.", generation: 1, components: []Component{web}, observed: map[string]*structpb.Struct{"web": observe(web)}, want: want{Deploying, 0}},
		"Running":                {reason: "All is healthy, and the generation is remembered.", generation: 1, components: []Component{web}, observed: map[string]*structpb.Struct{"web": madeHealthy(observe(web))}, want: want{Running, 1}},
		"Degraded":               {reason: "What was healthy at this generation is not any more.", generation: 1, ready: 1, components: []Component{web}, observed: map[string]*structpb.Struct{"web": observe(web)}, want: want{Degraded, 1}},
		"DegradedByRemoval":      {reason: "A component that was deleted by hand degrades the claim.", generation: 1, ready: 1, components: []Component{web, svc}, observed: map[string]*structpb.Struct{"web": madeHealthy(observe(web))}, want: want{Degraded, 1}},
		"RunningAgain":           {reason: "And it heals.", generation: 1, ready: 1, components: []Component{web}, observed: map[string]*structpb.Struct{"web": madeHealthy(observe(web))}, want: want{Running, 1}},
		"ChangeIsDeploying":      {reason: "A changed claim deploys, it does not degrade; the old generation is remembered.", generation: 2, ready: 1, components: []Component{changed}, observed: map[string]*structpb.Struct{"web": madeHealthy(observe(web))}, want: want{Deploying, 1}},
		"ChangeRolls":            {reason: "As long as it rolls.", generation: 2, ready: 1, components: []Component{changed}, observed: map[string]*structpb.Struct{"web": observe(changed)}, want: want{Deploying, 1}},
		"ChangeDone":             {reason: "Until it is there.", generation: 2, ready: 1, components: []Component{changed}, observed: map[string]*structpb.Struct{"web": madeHealthy(observe(changed))}, want: want{Running, 2}},
		"ChangeOfNothing":        {reason: "A change that changes no component is running at once, at the new generation.", generation: 7, ready: 1, components: []Component{web}, observed: map[string]*structpb.Struct{"web": madeHealthy(observe(web))}, want: want{Running, 7}},
		"Failed":                 {reason: "One that will not get healthy fails the claim.", generation: 1, components: []Component{svc, web}, observed: map[string]*structpb.Struct{"svc": observe(svc), "web": broken(observe(web))}, want: want{Failed, 0}},
		"FailedAfterRunning":     {reason: "Also one that was healthy once.", generation: 1, ready: 1, components: []Component{web}, observed: map[string]*structpb.Struct{"web": broken(observe(web))}, want: want{Failed, 1}},
		"FailedIsNotForEver":     {reason: "A change gives it another chance.", generation: 2, components: []Component{changed}, observed: map[string]*structpb.Struct{"web": broken(observe(web))}, want: want{Deploying, 0}},
		"NeverReadyIsNotDegrade": {reason: "Degraded needs that all was healthy once.", generation: 3, components: []Component{web}, observed: map[string]*structpb.Struct{"web": observe(web)}, want: want{Deploying, 0}},
		"AllDeletedByHand":       {reason: "Nothing exists, whatever existed before.", generation: 1, ready: 1, components: []Component{web}, want: want{Pending, 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var st map[string]any
			if tc.ready != 0 {
				st = map[string]any{"readyGeneration": tc.ready}
			}
			claim := NewClaim(request(t, tc.generation, st, tc.observed), nil)
			plan := &Plan{Components: tc.components}
			d, err := Decide(claim, plan)
			if err != nil {
				t.Fatal(err)
			}
			o := newOutcome(claim, plan, d)
			if diff := cmp.Diff(tc.want, want{o.Phase, o.Common.ReadyGeneration}); diff != "" {
				t.Errorf("%s\nnewOutcome(): -want, +got:\n%s", tc.reason, diff)
			}
			if o.Ready != (o.Phase == Running) {
				t.Errorf("%s\nReady is %t while the phase is %s", tc.reason, o.Ready, o.Phase)
			}
		})
	}
}

// TestPhasesOverTime: the phases of a claim through its life.
func TestPhasesOverTime(t *testing.T) {
	one := Component{Name: "web", Object: deployment("web", "web:1")}
	two := Component{Name: "web", Object: deployment("web", "web:2")}
	steps := []struct {
		what       string
		generation int
		component  Component
		observed   *structpb.Struct
		want       Phase
	}{
		{"claimed", 1, one, nil, Pending},
		{"applied", 1, one, observe(one), Deploying},
		{"healthy", 1, one, madeHealthy(observe(one)), Running},
		{"a pod is gone", 1, one, observe(one), Degraded},
		{"the pod is back", 1, one, madeHealthy(observe(one)), Running},
		{"the claim changed", 2, two, madeHealthy(observe(one)), Deploying},
		{"the change is applied", 2, two, observe(two), Deploying},
		{"it makes no progress", 2, two, broken(observe(two)), Failed},
		{"it is back to what it was", 3, one, broken(observe(two)), Deploying},
		{"healthy again", 3, one, madeHealthy(observe(one)), Running},
	}
	var status map[string]any
	for _, s := range steps {
		observed := map[string]*structpb.Struct{}
		if s.observed != nil {
			observed["web"] = s.observed
		}
		rsp := Respond(request(t, s.generation, status, observed), planned(&Plan{Components: []Component{s.component}}), ReviewSource{})
		status = rsp.GetDesired().GetComposite().GetResource().GetFields()["status"].GetStructValue().AsMap()
		if got := status["phase"]; got != string(s.want) {
			t.Errorf("%s: want phase %s, got %v", s.what, s.want, got)
		}
	}
}

func TestOutcomeParts(t *testing.T) {
	db := Component{Name: "db", Object: deployment("db", "db:1")}
	secret := Component{Name: "db-secret", Part: "db", Object: configMap("db-secret", "")}
	web := Component{Name: "web", Object: deployment("web", "web:1"), After: []string{"db"}}

	// Package health determines these messages.
	unready := health.Of(observe(db)).Message
	failed := health.Of(broken(observe(Component{Name: "b", Object: job("b", ""), Once: true}))).Message
	missing := health.OfMissing(applied(t, deployment("x", ""))).Message

	type want struct {
		message string
		parts   []appsv1.ComponentStatus
	}
	cases := map[string]struct {
		reason     string
		components []Component
		observed   map[string]*structpb.Struct
		want       want
	}{
		"AllHealthy": {
			reason:     "When all is well there is nothing to say.",
			components: []Component{secret, db},
			observed:   map[string]*structpb.Struct{"db-secret": observe(secret), "db": madeHealthy(observe(db))},
			want:       want{parts: []appsv1.ComponentStatus{{Name: "db", Ready: true}}},
		},
		"OnePartOfTwoComponents": {
			reason:     "A part is ready when all of it is.",
			components: []Component{secret, db},
			observed:   map[string]*structpb.Struct{"db-secret": observe(secret), "db": observe(db)},
			want: want{
				message: "Waiting for db (" + unready + ")",
				parts:   []appsv1.ComponentStatus{{Name: "db", Message: unready}},
			},
		},
		"WithheldIsNotNamed": {
			reason:     "The message names what is waited for, not what waits for it; the list has both, in the order of the plan.",
			components: []Component{db, web},
			observed:   map[string]*structpb.Struct{"db": observe(db)},
			want: want{
				message: "Waiting for db (" + unready + ")",
				parts:   []appsv1.ComponentStatus{{Name: "db", Message: unready}, {Name: "web", Message: "Waits for db"}},
			},
		},
		"SeveralAreNamed": {
			reason:     "All that is waited for is named.",
			components: []Component{db, {Name: "cache", Object: deployment("cache", "")}},
			observed:   map[string]*structpb.Struct{"db": observe(db)},
			want: want{
				message: "Waiting for db (" + unready + "), cache (" + missing + ")",
				parts:   []appsv1.ComponentStatus{{Name: "db", Message: unready}, {Name: "cache", Message: missing}},
			},
		},
		"WithheldFirst": {
			reason: "A part whose first component is withheld for its second still names what is waited for.",
			components: []Component{
				{Name: "late", Part: "app", Object: configMap("late", ""), After: []string{"early"}},
				{Name: "early", Part: "app", Object: deployment("early", "")},
			},
			observed: map[string]*structpb.Struct{"early": observe(Component{Name: "early", Object: deployment("early", "")})},
			want: want{
				message: "Waiting for app (" + unready + ")",
				parts:   []appsv1.ComponentStatus{{Name: "app", Message: unready}},
			},
		},
		"ToBeStored": {
			reason:     "What only has to be stored is named when there is nothing else to name.",
			components: []Component{secret},
			want: want{
				message: "Waiting for db",
				parts:   []appsv1.ComponentStatus{{Name: "db", Message: "Not created yet"}},
			},
		},
		"ToBeStoredIsMinor": {
			reason:     "What only has to be stored does not explain a part of which something else is missing.",
			components: []Component{secret, db},
			want: want{
				message: "Waiting for db (" + missing + ")",
				parts:   []appsv1.ComponentStatus{{Name: "db", Message: missing}},
			},
		},
		"FailureExplains": {
			reason: "A part that failed says why it failed, not what else of it is on its way.",
			components: []Component{
				{Name: "a", Part: "app", Object: deployment("a", "")},
				{Name: "b", Part: "app", Object: job("b", ""), Once: true},
			},
			observed: map[string]*structpb.Struct{
				"a": observe(Component{Name: "a", Object: deployment("a", "")}),
				"b": broken(observe(Component{Name: "b", Object: job("b", ""), Once: true})),
			},
			want: want{
				message: "Waiting for app (" + failed + ")",
				parts:   []appsv1.ComponentStatus{{Name: "app", Message: failed}},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			claim := NewClaim(request(t, 1, nil, tc.observed), nil)
			plan := &Plan{Components: tc.components}
			d, err := Decide(claim, plan)
			if err != nil {
				t.Fatal(err)
			}
			o := newOutcome(claim, plan, d)
			if diff := cmp.Diff(tc.want, want{o.Common.Message, o.Common.Components}, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\nnewOutcome(): -want, +got:\n%s", tc.reason, diff)
			}
			for _, p := range tc.want.parts {
				if got, ok := o.Part(p.Name); !ok || got != p {
					t.Errorf("%s\nPart(%s): want %v, got %v", tc.reason, p.Name, p, got)
				}
			}
			if _, ok := o.Part("undeclared"); ok {
				t.Errorf("%s\nPart(): a part that is not declared is none", tc.reason)
			}
		})
	}
}

func TestPartReady(t *testing.T) {
	o := Outcome{Common: appsv1.CommonStatus{Components: []appsv1.ComponentStatus{{Name: "up", Ready: true}, {Name: "coming", Message: "No pods"}, {Name: "down", Message: "No image"}}}, failed: map[string]bool{"down": true}}
	cases := map[string]struct {
		reason string
		part   string
		want   Condition
	}{
		"Ready":       {reason: "A part that is ready says no more.", part: "up", want: Condition{Type: "T", True: true, Reason: "Healthy"}},
		"NotReady":    {reason: "What one waits for that is not is the status's to say.", part: "coming", want: Condition{Type: "T", Reason: "Waiting"}},
		"Failed":      {reason: "One that has failed says why.", part: "down", want: Condition{Type: "T", Reason: "Failed", Message: "No image"}},
		"NotDeclared": {reason: "One that is not part of the claim is always reported, or its old condition would stay.", part: "none", want: Condition{Type: "T", True: true, Reason: "Disabled", Message: "Not part of this claim"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, PartReady("T", o, tc.part)); diff != "" {
				t.Errorf("%s\nPartReady(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestOutcomeNamesSomething: a claim that is not ready names what it waits for, also if components
// wait for others of their own part.
func TestOutcomeNamesSomething(t *testing.T) {
	account := Component{Name: "account", Part: "web", Object: configMap("account", "")}
	web := Component{Name: "web", Object: deployment("web", "")}
	after := func(c Component, names ...string) Component { c.After = names; return c }
	cases := map[string]struct {
		reason     string
		components []Component
		observed   map[string]*structpb.Struct
	}{
		"ToBeStoredFirst": {reason: "The first is to be stored, and the rest of its part waits for it.", components: []Component{account, after(web, "account")}},
		"WithheldFirst":   {reason: "The first waits for the second.", components: []Component{after(web, "job"), {Name: "job", Part: "web", Object: job("job", ""), Once: true}}},
		"WithheldFirstThenObserved": {
			reason:     "The first waits for the second, which is there.",
			components: []Component{after(web, "job"), {Name: "job", Part: "web", Object: job("job", ""), Once: true}},
			observed:   map[string]*structpb.Struct{"job": observe(Component{Name: "job", Object: job("job", ""), Once: true})},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			claim := NewClaim(request(t, 1, nil, tc.observed), nil)
			plan := &Plan{Components: tc.components}
			d, err := Decide(claim, plan)
			if err != nil {
				t.Fatal(err)
			}
			if o := newOutcome(claim, plan, d); o.Ready || o.Common.Message == "" {
				t.Errorf("%s\nnewOutcome(): want a message that names what is waited for, got %+v", tc.reason, o.Common)
			}
		})
	}
}
