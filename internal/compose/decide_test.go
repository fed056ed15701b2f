package compose

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/internal/health"
)

func TestDecideGates(t *testing.T) {
	type want struct {
		apply    []string
		withheld []string
		health   map[string]health.Status
	}
	healthy := health.Status{State: health.Healthy}
	// Package health determines these messages.
	missing := func(o Object) health.Status { return health.OfMissing(applied(t, o)) }
	waits := func(names string) health.Status {
		return health.Status{State: health.Progressing, Message: "Waits for " + names}
	}
	db := Component{Name: "db", Object: deployment("db", "db:1")}
	cache := Component{Name: "cache", Object: deployment("cache", "cache:1")}
	web := Component{Name: "web", Object: deployment("web", "web:1"), After: []string{"db", "cache"}}
	absent := missing(db.Object)

	cases := map[string]struct {
		reason     string
		components []Component
		observed   map[string]*structpb.Struct
		want       want
	}{
		"NothingObserved": {
			reason:     "What comes after nothing is applied at once, the rest is withheld and says for what it waits, in the order it was declared.",
			components: []Component{db, cache, web},
			want: want{
				apply:    []string{"cache", "db"},
				withheld: []string{"web"},
				health: map[string]health.Status{
					"db": absent, "cache": absent,
					"web": waits("db, cache"),
				},
			},
		},
		"DeclaredBeforeItsDependencies": {
			reason:     "The order of the list is for readers: it does not decide what is applied.",
			components: []Component{web, cache, db},
			want: want{
				apply:    []string{"cache", "db"},
				withheld: []string{"web"},
				health: map[string]health.Status{
					"db": absent, "cache": absent,
					"web": waits("db, cache"),
				},
			},
		},
		"OneDependencyHealthy": {
			reason:     "All of them must be healthy, and only those that are not are named.",
			components: []Component{db, cache, web},
			observed:   map[string]*structpb.Struct{"db": madeHealthy(observe(db)), "cache": observe(cache)},
			want: want{
				apply:    []string{"cache", "db"},
				withheld: []string{"web"},
				health: map[string]health.Status{
					"db": healthy, "cache": health.Of(observe(cache)),
					"web": waits("cache"),
				},
			},
		},
		"DependenciesOfOnePart": {
			reason:     "Parts are named, each once: what they are made of is nothing that the status lists.",
			components: []Component{db, {Name: "db-pods", Part: "db", Object: deployment("db-pods", "db:1")}, {Name: "web", Object: deployment("web", "web:1"), After: []string{"db", "db-pods"}}},
			want: want{
				apply:    []string{"db", "db-pods"},
				withheld: []string{"web"},
				health: map[string]health.Status{
					"db": absent, "db-pods": missing(deployment("db-pods", "db:1")),
					"web": waits("db"),
				},
			},
		},
		"AllDependenciesHealthy": {
			reason:     "Then it is applied.",
			components: []Component{db, cache, web},
			observed:   map[string]*structpb.Struct{"db": madeHealthy(observe(db)), "cache": madeHealthy(observe(cache))},
			want: want{
				apply:  []string{"cache", "db", "web"},
				health: map[string]health.Status{"db": healthy, "cache": healthy, "web": absent},
			},
		},
		"DependencyBreaksLater": {
			reason:     "What exists is never withheld again, however ill its dependencies are.",
			components: []Component{db, cache, web},
			observed:   map[string]*structpb.Struct{"db": broken(observe(db)), "web": madeHealthy(observe(web))},
			want: want{
				apply: []string{"cache", "db", "web"},
				health: map[string]health.Status{
					"db":    health.Of(broken(observe(db))),
					"cache": absent, "web": healthy,
				},
			},
		},
		"DependencyChanges": {
			reason:     "An object that does not carry the newest declaration is not healthy, whatever its status says: what comes after it waits.",
			components: []Component{{Name: "db", Object: deployment("db", "db:2")}, cache, web},
			observed:   map[string]*structpb.Struct{"db": madeHealthy(observe(db)), "cache": madeHealthy(observe(cache))},
			want: want{
				apply:    []string{"cache", "db"},
				withheld: []string{"web"},
				health: map[string]health.Status{
					"db": {State: health.Progressing, Message: "A change is being applied"}, "cache": healthy,
					"web": waits("db"),
				},
			},
		},
		"DependencyIsDeleted": {
			reason:     "What is on its way out is not relied upon.",
			components: []Component{db, cache, web},
			observed: map[string]*structpb.Struct{
				"db":    deleted(madeHealthy(observe(db))),
				"cache": madeHealthy(observe(cache)),
			},
			want: want{
				apply:    []string{"cache", "db"},
				withheld: []string{"web"},
				health: map[string]health.Status{
					"db": {State: health.Progressing, Message: "Being deleted"}, "cache": healthy,
					"web": waits("db"),
				},
			},
		},
		"StoredKinds": {
			reason:     "A ConfigMap is healthy once it carries what is declared: that it exists does not say that the API server took the change.",
			components: []Component{{Name: "conf", Object: configMap("conf", "new")}, {Name: "web", Object: deployment("web", "web:1"), After: []string{"conf"}}},
			observed:   map[string]*structpb.Struct{"conf": observe(Component{Object: configMap("conf", "old")})},
			want: want{
				apply:    []string{"conf"},
				withheld: []string{"web"},
				health:   map[string]health.Status{"conf": {State: health.Progressing, Message: "A change is being applied"}, "web": waits("conf")},
			},
		},
		"OwnJudgement": {
			reason: "A component may say itself when it is healthy.",
			components: []Component{
				{Name: "conf", Object: configMap("conf", ""), Health: func(*structpb.Struct) health.Status {
					return health.Status{State: health.Progressing, Message: "No primary yet"}
				}},
				{Name: "web", Object: deployment("web", "web:1"), After: []string{"conf"}},
			},
			observed: map[string]*structpb.Struct{"conf": observe(Component{Object: configMap("conf", "")})},
			want: want{
				apply:    []string{"conf"},
				withheld: []string{"web"},
				health: map[string]health.Status{
					"conf": {State: health.Progressing, Message: "No primary yet"},
					"web":  waits("conf"),
				},
			},
		},
		"OwnJudgementOfWhatIsDeleted": {
			reason: "Whatever a component says itself, an object that is being deleted is not healthy.",
			components: []Component{
				{Name: "conf", Object: configMap("conf", ""), Health: func(*structpb.Struct) health.Status { return healthy }},
				{Name: "web", Object: deployment("web", "web:1"), After: []string{"conf"}},
			},
			observed: map[string]*structpb.Struct{"conf": deleted(stored(applied(t, configMap("conf", ""))))},
			want: want{
				apply:    []string{"conf"},
				withheld: []string{"web"},
				health: map[string]health.Status{
					"conf": {State: health.Progressing, Message: "Being deleted"},
					"web":  waits("conf"),
				},
			},
		},
		"JobGate": {
			reason:     "A Job is a gate that opens when it completed, not when it started.",
			components: []Component{{Name: "job", Object: job("job", "web:1"), Once: true}, {Name: "web", Object: deployment("web", "web:1"), After: []string{"job"}}},
			observed:   map[string]*structpb.Struct{"job": observe(Component{Name: "job", Object: job("job", "web:1"), Once: true})},
			want: want{
				apply:    []string{"job"},
				withheld: []string{"web"},
				health: map[string]health.Status{
					"job": health.Of(applied(t, job("job", "web:1"))),
					"web": waits("job"),
				},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d, err := Decide(claimOf(tc.observed), &Plan{Components: tc.components})
			if err != nil {
				t.Fatalf("%s\nDecide(): %v", tc.reason, err)
			}
			got := want{apply: names(d.Apply), withheld: d.Withheld, health: d.Health}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nDecide(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func deleted(obj *structpb.Struct) *structpb.Struct {
	child(obj, "metadata").Fields["deletionTimestamp"] = structpb.NewStringValue("2024-01-01T00:00:00Z")
	return obj
}

// TestDecideChangeAfter: a new image waits for its migration.
func TestDecideChangeAfter(t *testing.T) {
	web := func(image, gate string) Component {
		return Component{Name: "web", Object: deployment("web", image), After: []string{gate}, ChangeAfter: []string{gate}}
	}
	gate := func(name string) Component { return Component{Name: name, Object: job(name, "web"), Once: true} }
	running := madeHealthy(observe(web("web:1", "job-1")))

	cases := map[string]struct {
		reason   string
		web      Component
		gate     Component
		observed map[string]*structpb.Struct
		want     *structpb.Struct
		health   health.Status
	}{
		"GateNotThere": {
			reason:   "The object stays exactly as it is observed while the gate does not exist.",
			web:      web("web:2", "job-2"),
			gate:     gate("job-2"),
			observed: map[string]*structpb.Struct{"web": running},
			want:     claimOf(nil).keep(running),
			health:   health.Status{State: health.Progressing, Message: "Its change waits for job-2"},
		},
		"GateRuns": {
			reason:   "It stays while the gate runs.",
			web:      web("web:2", "job-2"),
			gate:     gate("job-2"),
			observed: map[string]*structpb.Struct{"web": running, "job-2": observe(gate("job-2"))},
			want:     claimOf(nil).keep(running),
			health:   health.Status{State: health.Progressing, Message: "Its change waits for job-2"},
		},
		"GateFailed": {
			reason:   "It stays when the gate failed.",
			web:      web("web:2", "job-2"),
			gate:     gate("job-2"),
			observed: map[string]*structpb.Struct{"web": running, "job-2": broken(observe(gate("job-2")))},
			want:     claimOf(nil).keep(running),
			health:   health.Status{State: health.Progressing, Message: "Its change waits for job-2"},
		},
		"GateOpen": {
			reason:   "The change is applied once the gate is healthy.",
			web:      web("web:2", "job-2"),
			gate:     gate("job-2"),
			observed: map[string]*structpb.Struct{"web": running, "job-2": madeHealthy(observe(gate("job-2")))},
			want:     encoded(web("web:2", "job-2")),
			health:   health.Status{State: health.Progressing, Message: "A change is being applied"},
		},
		"NoChange": {
			reason:   "Without a change nothing is held: an edit by hand is put back even while the gate is shut.",
			web:      web("web:1", "job-1"),
			gate:     gate("job-1"),
			observed: map[string]*structpb.Struct{"web": edited(running)},
			want:     encoded(web("web:1", "job-1")),
			health:   health.Status{State: health.Healthy},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d, err := Decide(claimOf(tc.observed), &Plan{Components: []Component{tc.gate, tc.web}})
			if err != nil {
				t.Fatalf("%s\nDecide(): %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, d.Apply["web"], protocmp.Transform()); diff != "" {
				t.Errorf("%s\nDecide().Apply[web]: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.health, d.Health["web"]); diff != "" {
				t.Errorf("%s\nDecide().Health[web]: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// edited returns a Deployment as stored after its replicas and paused were set by hand.
func edited(obj *structpb.Struct) *structpb.Struct {
	s := stored(obj)
	child(s, "spec").Fields["replicas"] = structpb.NewNumberValue(1)
	child(s, "spec").Fields["paused"] = structpb.NewBoolValue(false)
	return s
}

func TestDecideOnce(t *testing.T) {
	was := madeHealthy(observe(Component{Name: "job", Object: job("job", "web:1"), Once: true}))
	d, err := Decide(claimOf(map[string]*structpb.Struct{"job": was}), &Plan{Components: []Component{{Name: "job", Object: job("job", "web:2"), Once: true}}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(claimOf(nil).keep(was), d.Apply["job"], protocmp.Transform()); diff != "" {
		t.Errorf("A Job cannot be changed, so it stays as it was first applied: -want, +got:\n%s", diff)
	}
	if !d.Health["job"].IsHealthy() {
		t.Errorf("A Job that completed stays healthy though the declaration has changed: got %v", d.Health["job"])
	}
}

func TestDecideKeepsData(t *testing.T) {
	data := func() *structpb.Struct { return holding(stored(applied(t, configMap("db", "precious")))) }
	plain := func() *structpb.Struct { return stored(applied(t, configMap("db", "worthless"))) }

	cases := map[string]struct {
		reason   string
		plan     *Plan
		observed map[string]*structpb.Struct
		apply    []string
		kept     []string
	}{
		"NoData": {reason: "What holds no data goes as soon as it is no longer declared.", plan: &Plan{}, observed: map[string]*structpb.Struct{"db": plain()}},
		"Data": {
			reason:   "What holds data stays, and is named in order.",
			plan:     &Plan{},
			observed: map[string]*structpb.Struct{"z": data(), "a": data(), "m": data(), "p": plain()},
			apply:    []string{"a", "m", "z"},
			kept:     []string{"a", "m", "z"},
		},
		"Released": {reason: "It goes when the claim says so.", plan: &Plan{Release: []string{"a"}}, observed: map[string]*structpb.Struct{"a": data(), "b": data()}, apply: []string{"b"}, kept: []string{"b"}},
		"ReleasedButDeclared": {
			reason:   "A release does not touch what is declared.",
			plan:     &Plan{Release: []string{"db"}, Components: []Component{{Name: "db", Object: configMap("db", "precious"), HoldsData: true}}},
			observed: map[string]*structpb.Struct{"db": data()},
			apply:    []string{"db"},
		},
		"OtherValue": {reason: "Only the value true marks data.", plan: &Plan{}, observed: map[string]*structpb.Struct{"db": func() *structpb.Struct { s := plain(); annotate(s, HoldsDataAnnotation, "false"); return s }()}},
		"NoLongerHoldsData": {
			reason:   "A component that was declared without data once again is just a component.",
			plan:     &Plan{Components: []Component{{Name: "db", Object: configMap("db", "x")}}},
			observed: map[string]*structpb.Struct{"db": data()},
			apply:    []string{"db"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d, err := Decide(claimOf(tc.observed), tc.plan)
			if err != nil {
				t.Fatalf("%s\nDecide(): %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.apply, names(d.Apply), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nDecide().Apply: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.kept, d.Kept); diff != "" {
				t.Errorf("%s\nDecide().Kept: -want, +got:\n%s", tc.reason, diff)
			}
			for _, n := range tc.kept {
				if _, judged := d.Health[n]; judged {
					t.Errorf("%s\nDecide().Health has %s: what is no longer declared is not waited for", tc.reason, n)
				}
			}
		})
	}
}

func TestEncodeMarks(t *testing.T) {
	type want struct{ applied, data bool }
	cases := map[string]struct {
		reason    string
		component Component
		want      want
	}{
		"Deployment":      {reason: "Its generation says nothing of what we declare, so it carries a hash.", component: Component{Object: deployment("web", "web:1")}, want: want{applied: true}},
		"ConfigMap":       {reason: "That it exists does not say that the API server took the last change.", component: Component{Object: configMap("conf", "")}, want: want{applied: true}},
		"Secret":          {reason: "No hash is taken of a Secret.", component: Component{Object: &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: meta("password")}}},
		"ConfigMapGated":  {reason: "Whether it changed must be seen when changes are held.", component: Component{Object: configMap("conf", ""), ChangeAfter: []string{"job"}}, want: want{applied: true}},
		"OnceJob":         {reason: "It never changes.", component: Component{Object: job("job", ""), Once: true}},
		"DataIsMarked":    {reason: "The mark is on the object itself, for a plan that no longer knows it.", component: Component{Object: configMap("db", ""), HoldsData: true}, want: want{applied: true, data: true}},
		"DataAndDeployed": {reason: "Both marks go together.", component: Component{Object: deployment("db", ""), HoldsData: true}, want: want{applied: true, data: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := encoded(tc.component)
			got := want{applied: annotation(s, AppliedAnnotation) != "", data: annotation(s, HoldsDataAnnotation) == "true"}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\nencode(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestEncodeHashIgnoresDataMark(t *testing.T) {
	with := encoded(Component{Object: deployment("db", "db:1"), HoldsData: true})
	without := encoded(Component{Object: deployment("db", "db:1")})
	if annotation(with, AppliedAnnotation) != annotation(without, AppliedAnnotation) {
		t.Errorf("The hash is of what was declared, not of the kernel's marks: %s, %s", annotation(with, AppliedAnnotation), annotation(without, AppliedAnnotation))
	}
}

func TestDecideErrors(t *testing.T) {
	nameless := configMap("a", "")
	nameless.TypeMeta = metav1.TypeMeta{}
	list := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "metadata": map[string]any{"name": "shop-a"}}}

	cases := map[string]struct {
		reason string
		object Object
		want   string
	}{
		"NoTypeMeta": {reason: "An object without a kind cannot be applied, and the component at fault is named.", object: nameless, want: "cannot compose: component a has no apiVersion or kind"},
		"NoKind":     {reason: "Half a type is none.", object: list, want: "cannot compose: component a has no apiVersion or kind"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Decide(claimOf(nil), &Plan{Components: []Component{{Name: "a", Object: tc.object}}})
			if err == nil || err.Error() != tc.want {
				t.Errorf("%s\nDecide(): want error %q, got %v", tc.reason, tc.want, err)
			}
			if IsInvalid(err) {
				t.Errorf("%s\nIt is our error, not the claim's", tc.reason)
			}
		})
	}
}
