package backup

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/controller/telemetry"
	"github.com/storeplane/storeplane/internal/controller/workload"
	"github.com/storeplane/storeplane/internal/instance"
)

// Decision is what to do, and what to report.
type Decision struct {
	Observation backupv1.BackupObservation
	Conditions  []xpv2.Condition
	Events      []event.Event

	// Exists is true once the objects that every Backup has were created: its NetworkPolicy exists.
	Exists bool

	// Resume lists CronJobs that are no longer suspended. The runs that they missed are skipped.
	Resume []*batchv1.CronJob

	// Apply, Create and Remove are objects to apply, create and delete, in this order.
	Apply  []client.Object
	Create []*batchv1.Job
	Remove []client.Object

	// Periods are those of the schedules.
	Periods telemetry.Periods
}

// UpToDate reports whether there is nothing to do.
func (d *Decision) UpToDate() bool {
	return len(d.Resume)+len(d.Apply)+len(d.Create)+len(d.Remove) == 0
}

// Decide decides what to do about a Backup that is not being deleted. It is a function of the State
// alone.
func Decide(s *State) (Decision, error) {
	v := &view{State: s.here()}
	v.readSpec()
	known := s.Backup.Status.AtProvider
	v.obs = mergeReports(known, v.Runs, s.byCluster())
	v.contact()
	v.beginning = v.begin()

	d := Decision{Exists: s.Policy != nil}
	if err := v.want(&d, known); err != nil {
		return Decision{}, err
	}
	v.finish()
	verified := v.verified(s.Backup.GetCondition(backupv1.TypeVerified), known)
	isReady := v.ready()
	v.obs.Phase = v.phase()
	d.Observation = v.obs
	d.Conditions = []xpv2.Condition{isReady, verified}
	if v.Escrow != nil {
		d.Conditions = append(d.Conditions, v.escrowed())
	}
	d.Events = events(s.Backup, d.Observation, d.Conditions)
	for _, sc := range v.schedules {
		if !sc.suspended && (d.Periods.Backup == 0 || sc.period < d.Periods.Backup) {
			d.Periods.Backup = sc.period
		}
	}
	if v.verify != nil && !v.verify.suspended {
		d.Periods.Verification = v.verify.period
	}
	return d, nil
}

// readSpec reads the schedules and computes the digest of what the Backup reaches, or sets the
// problem that prevents it.
func (v *view) readSpec() {
	v.problem = v.readSchedules()
	if v.Problem != nil {
		v.problem = &refusal{reason: xpv2.ConditionReason(v.Problem.Reason), message: v.Problem.Message}
	}
	if v.problem == nil && v.byCluster() {
		v.problem = v.foreignSchedules()
	}
	if v.problem != nil {
		return
	}
	digest, err := v.State.digest()
	if err != nil {
		v.problem = &refusal{reason: backupv1.ReasonVersionUnknown, message: err.Error()}
	}
	v.digest = digest
}

// readSchedules parses the Backup's own schedules. The CRD's validation does not catch all invalid
// ones.
func (v *view) readSchedules() *refusal {
	p := v.params()
	zone := cmp.Or(p.TimeZone, "Etc/UTC")
	if p.Schedule != "" {
		sc, err := parseSchedule(p.Schedule, zone, p.Suspend)
		if err != nil {
			return &refusal{reason: backupv1.ReasonInvalidSchedule, message: err.Error()}
		}
		v.schedules = []schedule{sc}
	}
	if v.verifies() {
		sc, err := parseSchedule(v.verification().Schedule, zone, p.Suspend)
		if err != nil {
			return &refusal{reason: backupv1.ReasonInvalidSchedule, message: "verification: " + err.Error()}
		}
		v.verify = &sc
	}
	return nil
}

// foreignSchedules parses the schedules of the DatabaseCluster's CronJobs, and refuses if there are
// none.
func (v *view) foreignSchedules() *refusal {
	crons := v.foreign()
	if len(crons) == 0 {
		name := v.params().Source.Connection.DatabaseClusterRef.Name
		return &refusal{reason: backupv1.ReasonCronJobNotFound, message: "Waiting for the CronJobs of DatabaseCluster " + name}
	}
	for _, c := range crons {
		zone := "Etc/UTC"
		if c.Spec.TimeZone != nil {
			zone = *c.Spec.TimeZone
		}
		if sc, err := parseSchedule(c.Spec.Schedule, zone, c.Spec.Suspend != nil && *c.Spec.Suspend); err == nil {
			v.schedules = append(v.schedules, sc)
		}
	}
	return nil
}

