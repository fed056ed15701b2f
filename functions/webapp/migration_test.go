package webapp_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storeplane/storeplane/functions/functionstest"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/test/plane"
	"github.com/storeplane/storeplane/test/plane/planetest"
)

// migrationOf returns the component of the migration of an image of hello.
func migrationOf(image, arg string) string { return "migration-" + build.Digest(image, "", arg) }

// migrations returns the components of the observed migrations.
func migrations(c *crossplane) []string {
	var out []string
	for _, n := range c.ComponentNames() {
		if strings.HasPrefix(n, "migration-") {
			out = append(out, n)
		}
	}
	return out
}

// migrating returns a claim that runs its first image and migrates to its second one, and the
// component of that migration, which has the given status.
func migrating(t *testing.T, status string) (c *crossplane, second string) {
	t.Helper()
	c = simulate(t, `{image: "x:1", migration: {args: [m]}}`)
	c.Settle()
	c.Edit("x:2", "image")
	c.Reconcile()
	second = migrationOf("x:2", "m")
	c.SetStatus(second, status)
	return c, second
}

// TestMigrationsNeverOverlap: a migration that runs ends before the next one begins, whatever is
// edited meanwhile.
func TestMigrationsNeverOverlap(t *testing.T) {
	const (
		running  = "{active: 1, ready: 1}"
		complete = `{succeeded: 1, conditions: [{type: Complete, status: "True"}]}`
		failed   = `{failed: 5, conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded}]}`
		failing  = `{active: 1, ready: 1, failed: 4, conditions: [{type: FailureTarget, status: "True", reason: BackoffLimitExceeded}]}`
	)
	third := migrationOf("x:3", "m")
	cases := map[string]struct {
		reason string
		edit   func(*crossplane)
		during string // the status of the migration meanwhile
		ended  string // its status when it ends
		next   string // the migration that begins then
	}{
		"Completes": {reason: "One that completes is over.", edit: func(c *crossplane) { c.Edit("x:3", "image") }, during: running, ended: complete, next: third},
		"Fails":     {reason: "One that fails for good is over too.", edit: func(c *crossplane) { c.Edit("x:3", "image") }, during: running, ended: failed, next: third},
		"Failing":   {reason: "One that is about to fail still has a pod.", edit: func(c *crossplane) { c.Edit("x:3", "image") }, during: failing, ended: failed, next: third},
		"Back":      {reason: "The image before is migrated to anew, and not beside it.", edit: func(c *crossplane) { c.Edit("x:1", "image") }, during: running, ended: complete, next: migrationOf("x:1", "m")},
		"Args":      {reason: "Another way to call it is another migration.", edit: func(c *crossplane) { c.Edit([]any{"n"}, "migration", "args") }, during: running, ended: complete, next: migrationOf("x:2", "n")},
		"Twice": {
			reason: "Of those that were asked for meanwhile only the last one runs.",
			edit:   func(c *crossplane) { c.Edit("x:4", "image"); c.Reconcile(); c.Edit("x:3", "image") },
			during: running, ended: complete, next: third,
		},
		"Removed": {reason: "Also one that the claim has no more is not stopped half-way.", edit: func(c *crossplane) { c.Edit(nil, "migration") }, during: running, ended: complete},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, second := migrating(t, tc.during)
			before := functionstest.Get(c.Observed[second], "spec")
			tc.edit(c)
			for range 3 {
				c.Reconcile()
				if diff := cmp.Diff([]string{second}, migrations(c)); diff != "" {
					t.Fatalf("%s\nWhile it runs, it alone: -want, +got:\n%s", tc.reason, diff)
				}
				if !cmpValues(before, functionstest.Get(c.Observed[second], "spec")) {
					t.Fatalf("%s\nIt is left as it is, got %v", tc.reason, functionstest.Get(c.Observed[second], "spec"))
				}
				if got := imageOf(c, "web"); got != "x:1" {
					t.Fatalf("%s\nNo pod has a new image meanwhile, got %s", tc.reason, got)
				}
			}
			words := "Job hello-" + second + " of image x:2 has not ended, and the change follows once it has: to give it up, kubectl delete job/hello-" + second + " --cascade=foreground"
			if got := c.ComponentStatus("migration"); got != words {
				t.Errorf("%s\nThe claim says what it waits for and what to do: want %q, got %q", tc.reason, words, got)
			}
			if got := c.ConditionLine("MigrationReady"); got != "False Waiting" {
				t.Errorf("%s\nIts condition waits, got %q", tc.reason, got)
			}

			c.SetStatus(second, tc.ended)
			c.Reconcile()
			var want []string
			if tc.next != "" {
				want = []string{tc.next}
			}
			if diff := cmp.Diff(want, migrations(c)); diff != "" {
				t.Fatalf("%s\nOnce it has ended, the next: -want, +got:\n%s", tc.reason, diff)
			}
			c.Settle()
			if c.Phase() != "Running" {
				t.Errorf("%s\nAnd all is well: got %s, %q", tc.reason, c.Phase(), c.Message())
			}
		})
	}
}

