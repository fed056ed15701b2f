package backup

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/controller/resolve"
	"github.com/storeplane/storeplane/internal/controller/workload"
)

func TestDecideDeletion(t *testing.T) {
	wanted := params(func(p *backupv1.BackupParameters) { p.DeletionPolicy = backupv1.Delete })
	tried := func(attempt int, r workload.Run) workload.Run {
		r.Attempt, r.Digest = attempt, ""
		d, err := DecideDeletion(state(wanted))
		if err != nil {
			t.Fatal(err)
		}
		r.Digest = d.Create.Annotations[workload.DigestAnnotation]
		return r
	}
	const hint = `; fix it, or set annotation backup.example.com/release to "true" to let the Backup go and keep its data`
	type want struct {
		Done   bool
		Create string
		Remove []string
		Failed string
	}
	cases := map[string]struct {
		reason string
		state  *State
		want   want
	}{
		"Orphan":       {reason: "The data stays unless it is asked to go.", state: state(), want: want{Done: true}},
		"Delete":       {reason: "A Job deletes it.", state: state(wanted), want: want{Create: "orders-delete-1"}},
		"CronJobs":     {reason: "First nothing may make more of it.", state: state(wanted, settle(t)), want: want{Remove: []string{"orders-dump", "orders-verify"}}},
		"Running":      {reason: "Nor finish what it makes.", state: state(wanted, with(run("orders-run-1", backup.Backup, hours(0), time.Time{}))), want: want{Remove: []string{"orders-run-1"}}},
		"Deleting":     {reason: "The Job goes on.", state: state(wanted, with(tried(1, run("orders-delete-1", backup.Delete, hours(0), time.Time{})))), want: want{}},
		"Deleted":      {reason: "Then the Backup goes.", state: state(wanted, with(tried(1, run("orders-delete-1", backup.Delete, hours(0), hours(0.1))))), want: want{Done: true}},
		"NoBucket":     {reason: "What is in no bucket is not there.", state: state(wanted, with(tried(1, failing(run("orders-delete-1", backup.Delete, hours(0), hours(0.1)), backup.BucketMissing, "x")))), want: want{Done: true}},
		"Fails":        {reason: "A failure is told, and waited after.", state: state(wanted, at2(hours(0.11)), with(tried(1, failing(run("orders-delete-1", backup.Delete, hours(0), hours(0.1)), backup.StoreUnreachable, "no route")))), want: want{Failed: "cannot delete the backups: no route" + hint}},
		"FailsLonger":  {reason: "Then tried again.", state: state(wanted, at2(hours(0.2)), with(tried(1, failing(run("orders-delete-1", backup.Delete, hours(0), hours(0.1)), backup.StoreUnreachable, "no route")))), want: want{Create: "orders-delete-2", Failed: "cannot delete the backups: no route" + hint}},
		"Later":        {reason: "After longer each time.", state: state(wanted, at2(hours(0.2)), with(tried(6, failing(run("orders-delete-6", backup.Delete, hours(0), hours(0.1)), backup.StoreUnreachable, "no route")))), want: want{Failed: "cannot delete the backups: no route" + hint}},
		"Denied":       {reason: "A permanent failure is not tried again.", state: state(wanted, at2(hours(99)), with(tried(1, failing(run("orders-delete-1", backup.Delete, hours(0), hours(0.1)), backup.StoreDenied, "403")))), want: want{Failed: "cannot delete the backups: 403" + hint}},
		"DeniedBefore": {reason: "Until something changes.", state: state(wanted, at2(hours(0.11)), func(s *State) { s.Store.Print = "store/2" }, with(tried(1, failing(run("orders-delete-1", backup.Delete, hours(0), hours(0.1)), backup.StoreDenied, "403")))), want: want{Create: "orders-delete-2", Failed: "cannot delete the backups: 403" + hint}},
		"Released":     {reason: "The annotation lets it go.", state: state(wanted, annotated(backupv1.ReleaseAnnotation, "true"), func(s *State) { s.Problem = &resolve.Problem{} }), want: want{Done: true}},
		"Secret": {reason: "Without credentials there is no way.", state: state(wanted, func(s *State) {
			s.Problem = &resolve.Problem{Reason: backupv1.ReasonSecretNotFound, Message: "no Secret"}
		}), want: want{Failed: "cannot delete the backups: no Secret" + hint}},
		"Volume":       {reason: "The data went with its volume.", state: state(wanted, func(s *State) { s.Problem = &resolve.Problem{Reason: backupv1.ReasonVolumeNotFound} }), want: want{Done: true}},
		"Namespace":    {reason: "No pod can be made in a namespace that goes.", state: state(wanted, func(s *State) { s.NamespaceGone = true }), want: want{Done: true}},
		"Physical":     {reason: "A repository is deleted by who knows it.", state: state(wanted, physical), want: want{Create: "orders-backup-delete-1"}},
		"Copies":       {reason: "Copies of MySQL need no DatabaseCluster to be deleted.", state: state(wanted, copied, func(s *State) { s.Source, s.Cluster = resolve.Source{}, resolve.Cluster{} }), want: want{Create: "orders-delete-1"}},
		"PhysicalGone": {reason: "No CronJob knows it any more.", state: state(wanted, physical, func(s *State) { s.CronJobs = nil }), want: want{Failed: "cannot delete the backups: the CronJobs of its DatabaseCluster, which know its repository, are gone" + hint}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d, err := DecideDeletion(tc.state)
			if err != nil {
				t.Fatal(err)
			}
			got := want{Done: d.Done}
			if d.Create != nil {
				got.Create = d.Create.Name
			}
			for _, o := range d.Remove {
				got.Remove = append(got.Remove, o.GetName())
			}
			if d.Failed != nil {
				got.Failed = d.Failed.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDeletionPolicy: the pod that deletes may connect to the store, and an object of the policy's
// name with another owner is not changed.
func TestDeletionPolicy(t *testing.T) {
	wanted := params(func(p *backupv1.BackupParameters) { p.DeletionPolicy = backupv1.Delete })
	cases := map[string]struct {
		reason string
		change func(*State)
		want   bool
	}{
		"None":    {reason: "One that is missing is created.", change: func(*State) {}, want: true},
		"Own":     {reason: "Its own is renewed.", change: func(s *State) { s.Policy = s.policy() }, want: true},
		"Foreign": {reason: "Another's was never its own.", change: func(s *State) { s.Policy = &networkingv1.NetworkPolicy{} }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := state(wanted, tc.change)
			d, err := DecideDeletion(s)
			if err != nil || d.Create == nil {
				t.Fatalf("no Job deletes: %v", err)
			}
			if (d.Policy != nil) != tc.want {
				t.Errorf("%s\nwant a policy: %t, got %v", tc.reason, tc.want, d.Policy)
			}
			if d.Policy == nil {
				return
			}
			if diff := cmp.Diff(append([]networkingv1.NetworkPolicyEgressRule{build.ToDNS()}, s.Store.Egress("shop")...), d.Policy.Spec.Egress); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