// contact records the present digest as checked if a check or a backup with it has succeeded.
func (v *view) contact() {
	if v.digest == "" {
		return
	}
	for _, r := range v.Runs {
		reached := r.Action == backup.Check || r.Action == backup.Backup
		if reached && r.Succeeded() && (r.Digest == v.digest || v.byCluster() && r.Digest == "") {
			v.obs.Checked = v.digest
		}
	}
}

// recoverable sets the last time that can be restored, which an archive makes later than the newest backup. With binary logs the
// archive alone says it: a copy beside them can be restored by its id, and to no time up to which they are not archived.
func (v *view) recoverable() {
	switch {
	case v.BinaryLogs:
		v.obs.LastRecoverableTime = nil
		if !v.Archived.IsZero() && v.obs.LastSuccessfulTime != nil {
			v.obs.LastRecoverableTime = at(v.Archived)
		}
		return
	case !v.Archived.IsZero() && v.obs.LastSuccessfulTime != nil && after(v.Archived, v.obs.LastRecoverableTime):
		v.obs.LastRecoverableTime = at(v.Archived)
	}
	v.lower()
}

// lower sets the last time that can be restored while the archive has a gap to which there is no end
// yet. What was known before may lie in the gap, as after the return to a store of before: what counts
// is the archive of the servers, or the end of the newest backup.
func (v *view) lower() {
	open := slices.ContainsFunc(v.Gaps, func(g instance.Gap) bool { return g.To == nil })
	if !open || v.obs.LastRecoverableTime == nil {
		return
	}
	last := lastGood(v.obs)
	if !v.Archived.IsZero() && after(v.Archived, last) {
		last = at(v.Archived)
	}
	if last == nil || last.Before(v.obs.LastRecoverableTime) {
		v.obs.LastRecoverableTime = last
	}
}

// finish sets the fields of the observation that depend on the present state and time.
func (v *view) finish() {
	v.obs.Schedule, v.obs.NextScheduleTime, v.obs.Job = "", nil, ""
	for _, sc := range v.schedules {
		if v.obs.Schedule != "" {
			v.obs.Schedule += ", "
		}
		v.obs.Schedule += sc.spec
		if next := sc.next(v.Now); !sc.suspended && !next.IsZero() && (v.obs.NextScheduleTime == nil || next.Before(v.obs.NextScheduleTime.Time)) {
			v.obs.NextScheduleTime = at(next)
		}
	}
	for _, a := range []backup.Action{backup.Backup, backup.Verify, backup.Check} {
		if r := v.active(a); r != nil && v.obs.Job == "" {
			v.obs.Job = r.Job
		}
	}
	v.obs.Location = location(v.State)
	v.recoverable()
	if v.Lost {
		v.obs.FirstRecoverableTime, v.obs.LastRecoverableTime = nil, nil
	}
	v.obs.Gaps = nil
	for _, g := range v.Gaps {
		v.obs.Gaps = append(v.obs.Gaps, backupv1.RecoveryGap{From: atPointer(g.From), To: atPointer(g.To)})
	}
	// Until WAL is archived after the first backup, only that backup can be restored, and no later
	// time.
	if f, l := v.obs.FirstRecoverableTime, v.obs.LastRecoverableTime; f != nil && l != nil && l.Before(f) {
		v.obs.LastRecoverableTime = nil
	}
}

// want adds to the decision what is to be done.
func (v *view) want(d *Decision, known backupv1.BackupObservation) error {
	v.keepKey(d)
	if err := v.base(d); err != nil || v.problem != nil {
		return err
	}
	if v.keyless() {
		return v.wantCheck(d)
	}
	if err := v.wantCronJobs(d); err != nil {
		return err
	}
	if err := v.wantJobs(d); err != nil {
		return err
	}
	settled := equality.Semantic.DeepEqual(known, unhurried(v.obs, known))
	if settled {
		v.tidy(d)
	}
	return nil
}

// unhurried returns an observation in which the fields that are observed anew each time are as
// known. The others are absorbed from reports.
func unhurried(o, known backupv1.BackupObservation) backupv1.BackupObservation {
	o.Phase, o.Schedule, o.NextScheduleTime, o.Location, o.Job = known.Phase, known.Schedule, known.NextScheduleTime, known.Location, known.Job
	o.LastRecoverableTime, o.Gaps = known.LastRecoverableTime, known.Gaps
	return o
}

