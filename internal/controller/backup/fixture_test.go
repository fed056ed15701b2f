package backup

import (
	"slices"
	"testing"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/controller/resolve"
	"github.com/storeplane/storeplane/internal/controller/workload"
	"github.com/storeplane/storeplane/internal/images"
)

// born is when the Backup of the tests was created: a Sunday.
var born = time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC)

// hours returns the time some hours after born.
func hours(n float64) time.Time { return born.Add(time.Duration(n * float64(time.Hour))) }

// state returns the state of a Backup of PostgreSQL to S3, nightly at two.
func state(changes ...func(*State)) *State {
	b := &backupv1.Backup{
		TypeMeta:   metav1.TypeMeta{APIVersion: backupv1.GroupVersion.String(), Kind: backupv1.BackupKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", UID: "backup", Generation: 1, CreationTimestamp: metav1.NewTime(born), Annotations: map[string]string{}},
		Spec: backupv1.BackupSpec{ForProvider: backupv1.BackupParameters{
			Source:       backupv1.Database{Type: backupv1.PostgreSQL, Connection: backupv1.Connection{SecretRef: &backupv1.ConnectionSecret{Name: "orders-db", Key: "uri"}}},
			Destination:  backupv1.Destination{Type: backupv1.S3, Bucket: "backups", Prefix: "team", SecretRef: &backupv1.LocalReference{Name: "store"}},
			Method:       backupv1.Logical,
			Schedule:     "0 2 * * *",
			TimeZone:     "Etc/UTC",
			Compression:  "zstd",
			Retention:    "30d",
			Verification: &backupv1.Verification{Enabled: new(true), Schedule: "0 5 * * 0"},
		}},
	}
	s := &State{Backup: b, Now: hours(0), Images: images.Set{Registry: images.DefaultRegistry}}
	s.Source.Secret, s.Source.Key, s.Source.Print = "orders-db", "uri", "source/1"
	s.Source.Hosts = []string{"orders-db.shop.svc:5432"}
	s.Store.Destination = b.Spec.ForProvider.Destination
	s.Store.Destination.SecretRef = nil
	s.Store.Secret, s.Store.Print, s.Store.Authenticates = "store", "store/1", true
	b.Status.ObservedGeneration = -1
	for _, c := range changes {
		c(s)
	}
	return s
}

// settle adds the objects and the status as if they had been applied already, so that only later
// changes are left to do.
func settle(t testing.TB) func(*State) {
	t.Helper()
	return func(s *State) {
		s.Account, s.Policy, s.SourcePolicy, s.Secret = account(s.Backup), s.policy(), s.sourcePolicy(), s.storeSecret()
		v := &view{State: s}
		v.readSpec()
		crons, err := v.cronJobs()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range crons {
			if err := mark(c); err != nil {
				t.Fatal(err)
			}
			s.CronJobs = append(s.CronJobs, *c)
		}
		v.finish()
		known := &s.Backup.Status.AtProvider
		known.Schedule, known.NextScheduleTime, known.Location = v.obs.Schedule, v.obs.NextScheduleTime, v.obs.Location
	}
}

func digestOf(t testing.TB, s *State) string {
	t.Helper()
	d, err := s.digest()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func at2(now time.Time) func(*State) { return func(s *State) { s.Now = now } }

func annotated(key, value string) func(*State) {
	return func(s *State) { s.Backup.Annotations[key] = value }
}

func params(change func(*backupv1.BackupParameters)) func(*State) {
	return func(s *State) { change(s.params()) }
}

func known(change func(*backupv1.BackupObservation)) func(*State) {
	return func(s *State) { change(&s.Backup.Status.AtProvider) }
}

func says(c xpv2.Condition) func(*State) {
	return func(s *State) { s.Backup.SetConditions(c) }
}

// checked marks the store and the database as reached.
func checked(t testing.TB) func(*State) {
	t.Helper()
	return func(s *State) { s.Backup.Status.AtProvider.Checked = digestOf(t, s) }
}

func with(runs ...workload.Run) func(*State) {
	return func(s *State) { s.Runs = append(s.Runs, runs...) }
}

// run returns the run of a Job that the reconciler created.
func run(name string, a backup.Action, created, finished time.Time) workload.Run {
	r := workload.Run{Job: name, UID: types.UID(name), Action: a, Created: created, Finished: finished, Ended: !finished.IsZero(), Owner: "backup", Attempt: 1}
	if r.Ended {
		r.Report = &backup.Report{Action: a, Started: created, Finished: finished}
	}
	return r
}

// scheduled returns a run of the CronJob.
func scheduled(created, finished time.Time) workload.Run {
	r := run("orders-backup-"+created.Format("150405"), backup.Backup, created, finished)
	r.Owner, r.Scheduled = "cronjob", created.Truncate(time.Minute)
	return r
}

func failing(r workload.Run, reason backup.Reason, message string) workload.Run {
	r.Failure = &backup.Failure{Reason: reason, Message: message}
	if r.Report != nil {
		r.Report.Failure = r.Failure
	}
	return r
}

func digested(t testing.TB, s *State, r workload.Run) workload.Run {
	t.Helper()
	r.Digest = digestOf(t, s)
	return r
}

// entry returns a backup that began at a time.
func entry(began time.Time) backup.Entry {
	return backup.Entry{ID: began.UTC().Format(backup.IDFormat), Time: began, Seconds: 60, Size: 5 << 20}
}

func verified(e backup.Entry, when time.Time) backup.Entry {
	e.Verified = &when
	return e
}

// listing adds the content of the store to the report of a run, newest first.
func listing(r workload.Run, entries ...backup.Entry) workload.Run {
	c := &backup.Catalog{Count: len(entries), Backups: entries}
	if len(entries) > 0 {
		c.Oldest, c.Latest = &entries[len(entries)-1].Time, &entries[0].Time
		if r.Action != backup.Check {
			r.Report.Backup = &entries[0]
		}
	}
	for i := range entries {
		if entries[i].Verified != nil && c.Verified == nil {
			c.Verified = &entries[i]
		}
	}
	r.Report.Catalog = c
	return r
}

// copied turns the Backup into one of copies of a DatabaseCluster of MySQL.
func copied(s *State) {
	p := s.params()
	p.Method = backupv1.Physical
	p.Source = backupv1.Database{Type: backupv1.MySQL, Connection: backupv1.Connection{DatabaseClusterRef: &backupv1.LocalReference{Name: "ledger"}}}
	s.Source = resolve.Source{Version: "9.7", Print: "source/1"}
	s.Source.Secret, s.Source.Cluster = "ledger-dumper", "ledger"
	s.Cluster = resolve.Cluster{Engine: backupv1.MySQL, Version: "9.7", Storage: resource.MustParse("20Gi")}
}

// physical turns the Backup into that of a DatabaseCluster whose CronJob exists.
func physical(s *State) {
	p := s.params()
	p.Method, p.Schedule = backupv1.Physical, ""
	p.Source.Connection = backupv1.Connection{DatabaseClusterRef: &backupv1.LocalReference{Name: "orders"}}
	s.Backup.Name = "orders-backup"
	s.Cluster = resolve.Cluster{Version: "17", Storage: resource.MustParse("20Gi")}
	s.CronJobs = append(s.CronJobs, foreignCronJob())
}

// foreignCronJob returns a CronJob as the function creates it for a DatabaseCluster.
func foreignCronJob() batchv1.CronJob {
	pod := workload.Pod{
		Labels: map[string]string{backupv1.BackupLabel: "orders-backup"},
		Task: backup.Task{
			Action: backup.Backup, Method: backupv1.Physical, Namespace: "shop", Name: "orders",
			Database: backup.Database{Engine: backupv1.PostgreSQL}, Destination: backupv1.Destination{Type: backupv1.S3, Bucket: "backups"}, Full: true,
		},
		Image: "registry.example.com/storeplane/backup:postgresql-17",
		ID:    26,
		Store: workload.Store{Secret: "store"},
	}
	template, err := pod.Template()
	if err != nil {
		panic(err)
	}
	c := workload.CronJob(metav1.ObjectMeta{Name: "orders-backup-full", Namespace: "shop", UID: "foreign", Labels: pod.Labels},
		workload.Schedule{Cron: "0 2 * * *", TimeZone: "Etc/UTC", Period: 24 * time.Hour}, backup.Backup, template)
	c.OwnerReferences = []metav1.OwnerReference{{UID: "claim", Controller: new(true)}}
	return *c
}

func decide(t testing.TB, s *State) Decision {
	t.Helper()
	slices.SortFunc(s.Runs, func(a, b workload.Run) int {
		if a.Ended != b.Ended {
			if a.Ended {
				return -1
			}
			return 1
		}
		return a.Finished.Compare(b.Finished)
	})
	d, err := Decide(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
