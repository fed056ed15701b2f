package webapp_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/storeplane/storeplane/functions/functionstest"
)

// TestCronJobFields: the CronJob has the fields that the claim sets, and defaults for the others.
func TestCronJobFields(t *testing.T) {
	type fields struct {
		Concurrency                      batchv1.ConcurrencyPolicy
		Suspend                          bool
		Starting, Deadline               int64
		Successful, FailedLimit, Backoff int32
	}
	cases := map[string]struct {
		reason string
		claim  string
		want   fields
	}{
		"Default": {reason: "Runs do not overlap, are tried twice more, and the last three are kept.", claim: functionstest.WebApp(`{image: x, cronJobs: [{name: clean, schedule: "@daily"}]}`), want: fields{Concurrency: "Forbid", Starting: 300, Successful: 3, FailedLimit: 3, Backoff: 2}},
		"Own":     {reason: "Zero is a number too.", claim: functionstest.FullApp, want: fields{Concurrency: "Replace", Suspend: true, Starting: 20, Deadline: 30, Successful: 0, FailedLimit: 9, Backoff: 0}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := functionstest.New(t, tc.claim)
			c.Settle()
			s := functionstest.As[batchv1.CronJob](t, c.Observed["cron-clean"]).Spec
			got := fields{
				Concurrency: s.ConcurrencyPolicy, Suspend: s.Suspend != nil && *s.Suspend, Starting: *s.StartingDeadlineSeconds,
				Successful: *s.SuccessfulJobsHistoryLimit, FailedLimit: *s.FailedJobsHistoryLimit, Backoff: *s.JobTemplate.Spec.BackoffLimit,
			}
			if d := s.JobTemplate.Spec.ActiveDeadlineSeconds; d != nil {
				got.Deadline = *d
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestCronJobsMigrate: like the pods, a CronJob does not run a new image before its migration has
// completed.
func TestCronJobsMigrate(t *testing.T) {
	c := simulate(t, `{image: "x:1", migration: {args: [m]}, cronJobs: [{name: clean, schedule: "@daily"}]}`)
	c.Settle()
	image := func() string {
		return functionstest.As[batchv1.CronJob](t, c.Observed["cron-clean"]).Spec.JobTemplate.Spec.Template.Spec.Containers[0].Image
	}
	c.Edit("x:2", "image")
	c.Reconcile()
	c.Reconcile()
	if image() != "x:1" || c.ComponentStatus("cron-clean") != "Its change waits for migration" {
		t.Errorf("The migration is not through: want x:1 that waits, got %s, %q", image(), c.ComponentStatus("cron-clean"))
	}
	c.Settle()
	if image() != "x:2" {
		t.Errorf("It is: want x:2, got %s", image())
	}
}

// TestCronJobStatus: the status of the claim has the result of the last run, as far as the status
// of the CronJob shows it.
func TestCronJobStatus(t *testing.T) {
	const due, before, after = "2024-05-01T03:00:00Z", "2024-04-30T03:01:00Z", "2024-05-01T03:01:00Z"
	cases := map[string]struct {
		reason string
		status string
		want   map[string]any
	}{
		"Never":     {reason: "There was no run.", status: "{}", want: map[string]any{"name": "clean"}},
		"First":     {reason: "The first one runs.", status: "{lastScheduleTime: '" + due + "', active: [{name: a}]}", want: map[string]any{"name": "clean", "lastResult": "Running", "lastScheduleTime": due, "active": 1.0}},
		"FirstFail": {reason: "The first one failed: nothing ever ended well.", status: "{lastScheduleTime: '" + due + "'}", want: map[string]any{"name": "clean", "lastResult": "Failed", "lastScheduleTime": due}},
		"Succeeded": {reason: "It ended well after it was due.", status: "{lastScheduleTime: '" + due + "', lastSuccessfulTime: '" + after + "'}", want: map[string]any{"name": "clean", "lastResult": "Succeeded", "lastScheduleTime": due, "lastSuccessfulTime": after}},
		"Failed":    {reason: "What ended well was an older one.", status: "{lastScheduleTime: '" + due + "', lastSuccessfulTime: '" + before + "'}", want: map[string]any{"name": "clean", "lastResult": "Failed", "lastScheduleTime": due, "lastSuccessfulTime": before}},
		"Running":   {reason: "As long as one runs the result is unknown.", status: "{lastScheduleTime: '" + due + "', lastSuccessfulTime: '" + before + "', active: [{name: a}, {name: b}]}", want: map[string]any{"name": "clean", "lastResult": "Running", "lastScheduleTime": due, "lastSuccessfulTime": before, "active": 2.0}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, `{image: x, cronJobs: [{name: clean, schedule: "@daily"}]}`)
			c.Reconcile()
			if functionstest.Get(c.Claim, "status", "cronJobs") != nil {
				t.Errorf("%s\nwhat does not exist has no status", tc.reason)
			}
			c.Settle()
			c.SetStatus("cron-clean", tc.status)
			c.Reconcile()
			if diff := cmp.Diff([]any{tc.want}, functionstest.Get(c.Claim, "status", "cronJobs").GetListValue().AsSlice()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if c.Phase() != "Running" {
				t.Errorf("%s\na run is no part of the claim's health: got %s", tc.reason, c.Phase())
			}
		})
	}
	c := simulate(t, `{image: x, cronJobs: [{name: clean, schedule: "@daily", suspend: true}]}`)
	c.Settle()
	if diff := cmp.Diff([]any{map[string]any{"name": "clean", "suspended": true}}, functionstest.Get(c.Claim, "status", "cronJobs").GetListValue().AsSlice()); diff != "" {
		t.Errorf("suspended: -want, +got:\n%s", diff)
	}
}

// TestCronJobHeld: a CronJob runs nothing before the application is healthy for the first time, and is not
// suspended again.
func TestCronJobHeld(t *testing.T) {
	suspended := func(c *crossplane) bool {
		return functionstest.Get(c.Observed["cron-clean"], "spec", "suspend").GetBoolValue()
	}
	c := simulate(t, `{image: "x:1", migration: {args: [m]}, cronJobs: [{name: clean, schedule: "@daily"}]}`)
	c.Reconcile() // The first pass writes no status.
	for range 3 {
		if c.Reconcile(); !suspended(c) || c.ComponentStatus("cron-clean") != "Waits for web" {
			t.Fatalf("The migration runs: want a suspended CronJob that waits, got %v, %q", c.Observed["cron-clean"], c.ComponentStatus("cron-clean"))
		}
	}
	c.Settle()
	if suspended(c) || c.ComponentStatus("cron-clean") != "ready" {
		t.Errorf("The application is healthy: want a CronJob that runs, got %v, %q", c.Observed["cron-clean"], c.ComponentStatus("cron-clean"))
	}

	c.SetStatus("web", `{observedGeneration: 2, replicas: 1, updatedReplicas: 1}`)
	if c.Reconcile(); suspended(c) {
		t.Errorf("The pod has crashed: want the CronJob as it was, got %v", c.Observed["cron-clean"])
	}
	c.Settle()
	functionstest.Set(c.Observed["cron-clean"], true, "spec", "suspend")
	if c.Reconcile(); suspended(c) {
		t.Errorf("It was suspended by hand: want it put back, got %v", c.Observed["cron-clean"])
	}
	c.Settle()

	c.Edit([]any{map[string]any{"name": "clean", "schedule": "@daily"}, map[string]any{"name": "late", "schedule": "@daily"}}, "cronJobs")
	c.Edit("x:2", "image")
	if c.Reconcile(); c.Observed["cron-late"] != nil {
		t.Errorf("One that is added with a new image: want it after the image's rollout, got %v", c.Observed["cron-late"])
	}
	c.Settle()
	if functionstest.Get(c.Observed["cron-late"], "spec", "suspend").GetBoolValue() {
		t.Errorf("The new image runs: want the CronJob to run, got %v", c.Observed["cron-late"])
	}

	c.SetStatus("web", `{observedGeneration: 3, replicas: 1, updatedReplicas: 1}`)
	functionstest.Set(c.Observed["cron-clean"], true, "spec", "suspend")
	if c.Reconcile(); suspended(c) {
		t.Errorf("It was suspended by hand while the application is not healthy: want it put back, got %v", c.Observed["cron-clean"])
	}
	c.Edit([]any{map[string]any{"name": "clean", "schedule": "@daily", "suspend": true}}, "cronJobs")
	if c.Reconcile(); !suspended(c) {
		t.Errorf("The claim suspends it: want that, got %v", c.Observed["cron-clean"])
	}
	c.Edit([]any{map[string]any{"name": "clean", "schedule": "@hourly"}}, "cronJobs")
	if c.Reconcile(); suspended(c) || functionstest.Get(c.Observed["cron-clean"], "spec", "schedule").GetStringValue() != "@hourly" {
		t.Errorf("The claim no longer suspends it, and the application is not healthy: want it started, got %v", c.Observed["cron-clean"])
	}

	own := simulate(t, `{image: x, cronJobs: [{name: clean, schedule: "@daily", suspend: true}]}`)
	own.Settle()
	if !suspended(own) || own.Phase() != "Running" {
		t.Errorf("One that the claim suspends: want it suspended, and a claim that is Running, got %v, %s", own.Observed["cron-clean"], own.Phase())
	}
}