// base applies the objects that a Backup has whether or not it can reach anything. The copy of
// credentials is an exception: none is created for a Backup with a problem.
func (v *view) base(d *Decision) error {
	wantAccount, wantPolicy, wantSource, wantSecret, wantKey := account(v.Backup), v.policy(), v.sourcePolicy(), v.storeSecret(), v.keySecret()
	objects := []struct {
		want, have client.Object
		taken      bool
		same       func() bool
	}{
		{want: wantAccount, have: v.Account, taken: v.Account != nil && !v.ours(v.Account), same: func() bool {
			return v.Account != nil && !differs(wantAccount, v.Account, wantAccount.AutomountServiceAccountToken, v.Account.AutomountServiceAccountToken)
		}},
		// This policy comes first: the next one may allow running pods less than it did.
		{want: wantSource, have: v.SourcePolicy, taken: wantSource != nil && v.SourcePolicy != nil && !v.ours(v.SourcePolicy), same: func() bool {
			return wantSource == nil || v.SourcePolicy != nil && !differs(wantSource, v.SourcePolicy, nil, nil) && equality.Semantic.DeepEqual(wantSource.Spec, v.SourcePolicy.Spec)
		}},
		{want: wantPolicy, have: v.Policy, taken: v.Policy != nil && !v.ours(v.Policy), same: func() bool {
			return v.Policy != nil && !differs(wantPolicy, v.Policy, nil, nil) && equality.Semantic.DeepEqual(wantPolicy.Spec, v.Policy.Spec)
		}},
		{want: wantSecret, have: v.Secret, taken: wantSecret != nil && v.Secret != nil && !v.ours(v.Secret), same: func() bool {
			return wantSecret == nil || v.Secret != nil && !differs(wantSecret, v.Secret, wantSecret.Type, v.Secret.Type) && equality.Semantic.DeepEqual(wantSecret.Data, v.Secret.Data)
		}},
		{want: wantKey, taken: wantKey != nil && v.Escrow.own.taken, same: func() bool { return wantKey == nil }},
	}
	for _, o := range objects {
		if o.taken {
			v.problem = &refusal{reason: backupv1.ReasonAlreadyExists, message: o.want.GetObjectKind().GroupVersionKind().Kind + " " + o.want.GetName() + " exists already and is not this Backup's: delete it, or give the Backup another name"}
		}
	}
	for _, o := range objects {
		isCopy := o.want == client.Object(wantSecret)
		switch {
		case o.taken, o.same(), isCopy && v.problem != nil && v.Secret == nil:
		default:
			d.Apply = append(d.Apply, o.want)
		}
	}
	return nil
}

func (v *view) wantCronJobs(d *Decision) error {
	want, err := v.cronJobs()
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for _, c := range want {
		names[c.Name] = true
		if err := mark(c); err != nil {
			return err
		}
		have := v.cronJob(c.Name)
		if have != nil && have.Spec.Suspend != nil && *have.Spec.Suspend && !*c.Spec.Suspend {
			d.Resume = append(d.Resume, have)
		}
		if have == nil || differs(c, have, c.Spec, have.Spec) {
			d.Apply = append(d.Apply, c)
		}
	}
	for i := range v.CronJobs {
		if c := &v.CronJobs[i]; v.ours(c) && !names[c.Name] && c.DeletionTimestamp == nil {
			d.Remove = append(d.Remove, c)
		}
	}
	return nil
}

// mark annotates a CronJob with the digest of its content.
func mark(c *batchv1.CronJob) error {
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	annotations := map[string]string{AppliedAnnotation: build.Digest(string(b))}
	maps.Copy(annotations, c.Annotations)
	c.Annotations = annotations
	return nil
}

// wantJobs adds the Jobs that run once and are due.
func (v *view) wantJobs(d *Decision) error {
	b := v.Backup
	errs := []error{v.wantCheck(d)}
	add := func(name string, a backup.Action, value string, attempt int) {
		errs = append(errs, v.addJob(d, name, a, value, attempt))
	}
	if value := b.Annotations[backupv1.RunNowAnnotation]; value != "" && value != v.obs.RunNow {
		switch name := runName(b.Name, value); {
		case v.run(name) != nil:
			v.obs.RunNow = value
		case v.active(backup.Backup) == nil:
			add(name, backup.Backup, value, 1)
		}
	}
	switch value := b.Annotations[backupv1.VerifyNowAnnotation]; {
	case value != "" && value != v.obs.VerifyNow:
		switch name := verifyNowName(b.Name, value); {
		case v.run(name) != nil:
			v.obs.VerifyNow = value
		case v.active(backup.Verify) == nil:
			add(name, backup.Verify, value, 1)
		}
	case v.verify != nil:
		if id, attempt := v.toVerify(); attempt > 0 {
			add(firstName(b.Name, id, attempt), backup.Verify, "", attempt)
		}
	}
	return errors.Join(errs...)
}

