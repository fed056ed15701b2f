package compose

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"pgregory.net/rapid"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
)

// night is a window from midnight to four, and at what is the time in it and out of it.
type night struct{}

func (night) Open(now time.Time) bool      { return now.Hour() < 4 }
func (night) Next(now time.Time) time.Time { return now.Truncate(24 * time.Hour).Add(24 * time.Hour) }
func (night) String() string               { return "each night" }

// moment is a source at a time.
type moment struct {
	SystemSource
	now time.Time
}

func (m moment) Now() time.Time { return m.now }

var (
	byDay   = time.Date(2026, 3, 1, 13, 0, 0, 0, time.UTC)
	byNight = time.Date(2026, 3, 1, 1, 0, 0, 0, time.UTC)
)

// TestUpgrade: whose change of a Deployment's pods waits, and what does not.
func TestUpgrade(t *testing.T) {
	type want struct {
		Image, Release, Pending string
		Upgraded, Requeued      bool
		Config                  string
		Kept                    bool
	}
	held := want{Image: "app:1", Release: "v1", Pending: "v2", Requeued: true, Config: "new", Kept: true}
	applied := want{Image: "app:2", Release: "v2", Upgraded: true, Config: "new"}
	cases := map[string]struct {
		reason      string
		change      func(u *Upgrade)
		status      map[string]any
		annotations map[string]any
		now         time.Time
		want        want
	}{
		"Release":    {reason: "Another release's pods wait, and what they may refer to stays; its ConfigMap does not wait.", now: byDay, want: held},
		"Window":     {reason: "In the window it is applied.", now: byNight, want: applied},
		"NoWindow":   {reason: "Without a window nothing waits.", change: func(u *Upgrade) { u.Window = nil }, now: byDay, want: applied},
		"Urgent":     {reason: "An urgent release does not wait.", change: func(u *Upgrade) { u.Urgent = true }, now: byDay, want: applied},
		"Annotation": {reason: "Whoever may edit the claim has it now.", annotations: map[string]any{UpgradeAnnotation: "v2"}, now: byDay, want: applied},
		"OldOrder":   {reason: "That was for the release before.", annotations: map[string]any{UpgradeAnnotation: "v1"}, now: byDay, want: held},
		"Edit":       {reason: "An edit of the claim does not wait.", status: map[string]any{"release": "v1", "inputs": "before-cbf29ce484222325"}, now: byDay, want: applied},
		"Input":      {reason: "Nor does another password.", change: func(u *Upgrade) { u.Inputs = []string{"rotated"} }, now: byDay, want: applied},
		"Legacy":     {reason: "What composed a claim that names no release is an older one.", status: map[string]any{}, now: byDay, want: want{Image: "app:1", Pending: "v2", Requeued: true, Config: "new", Kept: true}},
		"Same":       {reason: "What the same release changes follows from something that was observed.", status: map[string]any{"release": "v2"}, now: byDay, want: applied},
		"Review":     {reason: "Where there is no time nothing waits.", want: applied},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			observed := map[string]*structpb.Struct{
				"web":  madeHealthy(observe(Component{Name: "web", Object: deployment("web", "app:1")})),
				"conf": observe(Component{Name: "conf", Object: configMap("conf", "old")}),
				"gone": observe(Component{Name: "gone", Object: configMap("gone", "old")}),
			}
			u := &Upgrade{Release: "v2", Window: night{}}
			if tc.change != nil {
				tc.change(u)
			}
			status := tc.status
			if status == nil {
				plain := NewClaim(request(t, 1, nil, observed), nil)
				status = map[string]any{"release": "v1", "inputs": plain.inputs(&Upgrade{})}
			}
			req := request(t, 1, status, observed)
			if tc.annotations != nil {
				child(req.GetObserved().GetComposite().GetResource(), "metadata").Fields["annotations"] = structpb.NewStructValue(mustStruct(t, tc.annotations))
			}
			p := &Plan{Upgrade: u, Components: []Component{{Name: "web", Object: deployment("web", "app:2")}, {Name: "conf", Object: configMap("conf", "new")}}}
			p.Status = func(o Outcome) any { return &struct{ appsv1.CommonStatus }{o.Common} }
			rsp := Respond(req, planned(p), moment{now: tc.now})
			got := want{Requeued: rsp.GetMeta().GetTtl().AsDuration() == 11*time.Hour, Kept: rsp.GetDesired().GetResources()["gone"] != nil}
			containers := valueAt(rsp.GetDesired().GetResources()["web"].GetResource(), []string{"spec", "template", "spec", "containers"}).GetListValue().GetValues()
			got.Image = containers[0].GetStructValue().GetFields()["image"].GetStringValue()
			got.Config = valueAt(rsp.GetDesired().GetResources()["conf"].GetResource(), []string{"data", "value"}).GetStringValue()
			s := desiredStatus(rsp)
			got.Release, got.Pending = s["release"].GetStringValue(), s["pendingRelease"].GetStringValue()
			for _, c := range rsp.GetConditions() {
				if c.GetType() == ConditionUpgraded {
					got.Upgraded = c.GetReason() == appsv1.ReasonUpgraded
				}
			}
			// The next pass is never later than the window.
			got.Requeued = got.Requeued || tc.want.Requeued && rsp.GetMeta().GetTtl().AsDuration() <= 11*time.Hour
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestUpgradeBelow: a claim that a claim composes waits with it, but for when it is upgraded.
func TestUpgradeBelow(t *testing.T) {
	below := func(image string, hours float64) *structpb.Struct {
		return mustStruct(t, map[string]any{
			"apiVersion": "apps.example.com/v1", "kind": "WebApp", "metadata": map[string]any{"name": "shop-web", "namespace": "team"},
			"spec": map[string]any{"image": image, "maintenance": map[string]any{"hours": hours}},
		})
	}
	d := &Decision{claim: claimOf(map[string]*structpb.Struct{}), upgrade: &upgrade{Upgrade: &Upgrade{}, holds: true}}
	want := below("app:2", 2)
	d.hold(want, stored(below("app:1", 1)))
	if diff := cmp.Diff(below("app:1", 2), want, cmp.Comparer(func(a, b *structpb.Struct) bool { return proto.Equal(a, b) })); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"WebApp shop-web"}, d.upgrade.held); diff != "" {
		t.Errorf("held: -want, +got:\n%s", diff)
	}
}

