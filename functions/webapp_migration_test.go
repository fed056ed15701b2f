package functions_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/storeplane/storeplane/internal/build"
)

// migrationOf an image of hello, by its component.
func migrationOf(image, arg string) string { return "migration-" + build.Digest(image, "", arg) }

// migrations that are observed, with what they do: runs, ended, or suspended.
func (c *cluster) migrations() []string {
	var out []string
	for _, n := range c.names() {
		if strings.HasPrefix(n, "migration-") {
			out = append(out, n)
		}
	}
	return out
}

// migrating is a claim whose first image runs, and whose second one is being
// migrated to.
func migrating(t *testing.T, status string) (c *cluster, second string) {
	t.Helper()
	c = newCluster(t, webApp(`{image: "x:1", migration: {args: [m]}}`))
	c.settle()
	c.edit("x:2", "image")
	c.reconcile()
	second = migrationOf("x:2", "m")
	c.status(second, status)
	return c, second
}

// TestWebAppMigrationsNeverOverlap: a migration that is under way ends before the
// next one begins, whatever is edited meanwhile.
func TestWebAppMigrationsNeverOverlap(t *testing.T) {
	const (
		running  = "{active: 1, ready: 1}"
		complete = `{succeeded: 1, conditions: [{type: Complete, status: "True"}]}`
		failed   = `{failed: 5, conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded}]}`
		failing  = `{active: 1, ready: 1, failed: 4, conditions: [{type: FailureTarget, status: "True", reason: BackoffLimitExceeded}]}`
	)
	third := migrationOf("x:3", "m")
	cases := map[string]struct {
		reason string
		edit   func(*cluster)
		during string // its status meanwhile
		ended  string // its status then
		next   string // the migration that begins then
	}{
		"Completes": {reason: "One that completes is over.", edit: func(c *cluster) { c.edit("x:3", "image") }, during: running, ended: complete, next: third},
		"Fails":     {reason: "One that fails for good is over too.", edit: func(c *cluster) { c.edit("x:3", "image") }, during: running, ended: failed, next: third},
		"Failing":   {reason: "One that is about to fail still has a pod.", edit: func(c *cluster) { c.edit("x:3", "image") }, during: failing, ended: failed, next: third},
		"Back":      {reason: "The image before is migrated to anew, and not beside it.", edit: func(c *cluster) { c.edit("x:1", "image") }, during: running, ended: complete, next: migrationOf("x:1", "m")},
		"Args":      {reason: "Another way to call it is another migration.", edit: func(c *cluster) { c.edit([]any{"n"}, "migration", "args") }, during: running, ended: complete, next: migrationOf("x:2", "n")},
		"Twice": {
			reason: "Of those that were asked for meanwhile only the last one runs.",
			edit:   func(c *cluster) { c.edit("x:4", "image"); c.reconcile(); c.edit("x:3", "image") },
			during: running, ended: complete, next: third,
		},
		"Removed": {reason: "Also one that the claim has no more is not stopped half-way.", edit: func(c *cluster) { c.edit(nil, "migration") }, during: running, ended: complete},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, second := migrating(t, tc.during)
			before := get(c.observed[second], "spec")
			tc.edit(c)
			for range 3 {
				c.reconcile()
				if diff := cmp.Diff([]string{second}, c.migrations()); diff != "" {
					t.Fatalf("%s\nWhile it runs, it alone: -want, +got:\n%s", tc.reason, diff)
				}
				if !cmpValues(before, get(c.observed[second], "spec")) {
					t.Fatalf("%s\nIt is left as it is, got %v", tc.reason, get(c.observed[second], "spec"))
				}
				if got := c.imageOf("web"); got != "x:1" {
					t.Fatalf("%s\nNo pod has a new image meanwhile, got %s", tc.reason, got)
				}
			}
			words := "Job hello-" + second + " of image x:2 has not ended, and the change follows once it has: to give it up, kubectl delete job/hello-" + second + " --cascade=foreground"
			if got := c.component("migration"); got != words {
				t.Errorf("%s\nThe claim says what it waits for and what to do: want %q, got %q", tc.reason, words, got)
			}
			if got := c.verdict("MigrationReady"); got != "False Waiting" {
				t.Errorf("%s\nIts condition waits, got %q", tc.reason, got)
			}

			c.status(second, tc.ended)
			c.reconcile()
			var want []string
			if tc.next != "" {
				want = []string{tc.next}
			}
			if diff := cmp.Diff(want, c.migrations()); diff != "" {
				t.Fatalf("%s\nOnce it has ended, the next: -want, +got:\n%s", tc.reason, diff)
			}
			c.settle()
			if c.phase() != "Running" {
				t.Errorf("%s\nAnd all is well: got %s, %q", tc.reason, c.phase(), c.message())
			}
		})
	}
}

