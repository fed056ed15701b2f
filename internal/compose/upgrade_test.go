package compose

import (
	"fmt"
	"slices"
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	k8sappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/appconfig"
	"github.com/storeplane/storeplane/internal/fieldowner"
	"github.com/storeplane/storeplane/internal/waves"
)

// night is a maintenance window from midnight to four.
type night struct{}

func (night) Open(now time.Time) bool      { return now.Hour() < 4 }
func (night) Next(now time.Time) time.Time { return now.Truncate(24 * time.Hour).Add(24 * time.Hour) }
func (night) Length() time.Duration        { return 4 * time.Hour }
func (night) String() string               { return "each night" }

// moment is a source with a fixed time.
type moment struct {
	SystemSource

	now time.Time
}

func (m moment) Now() time.Time { return m.now }

var (
	byDay   = time.Date(2026, 3, 1, 13, 0, 0, 0, time.UTC)
	byNight = time.Date(2026, 3, 1, 1, 0, 0, 0, time.UTC)
)

// TestUpgrade: which changes of a Deployment's pods wait for the window, and which do not.
func TestUpgrade(t *testing.T) {
	type want struct {
		Image, Release, Pending string
		Upgraded                bool
		Config                  string
		Kept                    bool
	}
	held := want{Image: "app:1", Release: "v1", Pending: "v2", Config: "new", Kept: true}
	applied := want{Image: "app:2", Release: "v2", Upgraded: true, Config: "new"}
	cases := map[string]struct {
		reason      string
		change      func(u *Upgrade)
		status      map[string]any
		annotations map[string]any
		now         time.Time
		want        want
	}{
		"Release":        {reason: "Another release's pods wait, and what they may refer to stays; its ConfigMap does not wait.", now: byDay, want: held},
		"Window":         {reason: "In the window it is applied.", now: byNight, want: applied},
		"NoWindow":       {reason: "Without a window nothing waits.", change: func(u *Upgrade) { u.Window = nil }, now: byDay, want: applied},
		"Urgent":         {reason: "An urgent release does not wait.", change: func(u *Upgrade) { u.Urgent = func(string) bool { return true } }, now: byDay, want: applied},
		"Annotation":     {reason: "The annotation asks for it now.", annotations: map[string]any{UpgradeAnnotation: "v2"}, now: byDay, want: applied},
		"OldOrder":       {reason: "That was for the release before.", annotations: map[string]any{UpgradeAnnotation: "v1"}, now: byDay, want: held},
		"Wave":           {reason: "Before its wave has begun it waits in the window, too.", change: func(u *Upgrade) { u.Waves = true }, now: byNight, want: held},
		"WaveNoWindow":   {reason: "And without a window.", change: func(u *Upgrade) { u.Waves, u.Window = true, nil }, now: byDay, want: held},
		"WaveBegan":      {reason: "Once its wave has begun it is applied.", annotations: map[string]any{waves.Annotation: "v2"}, change: func(u *Upgrade) { u.Waves, u.Window = true, nil }, now: byDay, want: applied},
		"WaveBeganByDay": {reason: "But in its window alone.", annotations: map[string]any{waves.Annotation: "v2"}, change: func(u *Upgrade) { u.Waves = true }, now: byDay, want: held},
		"WaveOfNext": {
			reason:      "A claim that was being upgraded to a release goes on with the next once its wave has begun.",
			status:      map[string]any{"release": "v1", "pendingRelease": "v1.9", "conditions": []any{map[string]any{"type": appsv1.TypeUpgraded, "status": "False", "reason": appsv1.ReasonUpgrading}}},
			annotations: map[string]any{waves.Annotation: "v2"},
			change:      func(u *Upgrade) { u.Waves, u.Window = true, nil }, now: byDay, want: applied,
		},
		"OldWave": {reason: "A wave is of one release.", annotations: map[string]any{waves.Annotation: "v1"}, change: func(u *Upgrade) { u.Waves = true }, now: byNight, want: held},
		"Edit":    {reason: "An edit of the claim does not wait.", status: map[string]any{"release": "v1", "inputs": "before-cbf29ce484222325"}, now: byDay, want: applied},
		"Input":   {reason: "Nor does another password.", change: func(u *Upgrade) { u.Inputs = []string{"rotated"} }, now: byDay, want: applied},
		"Legacy":  {reason: "What composed a claim that names no release is an older one.", status: map[string]any{}, now: byDay, want: want{Image: "app:1", Pending: "v2", Config: "new", Kept: true}},
		"Same":    {reason: "What the same release changes follows from something that was observed.", status: map[string]any{"release": "v2"}, now: byDay, want: applied},
		"Review":  {reason: "Where there is no time nothing waits.", want: applied},
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
			got := want{Kept: rsp.GetDesired().GetResources()["gone"] != nil}
			containers := valueAt(rsp.GetDesired().GetResources()["web"].GetResource(), []string{"spec", "template", "spec", "containers"}).GetListValue().GetValues()
			got.Image = containers[0].GetStructValue().GetFields()["image"].GetStringValue()
			got.Config = valueAt(rsp.GetDesired().GetResources()["conf"].GetResource(), []string{"data", "value"}).GetStringValue()
			s := desiredStatus(rsp)
			got.Release, got.Pending = s["release"].GetStringValue(), s["pendingRelease"].GetStringValue()
			for _, c := range rsp.GetConditions() {
				if c.GetType() == appsv1.TypeUpgraded {
					got.Upgraded = c.GetReason() == appsv1.ReasonUpgraded
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestUpgradeMessage: the message of a claim that waits.
func TestUpgradeMessage(t *testing.T) {
	const now = " To have it now: kubectl annotate -n team webapp shop storeplane.example.com/upgrade-to=v2 --overwrite"
	cases := map[string]struct {
		reason  string
		upgrade Upgrade
		want    Condition
	}{
		"Window": {
			reason: "For its window.", upgrade: Upgrade{Window: night{}},
			want: Condition{Type: appsv1.TypeUpgraded, Reason: appsv1.ReasonAwaitingMaintenance, Message: "Release v2 changes the pods of Deployment shop-web: it waits for the maintenance window, each night." + now},
		},
		"Wave": {
			reason: "For its wave.", upgrade: Upgrade{Waves: true},
			want: Condition{Type: appsv1.TypeUpgraded, Reason: appsv1.ReasonAwaitingWave, Message: "Release v2 changes the pods of Deployment shop-web: it waits for its wave (storeplane upgrade lists the waves)." + now},
		},
		"Both": {
			reason: "For both.", upgrade: Upgrade{Waves: true, Window: night{}},
			want: Condition{Type: appsv1.TypeUpgraded, Reason: appsv1.ReasonAwaitingWave, Message: "Release v2 changes the pods of Deployment shop-web: it waits for its wave (storeplane upgrade lists the waves), and then for the maintenance window, each night." + now},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.upgrade.Release = "v2"
			c := claimOf(nil)
			c.composite.Fields["kind"] = structpb.NewStringValue("WebApp")
			u := &upgrade{Upgrade: &tc.upgrade, held: []string{"Deployment shop-web"}}
			if diff := cmp.Diff(tc.want, u.condition(c)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestUpgradeBelow: a nested claim waits with its parent, except for the fields that schedule its
// upgrade.
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
	delete(child(want, "metadata").Fields, "annotations")
	if diff := cmp.Diff(below("app:1", 2), want, cmp.Comparer(func(a, b *structpb.Struct) bool { return proto.Equal(a, b) })); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"WebApp shop-web"}, d.upgrade.held); diff != "" {
		t.Errorf("held: -want, +got:\n%s", diff)
	}
}

// TestPropertyUpgrade: outside of the window another release changes no pods, and removes neither
// them nor objects to which they may refer. In the window, the result is the same as without a
// window.
func TestPropertyUpgrade(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		observed := drawObserved(t, p.Components)
		at := func(now time.Time, w Window) *Decision {
			claim := claimOf(observed)
			claim.source = moment{now: now}
			child(claim.composite, "status").Fields["release"] = structpb.NewStringValue("v1")
			q := *p
			q.Upgrade = &Upgrade{Release: "v2", Window: w}
			d, err := Decide(claim, &q)
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		day, night, none := at(byDay, night{}), at(byNight, night{}), at(byDay, nil)
		for name, obs := range observed {
			got := day.Apply[name]
			kind := obs.GetFields()["kind"].GetStringValue()
			if day.upgrade.waits() && got == nil && servesPods[kind] && !slices.Contains(p.Release, name) {
				t.Fatalf("%s is removed while pods of the release before may refer to it", name)
			}
			if kind != "Deployment" || isDown(obs) || slices.Contains(p.Release, name) {
				continue
			}
			if got == nil {
				t.Fatalf("%s, which has pods, is removed out of the window", name)
			}
			if has, wants := valueAt(obs, podsAt(obs)), valueAt(got, podsAt(obs)); !proto.Equal(has, wants) {
				t.Fatalf("the pods of %s change out of the window:\n%v\n%v", name, has, wants)
			}
		}
		for _, c := range p.Components {
			_, exists := observed[c.Name]
			if day.Apply[c.Name] != nil && !exists && c.Object.GetObjectKind().GroupVersionKind().Kind == "Deployment" && day.hasUndeclaredPods(declaredBy(p)) {
				t.Fatalf("%s is made beside pods that it may be to replace", c.Name)
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

// TestIsEdit: which changes of a claim count as an edit.
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

// TestWrites: writes of a claim's spec by users count, and those of Crossplane do not.
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

// declaredBy returns the names of the components of a plan.
func declaredBy(p *Plan) map[string]bool {
	out := map[string]bool{}
	for _, c := range p.Components {
		out[c.Name] = true
	}
	return out
}

// upgraded returns the response for a WebApp whose Deployment runs app:1 of release v1, with a plan
// for app:2 and release v2. change can modify the status and the observed objects before.
func upgraded(t *testing.T, now time.Time, change func(status map[string]any, observed map[string]*structpb.Struct, p *Plan)) *fnv1.RunFunctionResponse {
	t.Helper()
	observed := map[string]*structpb.Struct{"web": madeHealthy(observe(Component{Name: "web", Object: deployment("web", "app:1")}))}
	plain := NewClaim(request(t, 1, nil, observed), nil)
	status := map[string]any{"release": "v1", "inputs": plain.inputs(&Upgrade{})}
	p := &Plan{Upgrade: &Upgrade{Release: "v2", Window: night{}}, Components: []Component{{Name: "web", Object: deployment("web", "app:2")}}}
	p.Status = func(o Outcome) any { return &struct{ appsv1.CommonStatus }{o.Common} }
	change(status, observed, p)
	return Respond(request(t, 1, status, observed), planned(p), moment{now: now})
}

// imageOf returns the image of the desired Deployment of component web, or "".
func imageOf(rsp *fnv1.RunFunctionResponse) string {
	list := valueAt(rsp.GetDesired().GetResources()["web"].GetResource(), []string{"spec", "template", "spec", "containers"}).GetListValue().GetValues()
	if len(list) == 0 {
		return ""
	}
	return list[0].GetStructValue().GetFields()["image"].GetStringValue()
}

// TestUpgradeUnfinished: an edit stays recorded as unfinished until the claim is ready with it. A
// pass that applies nothing does not record the release as applied, and a release that has begun
// continues after the window.
func TestUpgradeUnfinished(t *testing.T) {
	rsp := upgraded(t, byDay, func(status map[string]any, observed map[string]*structpb.Struct, p *Plan) {
		status["inputs"] = "before-cbf29ce484222325"
		observed["migration"] = observe(Component{Name: "migration", Object: job("migration", "app:2"), Once: true})
		p.Components[0].ChangeAfter = []string{"migration"}
		p.Components = append(p.Components, Component{Name: "migration", Object: job("migration", "app:2"), Once: true})
	})
	if got := desiredStatus(rsp)["inputs"].GetStringValue(); got != "before-cbf29ce484222325" {
		t.Errorf("the edit that waits for its migration is forgotten: inputs %q", got)
	}
	stopped := func(status map[string]any, _ map[string]*structpb.Struct, _ *Plan) {
		status["conditions"] = []any{map[string]any{"type": "Synced", "status": "False", "reason": "ReconcileError", "message": `cannot apply composed resource "web": exceeded quota`}}
	}
	rsp = upgraded(t, byNight, stopped)
	s := desiredStatus(rsp)
	if imageOf(rsp) != "app:1" || s["release"].GetStringValue() != "v1" || s["pendingRelease"].GetStringValue() != "v2" {
		t.Errorf("want a pass that applies nothing to record nothing: %s, %v", imageOf(rsp), s)
	}
	rsp = upgraded(t, byDay, func(status map[string]any, _ map[string]*structpb.Struct, _ *Plan) {
		status["pendingRelease"] = "v2"
		status["conditions"] = []any{map[string]any{"type": appsv1.TypeUpgraded, "status": "False", "reason": appsv1.ReasonUpgrading}}
	})
	if imageOf(rsp) != "app:2" {
		t.Error("want a release that has begun to go on after the window")
	}
}

// TestUpgradeObjects: which objects of a claim wait for the window.
func TestUpgradeObjects(t *testing.T) {
	down := upgraded(t, byDay, func(_ map[string]any, observed map[string]*structpb.Struct, _ *Plan) {
		observed["web"] = broken(observed["web"])
	})
	if imageOf(down) != "app:2" {
		t.Error("want the repair of a Deployment without a ready pod at once")
	}
	back := upgraded(t, byDay, func(map[string]any, map[string]*structpb.Struct, *Plan) {})
	applied := annotation(back.GetDesired().GetResources()["web"].GetResource(), AppliedAnnotation)
	if was := annotation(encoded(Component{Name: "web", Object: deployment("web", "app:1")}), AppliedAnnotation); applied != was {
		t.Errorf("want a Deployment that waits to be what it was, once the release before is back: %s, %s", applied, was)
	}
	renamed := upgraded(t, byDay, func(_ map[string]any, observed map[string]*structpb.Struct, p *Plan) {
		observed["conf"] = observe(Component{Name: "conf", Object: configMap("conf", "old")})
		p.Components = []Component{{Name: "server", Object: deployment("server", "app:2")}, {Name: "conf", Object: configMap("conf", "x")}}
	})
	got := renamed.GetDesired().GetResources()
	if imageOf(renamed) != "app:1" || got["server"] != nil || got["conf"] == nil {
		t.Errorf("want the Deployment of another name to wait, and all else not: %v", got)
	}
	same := upgraded(t, byDay, func(_ map[string]any, observed map[string]*structpb.Struct, p *Plan) {
		// A default that the API server sets in an atomic list is not another declaration.
		env := func(apiVersion string) *k8sappsv1.Deployment {
			d := deployment("web", "app:1")
			d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: apiVersion, FieldPath: "status.podIP"}}}}
			return d
		}
		observed["web"] = madeHealthy(observe(Component{Name: "web", Object: env("v1")}))
		p.Components[0].Object = env("")
	})
	if s := desiredStatus(same); s["release"].GetStringValue() != "v2" || s["pendingRelease"] != nil {
		t.Errorf("want a claim upgraded whose pods are the same: %v", s)
	}
}

// TestUpgradeEditedByHand: a field of the pods that another manager has changed is not kept because
// a release waits, but set to that of the release. Fields that others only added, restarts and
// scaling do not count as such changes.
func TestUpgradeEditedByHand(t *testing.T) {
	entry := func(manager, subresource, fields string) any {
		var f map[string]any
		if err := yaml.Unmarshal([]byte(fields), &f); err != nil {
			t.Fatal(err)
		}
		return map[string]any{"manager": manager, "subresource": subresource, "fieldsV1": f}
	}
	const (
		whole   = `{"f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:containers": {'k:{"name":"app"}': {".": {}, "f:name": {}, "f:image": {}}}}}}}`
		noImage = `{"f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:containers": {'k:{"name":"app"}': {".": {}, "f:name": {}}}}}}}`
		image   = `{"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"app"}': {"f:image": {}}}}}}}`
		restart = `{"f:spec": {"f:template": {"f:metadata": {"f:annotations": {"f:kubectl.kubernetes.io/restartedAt": {}}}}}}`
		taint   = `{"f:spec": {"f:template": {"f:spec": {"f:tolerations": {}}}}}`
		scale   = `{"f:spec": {"f:replicas": {}}}`
	)
	cases := map[string]struct {
		reason string
		own    string
		entry  any
		want   string
	}{
		"Image":     {reason: "An image that is set by hand is no release's.", own: noImage, entry: entry("kubectl-set", "", image), want: "app:2"},
		"Restored":  {reason: "One that is the same is no edit: a backup tool has put it back.", own: whole, entry: entry("velero", "", image), want: "app:1"},
		"Added":     {reason: "What is added would not be reverted.", own: whole, entry: entry("kyverno", "", taint), want: "app:1"},
		"Restart":   {reason: "To restart pods is no change of them.", own: whole, entry: entry("kubectl-rollout", "", restart), want: "app:1"},
		"Scale":     {reason: "Nor is to scale them.", own: whole, entry: entry("kubectl", "scale", scale), want: "app:1"},
		"AppConfig": {reason: "What an AppConfig brings is its own, and is not applied.", own: noImage, entry: entry(appconfig.FieldManager("shop"), "", image), want: ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rsp := upgraded(t, byDay, func(_ map[string]any, observed map[string]*structpb.Struct, _ *Plan) {
				var own map[string]any
				if err := yaml.Unmarshal([]byte(tc.own), &own); err != nil {
					t.Fatal(err)
				}
				ours := map[string]any{"manager": fieldowner.Manager(claimName, schema.GroupKind{Group: "apps.example.com", Kind: "WebApp"}), "fieldsV1": own}
				list, err := structpb.NewList([]any{tc.entry, ours})
				if err != nil {
					t.Fatal(err)
				}
				child(observed["web"], "metadata").Fields["managedFields"] = structpb.NewListValue(list)
			})
			if got := imageOf(rsp); got != tc.want {
				t.Errorf("%s\nwant image %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}

// TestUpgradeDeclaredFirst: a field that a release declares for the first time, and that another
// manager had set to another value, is no edit by hand of what was declared: the release waits.
func TestUpgradeDeclaredFirst(t *testing.T) {
	named := func(image, podIP, account string) *k8sappsv1.Deployment {
		d := deployment("web", image)
		d.Spec.Template.Spec.ServiceAccountName = account
		d.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: podIP, FieldPath: "status.podIP"}}}}
		return d
	}
	before := encoded(Component{Name: "web", Object: named("app:1", "", "")})
	at := podsAt(before)
	account := map[string]any{"f:spec": map[string]any{"f:template": map[string]any{"f:spec": map[string]any{"f:serviceAccountName": map[string]any{}}}}}
	own := func(without string) map[string]any {
		pods := managed(valueAt(before, at))
		containers := pods["f:spec"].(map[string]any)["f:containers"].(map[string]any)
		delete(containers[`k:{"name":"app"}`].(map[string]any), without)
		return map[string]any{"f:spec": map[string]any{"f:template": pods}}
	}
	cases := map[string]struct {
		reason   string
		own      map[string]any
		declared bool
		want     string
	}{
		"First":    {reason: "All that was declared is Crossplane's, but for a default of the API server's.", own: own(""), declared: true, want: "app:1"},
		"Also":     {reason: "Another field was taken: what is set by hand does not stay.", own: own("f:env"), declared: true, want: "app:2"},
		"NoRecord": {reason: "What was declared is not known.", own: own(""), want: "app:2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			rsp := upgraded(t, byDay, func(_ map[string]any, observed map[string]*structpb.Struct, p *Plan) {
				web := madeHealthy(observe(Component{Name: "web", Object: named("app:1", "v1", "by-hand")}))
				if tc.declared {
					annotate(web, PodsAnnotation, digestOf(valueAt(before, at), at))
				}
				list, err := structpb.NewList([]any{
					map[string]any{"manager": "kubectl-edit", "fieldsV1": account},
					map[string]any{"manager": fieldowner.Manager(claimName, schema.GroupKind{Group: "apps.example.com", Kind: "WebApp"}), "fieldsV1": tc.own},
				})
				if err != nil {
					t.Fatal(err)
				}
				child(web, "metadata").Fields["managedFields"] = structpb.NewListValue(list)
				observed["web"] = web
				p.Components[0].Object = named("app:2", "", "own")
			})
			if got := imageOf(rsp); got != tc.want {
				t.Errorf("%s\nwant image %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}

// managed returns the managed fields of what a manager has applied: lists of named elements are
// merged by their names, and a fieldRef is owned as a whole.
func managed(v *structpb.Value) map[string]any {
	out := map[string]any{}
	for name, f := range v.GetStructValue().GetFields() {
		if out["f:"+name] = managed(f); name == "fieldRef" {
			out["f:"+name] = map[string]any{}
		}
	}
	for _, e := range v.GetListValue().GetValues() {
		below := managed(e)
		below["."] = map[string]any{}
		out[fmt.Sprintf(`k:{"name":%q}`, e.GetStructValue().GetFields()["name"].GetStringValue())] = below
	}
	return out
}

// TestUpgradeAdopted: a claim that is created again and adopts its objects is not a new one.
func TestUpgradeAdopted(t *testing.T) {
	for name, want := range map[string]bool{"": false, "web": true} {
		c := claimOf(nil)
		c.source = moment{now: byDay}
		if c.adopted = map[string]bool{}; name != "" {
			c.adopted[name] = true
		}
		if got := upgradeOf(c, &Upgrade{Release: "v2", Window: night{}}).holds; got != want {
			t.Errorf("adopted %q: holds %t, want %t", name, got, want)
		}
	}
}

// TestUpgradeSpread: claims that wait for one window begin at different times in it, and are
// composed at that time.
func TestUpgradeSpread(t *testing.T) {
	began := map[time.Duration]bool{}
	for i := range 200 {
		c := claimOf(nil)
		child(c.composite, "metadata").Fields["uid"] = structpb.NewStringValue(fmt.Sprint("claim-", i))
		c.source = moment{now: byDay}
		in := c.begins(&Upgrade{Window: night{}})
		began[in] = true
		if in < 11*time.Hour || in > 11*time.Hour+longestSpread {
			t.Fatalf("claim %d begins in %s", i, in)
		}
		c.source = moment{now: byDay.Add(in)}
		if !c.isAdmitted(&Upgrade{Release: "v2", Window: night{}}, "v1") {
			t.Fatalf("claim %d is composed before it may begin", i)
		}
		c.source = moment{now: byDay.Add(in - time.Second)}
		if c.isAdmitted(&Upgrade{Release: "v2", Window: night{}}, "v1") {
			t.Fatalf("claim %d begins before its time", i)
		}
	}
	if len(began) < 100 {
		t.Errorf("200 claims begin at %d times", len(began))
	}
	rsp := upgraded(t, byDay.Add(10*time.Hour+59*time.Minute+58*time.Second), func(map[string]any, map[string]*structpb.Struct, *Plan) {})
	if ttl := rsp.GetMeta().GetTtl().AsDuration(); ttl > longestSpread+2*time.Second {
		t.Errorf("want the next pass when the claim begins, it is in %s", ttl)
	}
}