// wantCheck adds a check of what is to be reached, if one is due.
func (v *view) wantCheck(d *Decision) error {
	if attempt := v.nextCheck(); attempt > 0 {
		return v.addJob(d, checkName(v.Backup.Name, v.digest, attempt), backup.Check, "", attempt)
	}
	return nil
}

func (v *view) addJob(d *Decision, name string, a backup.Action, value string, attempt int) error {
	job, err := v.job(name, a, value, attempt)
	if err == nil {
		d.Create = append(d.Create, job)
	}
	return err
}

// run returns the run of the Job of a name, or nil.
func (v *view) run(name string) *workload.Run {
	for i := range v.Runs {
		if v.Runs[i].Job == name {
			return &v.Runs[i]
		}
	}
	return nil
}

// nextCheck returns the number of the next attempt to check what is to be reached, or 0 if none is
// due now.
func (v *view) nextCheck() int {
	// A key is only generated once it is known what is in the store.
	unlisted := v.beginning == unknown && v.obs.CatalogTime == nil
	if v.obs.Checked == v.digest && !unlisted {
		return 0
	}
	r := v.lastCheck()
	switch {
	case r == nil:
		return 1
	case !r.Ended, r.Permanent() && r.Failure.Reason != backup.SourceDenied, r.Succeeded() && !unlisted:
		// A user whom the database denies may be created later, which is no change that is seen here.
		return 0
	case v.Now.Before(r.Finished.Add(backoff(r.Attempt))):
		return 0
	}
	return max(r.Attempt, 1) + 1
}

// backoff returns the pause after a failed attempt: from one minute, doubled with each attempt, to
// 64 minutes.
func backoff(attempt int) time.Duration {
	const most = 6
	return time.Minute << min(max(attempt, 1)-1, most)
}

// toVerify returns the ID of the newest backup and the number of the next attempt to verify it out
// of schedule, or 0 if none is due now. It is due while no backup was ever verified, and while the
// store is full: an older backup that was verified does not expire before the newest is verified
// too.
func (v *view) toVerify() (string, int) {
	if len(v.obs.Backups) == 0 || v.active(backup.Verify) != nil || v.active(backup.Backup) != nil {
		return "", 0
	}
	newest := v.obs.Backups[0]
	f := v.obs.LastFailure
	if v.obs.LastVerifiedTime != nil && (f == nil || f.Reason != string(backup.StoreFull) || v.obs.LastVerified == newest.ID) {
		return "", 0
	}
	last := 0
	for _, r := range v.Runs {
		if r.Action != backup.Verify || !r.Created.After(newest.Time.Time) {
			continue
		}
		// A result about the backup stands. A failure that says nothing about the backup is
		// retried, as a check is: the next scheduled verification may be a week away.
		if !r.Failed() || !inconclusive(r.Failure.Reason) || v.Now.Before(r.Finished.Add(backoff(r.Attempt))) {
			return "", 0
		}
		last = max(last, r.Attempt, 1)
	}
	return newest.ID, last + 1
}

// job returns a Job that runs once.
func (v *view) job(name string, a backup.Action, value string, attempt int) (*batchv1.Job, error) {
	pod, err := v.template(a)
	if err != nil {
		return nil, err
	}
	annotations := map[string]string{workload.DigestAnnotation: v.digest, workload.AttemptAnnotation: strconv.Itoa(attempt)}
	if value != "" {
		annotations[workload.ValueAnnotation] = value
	}
	return workload.Job(meta(v.Backup, name, annotations), a, pod), nil
}

// tidy removes Jobs whose reports are in the status. A failed Job stays, for users to inspect,
// until there is a newer one or a success.
func (v *view) tidy(d *Decision) {
	kept := map[backup.Action]bool{}
	for _, r := range slices.Backward(v.Runs) {
		if r.Owner != v.Backup.UID {
			continue
		}
		stale := r.Action == backup.Check && r.Digest != v.digest
		if !r.Ended && !stale {
			continue
		}
		if r.Failed() && !stale && !kept[r.Action] && !v.overcome(r) {
			kept[r.Action] = true
			continue
		}
		d.Remove = append(d.Remove, jobOf(v.Backup, r))
	}
}

// overcome reports whether the action of a failed run has succeeded since.
func (v *view) overcome(r workload.Run) bool {
	switch r.Action {
	case backup.Check:
		return v.obs.Checked == v.digest
	case backup.Backup:
		return v.obs.LastFailure == nil
	case backup.Verify:
		return !after(r.Finished, v.obs.LastVerifiedTime)
	case backup.Serve, backup.Restore, backup.Delete:
	}
	return false
}