// TestWebAppMigrationThatDoesNotRun: one that has no running pod, as of an image
// that cannot be pulled, is not waited for until its deadline. It is suspended, so
// that no pod of it starts any more, and has ended once all of them are gone.
func TestWebAppMigrationThatDoesNotRun(t *testing.T) {
	third := migrationOf("x:3", "m")
	suspended := func(c *cluster, n string) bool { return get(c.observed[n], "spec", "suspend").GetBoolValue() }
	cases := map[string]struct{ reason, status string }{
		"New":      {"Its controller has not seen it yet.", "{}"},
		"NotUp":    {"Its pod does not come up.", "{active: 1}"},
		"NoneNow":  {"Its pod failed, and the next one is not there yet.", "{failed: 2}"},
		"NotReady": {"The next one does not come up.", "{active: 1, ready: 0, failed: 2}"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, second := migrating(t, tc.status)
			c.edit("x:3", "image")
			c.reconcile()
			if diff := cmp.Diff([]string{second}, c.migrations()); diff != "" || !suspended(c, second) {
				t.Fatalf("%s\nIt is suspended, and nothing else begins: suspended %v, -want, +got:\n%s", tc.reason, suspended(c, second), diff)
			}
			// A pod of it may have started in the last moment.
			c.status(second, `{terminating: 1, conditions: [{type: Suspended, status: "True"}]}`)
			c.reconcile()
			if diff := cmp.Diff([]string{second}, c.migrations()); diff != "" {
				t.Fatalf("%s\nIts pods are waited for: -want, +got:\n%s", tc.reason, diff)
			}
			c.status(second, `{conditions: [{type: Suspended, status: "True"}]}`)
			c.reconcile()
			if diff := cmp.Diff([]string{third}, c.migrations()); diff != "" {
				t.Fatalf("%s\nThen the next one begins: -want, +got:\n%s", tc.reason, diff)
			}
			c.settle()
		})
	}

	t.Run("AskedForAgain", func(t *testing.T) {
		c, second := migrating(t, "{active: 1}")
		c.edit("x:3", "image")
		c.reconcile()
		c.edit("x:2", "image")
		c.reconcile()
		if diff := cmp.Diff([]string{second}, c.migrations()); diff != "" || suspended(c, second) {
			t.Fatalf("It goes on: suspended %v, -want, +got:\n%s", suspended(c, second), diff)
		}
		c.status(second, "{active: 1, ready: 1}")
		c.reconcile()
		if suspended(c, second) {
			t.Error("It stays so")
		}
		c.settle()
		if got := c.imageOf("web"); got != "x:2" {
			t.Errorf("And its image rolls, got %s", got)
		}
	})

	t.Run("SuspendedByHand", func(t *testing.T) {
		c, second := migrating(t, "{active: 1}")
		set(c.observed[second], true, "spec", "suspend")
		c.reconcile()
		c.reconcile()
		if !suspended(c, second) {
			t.Error("What a person suspended is left so")
		}
	})
}

// imageOf the first container of a component's pods.
func (c *cluster) imageOf(component string) string {
	return get(c.observed[component], "spec", "template", "spec", "containers", 0, "image").GetStringValue()
}

func cmpValues(a, b *structpb.Value) bool { return cmp.Equal(a.AsInterface(), b.AsInterface()) }