// TestMigrationLeft: a migration that an earlier claim of the name has left, as kubectl delete
// --cascade=orphan does, ends before one of another image begins.
func TestMigrationLeft(t *testing.T) {
	was, second := migrating(t, "{active: 1, ready: 1}")
	c := functionstest.Orphaned(t, was, "hello", functionstest.WebApp(`{image: "x:3", migration: {args: [m]}}`))
	for range 4 {
		c.Reconcile()
		if diff := cmp.Diff([]string{second}, migrations(c)); diff != "" {
			t.Fatalf("While it runs, it alone: -want, +got:\n%s", diff)
		}
	}
	c.SetStatus(second, `{succeeded: 1, conditions: [{type: Complete, status: "True"}]}`)
	c.Reconcile()
	if diff := cmp.Diff([]string{migrationOf("x:3", "m")}, migrations(c)); diff != "" {
		t.Errorf("Once it has ended, the next: -want, +got:\n%s", diff)
	}
}

// TestMigrationThatDoesNotRun: a migration without a running pod, for example because its image
// cannot be pulled, does not block the next one until its deadline. It is suspended, so that none
// of its pods can start, and counts as ended once all of them are gone.
func TestMigrationThatDoesNotRun(t *testing.T) {
	third := migrationOf("x:3", "m")
	suspended := func(c *crossplane, n string) bool {
		return functionstest.Get(c.Observed[n], "spec", "suspend").GetBoolValue()
	}
	cases := map[string]struct{ reason, status string }{
		"New":      {"Its controller has not seen it yet.", "{}"},
		"NotUp":    {"Its pod does not come up.", "{active: 1}"},
		"NoneNow":  {"Its pod failed, and the next one is not there yet.", "{failed: 2}"},
		"NotReady": {"The next one does not come up.", "{active: 1, ready: 0, failed: 2}"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, second := migrating(t, tc.status)
			c.Edit("x:3", "image")
			c.Reconcile()
			if diff := cmp.Diff([]string{second}, migrations(c)); diff != "" || !suspended(c, second) {
				t.Fatalf("%s\nIt is suspended, and nothing else begins: suspended %v, -want, +got:\n%s", tc.reason, suspended(c, second), diff)
			}
			// A pod may have started just before the Job was suspended.
			c.SetStatus(second, `{terminating: 1, conditions: [{type: Suspended, status: "True"}]}`)
			c.Reconcile()
			if diff := cmp.Diff([]string{second}, migrations(c)); diff != "" {
				t.Fatalf("%s\nIts pods are waited for: -want, +got:\n%s", tc.reason, diff)
			}
			c.SetStatus(second, `{conditions: [{type: Suspended, status: "True"}]}`)
			c.Reconcile()
			if diff := cmp.Diff([]string{third}, migrations(c)); diff != "" {
				t.Fatalf("%s\nThen the next one begins: -want, +got:\n%s", tc.reason, diff)
			}
			c.Settle()
		})
	}

	t.Run("AskedForAgain", func(t *testing.T) {
		c, second := migrating(t, "{active: 1}")
		c.Edit("x:3", "image")
		c.Reconcile()
		c.Edit("x:2", "image")
		c.Reconcile()
		if diff := cmp.Diff([]string{second}, migrations(c)); diff != "" || suspended(c, second) {
			t.Fatalf("It goes on: suspended %v, -want, +got:\n%s", suspended(c, second), diff)
		}
		c.SetStatus(second, "{active: 1, ready: 1}")
		c.Reconcile()
		if suspended(c, second) {
			t.Error("It stays so")
		}
		c.Settle()
		if got := imageOf(c, "web"); got != "x:2" {
			t.Errorf("And its image rolls, got %s", got)
		}
	})

	t.Run("SuspendedByHand", func(t *testing.T) {
		c, second := migrating(t, "{active: 1}")
		functionstest.Set(c.Observed[second], true, "spec", "suspend")
		c.Reconcile()
		c.Reconcile()
		if !suspended(c, second) {
			t.Error("What a person suspended is left so")
		}
	})
}

// imageOf returns the image of the first container of a component's pods.
func imageOf(c *crossplane, component string) string {
	return functionstest.Get(c.Observed[component], "spec", "template", "spec", "containers", 0, "image").GetStringValue()
}

func cmpValues(a, b *structpb.Value) bool { return cmp.Equal(a.AsInterface(), b.AsInterface()) }

// TestAPIServerSuspendsMigrations: a real API server accepts the Job of a superseded migration,
// with all fields that it defaulted, when it is suspended and when it is resumed.
func TestAPIServerSuspendsMigrations(t *testing.T) {
	api := planetest.Client(t, planetest.Start(t, false).Config(plane.Admin))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}))
	c, second := migrating(t, "{}")
	apply := func(desired *structpb.Struct, suspended bool) {
		t.Helper()
		u := functionstest.Unstructured(desired)
		for _, f := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"} {
			unstructured.RemoveNestedField(u.Object, "metadata", f)
		}
		delete(u.Object, "status")
		must(api.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("apiextensions.crossplane.io/composed/test"), client.ForceOwnership))
		have := &batchv1.Job{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}}
		must(api.Get(t.Context(), client.ObjectKeyFromObject(u), have))
		if *have.Spec.Suspend != suspended {
			t.Fatalf("want suspend %v, got %v", suspended, *have.Spec.Suspend)
		}
		have.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("Job"))
		raw, err := json.Marshal(have)
		must(err)
		observed := &structpb.Struct{}
		must(protojson.Unmarshal(raw, observed))
		c.Observed[second] = observed
	}
	desired := func() *structpb.Struct { return c.Run().GetDesired().GetResources()[second].GetResource() }

	apply(c.Observed[second], false)
	c.Edit("x:3", "image")
	apply(desired(), true)
	apply(desired(), true) // without a further change
	c.Edit("x:2", "image")
	apply(desired(), false)
	apply(desired(), false)
}