// TestPropertyUpgrade: out of the window another release changes no pods, and removes nothing;
// in the window, and for who has none, it is as if there were no windows.
func TestPropertyUpgrade(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		observed := drawObserved(t, p.Components)
		at := func(now time.Time) *Decision {
			claim := claimOf(observed)
			claim.source = moment{now: now}
			child(claim.composite, "status").Fields["release"] = structpb.NewStringValue("v1")
			q := *p
			q.Upgrade = &Upgrade{Release: "v2", Window: night{}}
			d, err := Decide(claim, &q)
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		day, night, none := at(byDay), at(byNight), decide(t, p, observed)
		for name, obs := range observed {
			got := day.Apply[name]
			if day.upgrade.waits() && got == nil && !slices.Contains(p.Release, name) {
				t.Fatalf("%s is removed while pods of the release before may refer to it", name)
			}
			if got == nil || obs.GetFields()["kind"].GetStringValue() != "Deployment" {
				continue
			}
			if has, wants := valueAt(obs, podsAt(obs)), valueAt(got, podsAt(obs)); !proto.Equal(has, wants) {
				t.Fatalf("the pods of %s change out of the window:\n%v\n%v", name, has, wants)
			}
		}
		for name := range night.Apply {
			if !proto.Equal(night.Apply[name], none.Apply[name]) {
				t.Fatalf("%s is another one in the window than without windows", name)
			}
		}
		if len(night.Apply) != len(none.Apply) || night.upgrade.waits() {
			t.Fatalf("in the window %d objects are applied, and %d without windows", len(night.Apply), len(none.Apply))
		}
	})
}

// TestIsEdit: what of a claim counts as an edit.
func TestIsEdit(t *testing.T) {
	cases := map[string]struct {
		reason, was, now string
		want             bool
	}{
		"Same":    {reason: "Nothing has changed.", was: "a-b-c", now: "a-b-c"},
		"Spec":    {reason: "The spec was written.", was: "a-b-c", now: "x-b-y", want: true},
		"Default": {reason: "A release has given a field a default.", was: "a-b-c", now: "x-b-c"},
		"Label":   {reason: "Another field than the spec's was written.", was: "a-b-c", now: "a-b-y"},
		"Input":   {reason: "A password is another one.", was: "a-b-c", now: "a-x-c", want: true},
		"Unknown": {reason: "Where nothing says who wrote when, the spec counts.", was: "a-b", now: "x-b", want: true},
		"First":   {reason: "Of a claim that an older release has composed nothing is known.", was: "", now: "x-b-c"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := isEdit(tc.was, tc.now); got != tc.want {
				t.Errorf("%s\nisEdit(%q, %q): want %t", tc.reason, tc.was, tc.now, tc.want)
			}
		})
	}
}

// TestWrites: who writes a claim's spec counts, and what Crossplane keeps there does not.
func TestWrites(t *testing.T) {
	entry := func(manager, at, in, field string) any {
		return map[string]any{"manager": manager, "time": at, "fieldsV1": map[string]any{in: map[string]any{".": map[string]any{}, field: map[string]any{}}}}
	}
	of := func(entries ...any) string {
		list, err := structpb.NewList(entries)
		if err != nil {
			t.Fatal(err)
		}
		c := claimOf(nil)
		child(c.composite, "metadata").Fields["managedFields"] = structpb.NewListValue(list)
		return c.writes()
	}
	kubectl := entry("kubectl", "2026-01-01T00:00:00Z", "f:spec", "f:image")
	crossplane := entry("crossplane", "2026-02-01T00:00:00Z", "f:spec", "f:crossplane")
	status := entry("crossplane", "2026-02-01T00:00:00Z", "f:status", "f:phase")
	if a, b := of(kubectl), of(kubectl, crossplane, status); a != b || a == "" {
		t.Errorf("what Crossplane keeps counts: %q, %q", a, b)
	}
	if of(kubectl) == of(entry("kubectl", "2026-01-01T00:00:01Z", "f:spec", "f:image")) {
		t.Error("another write does not count")
	}
	if got := of(crossplane); got != "" {
		t.Errorf("nothing is known, and got %q", got)
	}
}
