package backup

import (
	"strings"
	"testing"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/controller/resolve"
	"github.com/storeplane/storeplane/internal/controller/telemetry"
	"github.com/storeplane/storeplane/internal/controller/workload"
	"github.com/storeplane/storeplane/test/gitops/states"
)

// outcome is the outcome of a decision in short form.
type outcome struct {
	Phase    backupv1.BackupPhase
	Ready    string
	Verified string
	Do       []string
	Events   []string
}

// expected returns how the state is to be classified: a Backup whose own spec is rejected has
// failed, and one with a failure that is retried is degraded.
func expected(b *backupv1.Backup, o outcome) states.Expectation {
	for _, final := range []string{"InvalidSchedule", "VersionUnknown", "AlreadyExists", "DestinationInvalid", "InvalidTask", "EscrowDiffers"} {
		if strings.HasPrefix(o.Ready, "False "+final) {
			return states.Failed
		}
	}
	settled := strings.HasPrefix(o.Ready, "True") && len(o.Do) == 0 || b.Status.ObservedGeneration == b.Generation
	switch {
	case o.Phase == backupv1.BackupFailed && settled:
		return states.Degraded
	case o.Phase == backupv1.BackupSuspended && settled:
		return states.Held
	case strings.HasPrefix(o.Ready, "True") && settled:
		return states.Done
	default:
		return states.Working
	}
}

func outcomeOf(d Decision) outcome {
	o := outcome{Phase: d.Observation.Phase}
	say := func(c xpv2.Condition) string {
		s := string(c.Status) + " " + string(c.Reason)
		if c.Message != "" {
			s += ": " + c.Message
		}
		return s
	}
	for _, c := range d.Conditions {
		switch c.Type {
		case xpv2.TypeReady:
			o.Ready = say(c)
		case backupv1.TypeVerified:
			o.Verified = say(c)
		default:
		}
	}
	for _, c := range d.Resume {
		o.Do = append(o.Do, "resume "+c.Name)
	}
	for _, x := range d.Apply {
		o.Do = append(o.Do, "apply "+x.GetObjectKind().GroupVersionKind().Kind+" "+x.GetName())
	}
	for _, j := range d.Create {
		o.Do = append(o.Do, "create "+j.Name)
	}
	for _, x := range d.Remove {
		o.Do = append(o.Do, "remove "+x.GetName())
	}
	for _, e := range d.Events {
		o.Events = append(o.Events, string(e.Type)+" "+string(e.Reason))
	}
	return o
}

const (
	notYet   = "Unknown VerificationPending: No backup has been restored yet"
	noBackup = "Unknown NoBackup: There is no backup yet"
	restored = "True Restored: A backup was restored and found good"

	stillPlain = "True Unsealed: A backup was restored and found good. Plain ones of before encryption was turned on are in the store: they are not restored while it is on, and are deleted by retention"
	onlyPlain  = "The store has no good encrypted backup, and plain ones of before are not restored while encryption is on: set annotation backup.example.com/run-now to start a backup"
	waiting    = "False Checking: Waiting for the first contact with the database and the store"
)

func TestDecide(t *testing.T) {
	one := func(began time.Time) func(*backupv1.BackupObservation) {
		return func(o *backupv1.BackupObservation) {
			o.LastSuccessfulTime, o.CatalogTime, o.Count = at(began), at(began.Add(time.Minute)), 1
			o.Backups = []backupv1.BackupEntry{{ID: "a", Time: *at(began), Size: 1}}
		}
	}
	proof := func(when time.Time) func(*backupv1.BackupObservation) {
		return func(o *backupv1.BackupObservation) { o.LastVerifiedTime, o.LastVerified = at(when), "a" }
	}
	isReady, isProven := says(ready("", born)), says(proven(false, born))
	base := state()
	check := checkName("orders", digestOf(t, base), 1)
	checkRun := func(created, finished time.Time) workload.Run {
		return digested(t, base, run(check, backup.Check, created, finished))
	}

	cases := map[string]struct {
		reason string
		state  *State
		want   outcome
	}{
		"New": {
			reason: "All is made at once, and what it reaches is tried.",
			state:  state(),
			want: outcome{Phase: backupv1.BackupPending, Ready: waiting, Verified: noBackup, Do: []string{
				"apply ServiceAccount orders-dump", "apply NetworkPolicy orders-dump-database", "apply NetworkPolicy orders-dump", "apply CronJob orders-dump", "apply CronJob orders-verify", "create " + check,
			}},
		},
		"SecretNotFound": {
			reason: "What is missing is said in words, and CronJobs wait for it.",
			state: state(func(s *State) {
				s.Problem = &resolve.Problem{Reason: backupv1.ReasonSecretNotFound, Message: "no Secret"}
			}),
			want: outcome{Phase: backupv1.BackupPending, Ready: "False SecretNotFound: no Secret", Verified: noBackup,
				Do: []string{"apply ServiceAccount orders-dump", "apply NetworkPolicy orders-dump-database", "apply NetworkPolicy orders-dump"}, Events: []string{"Warning SecretNotFound"}},
		},
		"NothingToBackUp": {
			reason: "The platform's credentials are not copied for a Backup of nothing.",
			state: state(func(s *State) {
				s.Store.Copy, s.Store.Secret = map[string][]byte{"AWS_ACCESS_KEY_ID": []byte("key")}, "orders-dump-store"
				s.Problem = &resolve.Problem{Reason: backupv1.ReasonSecretNotFound, Message: "no Secret"}
			}),
			want: outcome{Phase: backupv1.BackupPending, Ready: "False SecretNotFound: no Secret", Verified: noBackup,
				Do: []string{"apply ServiceAccount orders-dump", "apply NetworkPolicy orders-dump-database", "apply NetworkPolicy orders-dump"}, Events: []string{"Warning SecretNotFound"}},
		},
		"NothingOfItsName": {
			reason: "Nor for one whose name an object of another owner has.",
			state: state(func(s *State) {
				s.Store.Copy, s.Store.Secret = map[string][]byte{"AWS_ACCESS_KEY_ID": []byte("key")}, "orders-dump-store"
				s.Policy = &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "orders-dump"}}
			}),
			want: outcome{Phase: backupv1.BackupPending, Verified: noBackup, Events: []string{"Warning AlreadyExists"},
				Ready: "False AlreadyExists: NetworkPolicy orders-dump exists already and is not this Backup's: delete it, or give the Backup another name",
				Do:    []string{"apply ServiceAccount orders-dump", "apply NetworkPolicy orders-dump-database"}},
		},
		"SecretGone": {
			reason: "A CronJob that is there is left alone.",
			state: state(settle(t), checked(t), isReady, func(s *State) {
				s.Problem = &resolve.Problem{Reason: backupv1.ReasonSecretNotFound, Message: "no Secret"}
			}),
			want: outcome{Phase: backupv1.BackupFailed, Ready: "False SecretNotFound: no Secret", Verified: noBackup, Events: []string{"Warning SecretNotFound"}},
		},
		"BadSchedule": {
			reason: "The definition lets some through that are none.",
			state:  state(params(func(p *backupv1.BackupParameters) { p.Schedule = "61 * * * *" })),
			want: outcome{Phase: backupv1.BackupPending, Verified: noBackup, Events: []string{"Warning InvalidSchedule"},
				Ready: `False InvalidSchedule: schedule "61 * * * *" is no cron expression: end of range (61) above maximum (59): 61`,
				Do:    []string{"apply ServiceAccount orders-dump", "apply NetworkPolicy orders-dump-database", "apply NetworkPolicy orders-dump"}},
		},
		"NewerThanTools": {
			reason: "There are no tools for it.",
			state:  state(func(s *State) { s.Source.Version = "19" }),
			want: outcome{Phase: backupv1.BackupPending, Verified: noBackup, Events: []string{"Warning VersionUnknown"},
				Ready: "False VersionUnknown: cannot back up PostgreSQL 19: the newest version there are tools for is 18",
				Do:    []string{"apply ServiceAccount orders-dump", "apply NetworkPolicy orders-dump-database", "apply NetworkPolicy orders-dump"}},
		},
		"AlreadyExists": {
			reason: "Nothing of another owner is overwritten.",
			state:  state(settle(t), func(s *State) { s.Account.OwnerReferences = nil }),
			want: outcome{Phase: backupv1.BackupPending, Verified: noBackup, Events: []string{"Warning AlreadyExists"},
				Ready: "False AlreadyExists: ServiceAccount orders-dump exists already and is not this Backup's: delete it, or give the Backup another name"},
		},
		"Checking": {
			reason: "The first check goes on.",
			state:  state(settle(t), with(checkRun(hours(0), time.Time{}))),
			want:   outcome{Phase: backupv1.BackupPending, Ready: waiting, Verified: noBackup},
		},
		"ImageMissing": {
			reason: "Why it does not is said at once.",
			state: state(settle(t), with(func() workload.Run {
				r := checkRun(hours(0), time.Time{})
				r.PodFailure = "cannot pull image x: not found"
				return r
			}())),
			want: outcome{Phase: backupv1.BackupPending, Verified: noBackup, Events: []string{"Warning PodNotStarted"},
				Ready: "False PodNotStarted: Job " + check + ": the pod cannot pull image x: not found"},
		},
		"Denied": {
			reason: "A permanent failure is said and not tried again.",
			state:  state(settle(t), at2(hours(1)), with(failing(checkRun(hours(0), hours(0.01)), backup.StoreDenied, "403 Forbidden"))),
			want:   outcome{Phase: backupv1.BackupFailed, Ready: "False StoreDenied: 403 Forbidden", Verified: noBackup, Events: []string{"Warning StoreDenied"}},
		},
		"UserDenied": {
			reason: "A user of the database may be created later, which no object here shows: it is tried again.",
			state:  state(settle(t), at2(hours(1)), with(failing(checkRun(hours(0), hours(0.01)), backup.SourceDenied, "no such user"))),
			want:   outcome{Phase: backupv1.BackupFailed, Ready: "False SourceDenied: no such user", Verified: noBackup, Events: []string{"Warning SourceDenied"}, Do: []string{"create " + checkName("orders", digestOf(t, state()), 2)}},
		},
		"DeniedBefore": {
			reason: "An event is for what changes.",
			state: state(settle(t), at2(hours(1)), says(unready("StoreDenied", "403 Forbidden", born)),
				with(failing(checkRun(hours(0), hours(0.01)), backup.StoreDenied, "403 Forbidden"))),
			want: outcome{Phase: backupv1.BackupFailed, Ready: "False StoreDenied: 403 Forbidden", Verified: noBackup},
		},
		"SecretChanged": {
			reason: "Another Secret asks for another check, and the old one goes.",
			state: state(settle(t), at2(hours(1)), with(failing(checkRun(hours(0), hours(0.01)), backup.StoreDenied, "403 Forbidden")), func(s *State) {
				s.Store.Print = "store/2"
				s.CronJobs, s.Backup.Status.AtProvider = nil, backupv1.BackupObservation{}
				settle(t)(s)
			}),
			want: outcome{Phase: backupv1.BackupPending, Ready: waiting, Verified: noBackup, Do: []string{
				"create " + checkName("orders", digestOf(t, state(func(s *State) { s.Store.Print = "store/2" })), 1), "remove " + check,
			}},
		},
		"Unreachable": {
			reason: "What may pass by itself is waited for.",
			state:  state(settle(t), at2(hours(0.02)), with(failing(checkRun(hours(0), hours(0.01)), backup.StoreUnreachable, "no route"))),
			want:   outcome{Phase: backupv1.BackupFailed, Ready: "False StoreUnreachable: no route", Verified: noBackup, Events: []string{"Warning StoreUnreachable"}},
		},
		"UnreachableLonger": {
			reason: "And tried again after a while.",
			state:  state(settle(t), at2(hours(0.5)), with(failing(checkRun(hours(0), hours(0.01)), backup.StoreUnreachable, "no route"))),
			want: outcome{Phase: backupv1.BackupFailed, Ready: "False StoreUnreachable: no route", Verified: noBackup, Events: []string{"Warning StoreUnreachable"},
				Do: []string{"create " + check + "-2"}},
		},
		"Reached": {
			reason: "Reached is ready: nothing was due yet.",
			state:  state(settle(t), at2(hours(0.1)), with(listing(checkRun(hours(0), hours(0.01))))),
			want:   outcome{Phase: backupv1.BackupScheduled, Ready: "True Available", Verified: noBackup, Events: []string{"Normal Ready"}},
		},
		"ReachedSaid": {
			reason: "Once that is in the status the Job goes.",
			state: state(settle(t), at2(hours(0.1)), checked(t), isReady, known(func(o *backupv1.BackupObservation) { o.CatalogTime = at(hours(0.01)) }),
				with(listing(checkRun(hours(0), hours(0.01))))),
			want: outcome{Phase: backupv1.BackupScheduled, Ready: "True Available", Verified: noBackup, Do: []string{"remove " + check}},
		},
		"FoundBackups": {
			reason: "A Backup that was made anew finds what is there, proven already.",
			state:  state(settle(t), at2(hours(0.1)), with(listing(checkRun(hours(0), hours(0.01)), verified(entry(hours(-20)), hours(-19))))),
			want:   outcome{Phase: backupv1.BackupScheduled, Ready: "True Available", Verified: restored, Events: []string{"Normal Ready", "Normal Verified"}},
		},
		"FirstDue": {
			reason: "The first backup was due, and was not made.",
			state:  state(settle(t), at2(hours(3)), checked(t), isReady),
			want:   outcome{Phase: backupv1.BackupScheduled, Ready: "False NoBackup: There is no backup, and the first one was due", Verified: noBackup, Events: []string{"Warning NoBackup"}},
		},
		"FirstRuns": {
			reason: "While it runs all is well.",
			state:  state(settle(t), at2(hours(3)), checked(t), isReady, with(scheduled(hours(2), time.Time{}))),
			want:   outcome{Phase: backupv1.BackupRunning, Ready: "True Available", Verified: noBackup},
		},
		"FirstFails": {
			reason: "The tool's own words.",
			state:  state(settle(t), at2(hours(3)), checked(t), isReady, with(failing(scheduled(hours(2), hours(2.1)), backup.ToolFailed, "pg_dump: error: x"))),
			want: outcome{Phase: backupv1.BackupFailed, Ready: "False NoBackup: There is no backup, and the last one failed: pg_dump: error: x", Verified: noBackup,
				Events: []string{"Warning BackupFailed", "Warning NoBackup"}},
		},
		"FirstSucceeds": {
			reason: "The first backup is verified at once.",
			state: state(settle(t), at2(hours(3)), checked(t), isReady, known(func(o *backupv1.BackupObservation) { o.CatalogTime = at(hours(0)) }),
				with(listing(scheduled(hours(2), hours(2.1)), entry(hours(2))))),
			want: outcome{Phase: backupv1.BackupScheduled, Ready: "True Available", Verified: notYet, Events: []string{"Normal BackupSucceeded"},
				Do: []string{"create " + firstName("orders", "20260301T020000Z", 1)}},
		},
		"FirstVerifies": {
			reason: "While that goes on it is not begun again.",
			state: state(settle(t), at2(hours(3)), checked(t), isReady, known(one(hours(2))),
				with(run("orders-verify-x", backup.Verify, hours(2.5), time.Time{}))),
			want: outcome{Phase: backupv1.BackupVerifying, Ready: "True Available", Verified: notYet},
		},
		"FirstVerifyFails": {
			reason: "Nor once it has failed, and its Job stays for people to look at.",
			state: state(settle(t), at2(hours(3)), checked(t), isReady, known(one(hours(2))),
				with(failing(run("orders-verify-x", backup.Verify, hours(2.5), hours(2.6)), backup.BackupCorrupt, "object 1 is cut off"))),
			want: outcome{Phase: backupv1.BackupScheduled, Ready: "True Available", Verified: "False BackupCorrupt: object 1 is cut off", Events: []string{"Warning BackupCorrupt"}},
		},
		"FirstVerifyInterrupted": {
			reason: "But where that says nothing about the backup it is tried again.",
			state: state(settle(t), at2(hours(3)), checked(t), isReady, known(one(hours(2))),
				with(failing(run("orders-verify-x", backup.Verify, hours(2.5), hours(2.6)), backup.StoreUnreachable, "503"))),
			want: outcome{Phase: backupv1.BackupScheduled, Ready: "True Available", Verified: notYet + ": 503", Do: []string{"create " + firstName("orders", "a", 2)}},
		},
		"VerifyFailsLater": {
			reason: "An older proof does not stand against a newer failure.",
			state: state(settle(t), at2(hours(24*7+6)), checked(t), isReady, isProven, known(one(hours(24*7+2))), known(proof(hours(3))),
				with(failing(scheduled2(hours(24*7+5), hours(24*7+5.1)), backup.ContentDiffers, "table a has 1 row instead of 2"))),
			want: outcome{Phase: backupv1.BackupScheduled, Ready: "True Available", Verified: "False ContentDiffers: table a has 1 row instead of 2", Events: []string{"Warning ContentDiffers"}},
		},
		"Forged": {
			reason: "Another program has put a backup into the store.",
			state:  state(settle(t), at2(hours(24*7+6)), checked(t), isReady, isProven, known(one(hours(24*7+2))), known(proof(hours(24*7+3))), known(func(o *backupv1.BackupObservation) { o.NotAuthentic = []string{"x"} })),
			want:   outcome{Phase: backupv1.BackupScheduled, Ready: "True Available", Verified: "False BackupNotAuthentic: Backup x in the store was not written with this Backup's key, and is neither counted nor restored: another program may write to the store. Change its credentials, and delete that backup there", Events: []string{"Warning BackupNotAuthentic"}},
		},
		"ForgedBefore": {
			reason: "It is gone from there.",
			state:  state(settle(t), at2(hours(24*7+6)), checked(t), isReady, says(disproven("BackupNotAuthentic", "x", born)), known(one(hours(24*7+2))), known(proof(hours(24*7+3)))),
			want:   outcome{Phase: backupv1.BackupScheduled, Ready: "True Available", Verified: restored, Events: []string{"Normal Verified"}},
		},
		"ForgedAndCorrupt": {
			reason: "Another's backup does not hide that one of its own is damaged.",
			state: state(settle(t), at2(hours(24*7+6)), checked(t), isReady, says(disproven("BackupNotAuthentic", "x", born)), known(one(hours(24*7+2))), known(proof(hours(3))), known(func(o *backupv1.BackupObservation) { o.NotAuthentic = []string{"x"} }),
				with(failing(scheduled2(hours(24*7+5), hours(24*7+5.1)), backup.BackupCorrupt, "object 1 is cut off"))),
			want: outcome{Phase: backupv1.BackupScheduled, Ready: "True Available", Verified: "False BackupCorrupt: object 1 is cut off", Events: []string{"Warning BackupCorrupt"}},
		},
		"ForgedAndCorruptBefore": {
			reason: "Nor once the Job that found it is gone.",
			state:  state(settle(t), at2(hours(24*7+6)), checked(t), isReady, says(disproven("BackupCorrupt", "object 1 is cut off", born)), known(one(hours(24*7+2))), known(proof(hours(3))), known(func(o *backupv1.BackupObservation) { o.NotAuthentic = []string{"x"} })),
			want:   outcome{Phase: backupv1.BackupScheduled, Ready: "True Available", Verified: "False BackupCorrupt: object 1 is cut off"},
		},
		"Unsealed": {
			reason: "Plain backups of before encryption was turned on are no attack, and do not undo a proof.",
			state: state(encrypted, settle(t), at2(hours(27)), checked(t), isReady, isProven, known(func(o *backupv1.BackupObservation) { o.CatalogTime = at(hours(2)) }),
				with(unsealed(listing(scheduled(hours(26), hours(26.1)), verified(entry(hours(26)), hours(26.5)))))),
			want: outcome{Phase: backupv1.BackupScheduled, Ready: "True Available", Verified: stillPlain, Events: []string{"Normal BackupSucceeded", "Normal Verified"}},
		},
		"UnsealedForged": {
			reason: "One that is newer is.",
			state: state(encrypted, settle(t), at2(hours(27)), checked(t), isReady, isProven, known(func(o *backupv1.BackupObservation) { o.CatalogTime = at(hours(2)) }),
				with(func() workload.Run {
					r := unsealed(listing(scheduled(hours(26), hours(26.1)), verified(entry(hours(26)), hours(26.5))))
					r.Report.Catalog.NotAuthentic = []string{"x"}
					return r
				}())),
			want: outcome{Phase: backupv1.BackupScheduled, Ready: "True Available", Verified: "False BackupNotAuthentic: Backup x in the store was not written with this Backup's key, and is neither counted nor restored: another program may write to the store. Change its credentials, and delete that backup there", Events: []string{"Normal BackupSucceeded", "Warning BackupNotAuthentic"}},
		},
		"UnsealedSaid": {
			reason: "It is known though the Job that listed them is gone.",
			state:  state(encrypted, settle(t), at2(hours(28)), checked(t), isReady, says(proven(true, born)), known(one(hours(26))), known(proof(hours(26.5)))),
			want:   outcome{Phase: backupv1.BackupScheduled, Ready: "True Available", Verified: stillPlain},
		},
		"UnsealedExpired": {
			reason: "Until they are deleted.",
			state: state(encrypted, settle(t), at2(hours(51)), checked(t), isReady, says(proven(true, born)), known(one(hours(26))), known(proof(hours(26.5))),
				with(listing(scheduled(hours(50), hours(50.1)), entry(hours(50)), verified(entry(hours(26)), hours(26.5))))),
			want: outcome{Phase: backupv1.BackupScheduled, Ready: "True Available", Verified: restored, Events: []string{"Normal BackupSucceeded", "Normal Verified"}},
		},
		"UnsealedOff": {
			reason: "Without encryption they are as good as any.",
			state:  state(settle(t), at2(hours(28)), checked(t), isReady, says(proven(true, born)), known(one(hours(26))), known(proof(hours(26.5)))),
			want:   outcome{Phase: backupv1.BackupScheduled, Ready: "True Available", Verified: restored, Events: []string{"Normal Verified"}},
		},
		"UnsealedNotYet": {
			reason: "A sealed one that was not verified yet is that.",
			state: state(encrypted, settle(t), at2(hours(27)), checked(t), isReady, says(disproven("Unsealed", onlyPlain, born)), known(func(o *backupv1.BackupObservation) { o.CatalogTime = at(hours(2)) }),
				with(unsealed(listing(scheduled(hours(26), hours(26.1)), entry(hours(26)))), run("orders-verify-x", backup.Verify, hours(26.2), time.Time{}))),
			want: outcome{Phase: backupv1.BackupVerifying, Ready: "True Available", Verified: notYet, Events: []string{"Normal BackupSucceeded"}},
		},
		"UnsealedAlone": {
			reason: "Where nothing is sealed nothing can be restored with the key.",
			state: state(encrypted, settle(t), at2(hours(1)), checked(t), isReady, isProven, known(one(hours(-22))), known(proof(hours(-21))),
				with(unsealed(listing(run("orders-check-x", backup.Check, hours(0.5), hours(0.6)))))),
			want: outcome{Phase: backupv1.BackupScheduled, Ready: "True Available", Verified: "False Unsealed: " + onlyPlain, Events: []string{"Warning Unsealed"}},
		},
		"UnsealedAloneVerified": {
			reason: "A verification that found none of its own says the same in harsher words.",
			state: state(encrypted, settle(t), at2(hours(1)), checked(t), isReady, says(disproven("Unsealed", onlyPlain, born)), known(func(o *backupv1.BackupObservation) { o.CatalogTime = at(hours(0.6)) }),
				with(failing(unsealed(listing(scheduled2(hours(0.7), hours(0.8)))), backup.BackupNotAuthentic, "backup a was not written with this Backup's key"))),
			want: outcome{Phase: backupv1.BackupScheduled, Ready: "True Available", Verified: "False Unsealed: " + onlyPlain},
		},
		"ObjectForged": {
			reason: "One that found its own with another's content says what no list does.",
			state: state(encrypted, settle(t), at2(hours(28)), checked(t), isReady, isProven, known(one(hours(26))), known(proof(hours(26.5))),
				with(failing(scheduled2(hours(27), hours(27.1)), backup.BackupNotAuthentic, "the backup is not encrypted, and there is a key"))),
			want: outcome{Phase: backupv1.BackupScheduled, Ready: "True Available", Verified: "False BackupNotAuthentic: the backup is not encrypted, and there is a key", Events: []string{"Warning BackupNotAuthentic"}},
		},
		"VerifyInterrupted": {
			reason: "A store that is away for a moment says nothing about a backup.",
			state: state(settle(t), at2(hours(24*7+6)), checked(t), isReady, isProven, known(one(hours(24*7+2))), known(proof(hours(6))),
				with(failing(scheduled2(hours(24*7+5), hours(24*7+5.1)), backup.StoreUnreachable, "503 Service Unavailable"))),
			want: outcome{Phase: backupv1.BackupScheduled, Ready: "True Available", Verified: restored},
		},
		"VerifyInterruptedForLong": {
			reason: "One that stays away keeps backups from being verified.",
			state: state(settle(t), at2(hours(24*22)), checked(t), isReady, isProven, known(one(hours(24*22-1))), known(proof(hours(3))),
				with(failing(scheduled2(hours(24*21+5), hours(24*21+5.1)), backup.StoreUnreachable, "503 Service Unavailable"))),
			want: outcome{Phase: backupv1.BackupScheduled, Ready: "True Available", Verified: "False VerificationOverdue: The last verification is older than two periods of its schedule: 503 Service Unavailable", Events: []string{"Warning VerificationOverdue"}},
		},
		"VerifyInterruptedBefore": {
			reason: "Nor does it stand in for a proof of damage, once it was said.",
			state: state(settle(t), at2(hours(24*7+6)), checked(t), isReady, says(disproven("ContentDiffers", "x", born)), known(one(hours(24*7+2))), known(proof(hours(3))),
				with(failing(scheduled2(hours(24*7+5), hours(24*7+5.1)), backup.StoreUnreachable, "503 Service Unavailable"))),
			want: outcome{Phase: backupv1.BackupScheduled, Ready: "True Available", Verified: "False ContentDiffers: x"},
		},
		"VerifyFailedBefore": {
			reason: "A failure stands though its Job is gone, until a verification succeeds.",
			state: state(settle(t), at2(hours(24*7+6)), checked(t), isReady, says(disproven("ContentDiffers", "x", born)),
				known(one(hours(24*7+2))), known(proof(hours(3)))),
			want: outcome{Phase: backupv1.BackupScheduled, Ready: "True Available", Verified: "False ContentDiffers: x"},
		},
		"VerifySucceedsLater": {
			reason: "Then it is over.",
			state: state(settle(t), at2(hours(24*7+6)), checked(t), isReady, says(disproven("ContentDiffers", "x", born)), known(one(hours(24*7+2))), known(proof(hours(3))),
				with(listing(scheduled2(hours(24*7+5), hours(24*7+5.1)), verified(entry(hours(24*7+2)), hours(24*7+5))))),
			want: outcome{Phase: backupv1.BackupScheduled, Ready: "True Available", Verified: restored, Events: []string{"Normal Verified"}},
		},
		"NotVerifiedForLong": {
			reason: "A proof grows old.",
			state:  state(settle(t), at2(hours(24*15)), checked(t), isReady, isProven, known(one(hours(24*14+2))), known(proof(hours(-24)))),
			want: outcome{Phase: backupv1.BackupScheduled, Ready: "True Available", Verified: "False VerificationOverdue: The last verification is older than two periods of its schedule",
				Events: []string{"Warning VerificationOverdue"}},
		},
		"VerificationOff": {
			reason: "Who turns it off has no proof.",
			state: state(params(func(p *backupv1.BackupParameters) { p.Verification.Enabled = new(false) }), settle(t), at2(hours(3)), checked(t), isReady,
				known(one(hours(2)))),
			want: outcome{Phase: backupv1.BackupScheduled, Ready: "True Available", Verified: "Unknown Disabled: Verification is turned off"},
		},
		"VerificationOffLong": {
			reason: "What was verified long ago is no proof of what there is today.",
			state: state(params(func(p *backupv1.BackupParameters) { p.Verification.Enabled = new(false) }), settle(t), at2(hours(15*24)), checked(t), isReady, isProven,
				known(one(hours(15*24-22))), known(proof(hours(3)))),
			want: outcome{Phase: backupv1.BackupScheduled, Ready: "True Available", Verified: "Unknown Disabled: Verification is turned off, and the last one is older than two weeks"},
		},
		"OneFailure": {
			reason: "One failure is told and is not yet the end.",
			state: state(settle(t), at2(hours(27)), checked(t), isReady, isProven, known(one(hours(2))), known(proof(hours(3))),
				with(failing(scheduled(hours(26), hours(26.1)), backup.SourceUnreachable, "refused"))),
			want: outcome{Phase: backupv1.BackupFailed, Ready: "True Available: The last backup failed: refused", Verified: restored, Events: []string{"Warning BackupFailed"}},
		},
		"NoRoom": {
			reason: "What was verified keeps its place until the newest one is.",
			state: state(settle(t), at2(hours(51)), checked(t), isReady, isProven, known(one(hours(26))), known(proof(hours(3))),
				known(func(o *backupv1.BackupObservation) { o.LastVerified = "older" }),
				with(failing(scheduled(hours(50), hours(50.1)), backup.StoreFull, "the volume is full"))),
			want: outcome{Phase: backupv1.BackupFailed, Ready: "True Available: The last backup failed: the volume is full", Verified: restored, Events: []string{"Warning BackupFailed"},
				Do: []string{"create " + firstName("orders", "a", 1)}},
		},
		"NoRoomTried": {
			reason: "A store that was away says nothing about the backup: it is tried again, but not at once.",
			state: state(settle(t), at2(hours(50.31)), checked(t), isReady, isProven, known(one(hours(26))), known(proof(hours(3))),
				known(func(o *backupv1.BackupObservation) { o.LastVerified = "older" }),
				with(failing(run("orders-verify-x", backup.Verify, hours(50.2), hours(50.3)), backup.StoreUnreachable, "503"), failing(scheduled(hours(50), hours(50.1)), backup.StoreFull, "the volume is full"))),
			want: outcome{Phase: backupv1.BackupFailed, Ready: "True Available: The last backup failed: the volume is full", Verified: restored, Events: []string{"Warning BackupFailed"}},
		},
		"NoRoomTriedAgain": {
			reason: "After a while it is, as a Job of another name: that of the first attempt is there.",
			state: state(settle(t), at2(hours(50.32)), checked(t), isReady, isProven, known(one(hours(26))), known(proof(hours(3))),
				known(func(o *backupv1.BackupObservation) { o.LastVerified = "older" }),
				with(failing(run("orders-verify-x", backup.Verify, hours(50.2), hours(50.3)), backup.StoreUnreachable, "503"), failing(scheduled(hours(50), hours(50.1)), backup.StoreFull, "the volume is full"))),
			want: outcome{Phase: backupv1.BackupFailed, Ready: "True Available: The last backup failed: the volume is full", Verified: restored, Events: []string{"Warning BackupFailed"},
				Do: []string{"create " + firstName("orders", "a", 2)}},
		},
		"NoRoomTriedTwice": {
			reason: "Each attempt waits longer than the one before.",
			state: state(settle(t), at2(hours(50.63)), checked(t), isReady, isProven, known(one(hours(26))), known(proof(hours(3))),
				known(func(o *backupv1.BackupObservation) { o.LastVerified = "older" }),
				with(failing(attempted2(2, run("orders-verify-x-2", backup.Verify, hours(50.5), hours(50.6))), backup.Interrupted, "the pod was stopped"), failing(scheduled(hours(50), hours(50.1)), backup.StoreFull, "the volume is full"))),
			want: outcome{Phase: backupv1.BackupFailed, Ready: "True Available: The last backup failed: the volume is full", Verified: restored, Events: []string{"Warning BackupFailed"}},
		},
		"NoRoomTriedThrice": {
			reason: "But is made.",
			state: state(settle(t), at2(hours(50.64)), checked(t), isReady, isProven, known(one(hours(26))), known(proof(hours(3))),
				known(func(o *backupv1.BackupObservation) { o.LastVerified = "older" }),
				with(failing(attempted2(2, run("orders-verify-x-2", backup.Verify, hours(50.5), hours(50.6))), backup.Interrupted, "the pod was stopped"), failing(scheduled(hours(50), hours(50.1)), backup.StoreFull, "the volume is full"))),
			want: outcome{Phase: backupv1.BackupFailed, Ready: "True Available: The last backup failed: the volume is full", Verified: restored, Events: []string{"Warning BackupFailed"},
				Do: []string{"create " + firstName("orders", "a", 3)}},
		},
		"NoRoomNotStarted": {
			reason: "A pod that never ran has found out nothing.",
			state: state(settle(t), at2(hours(50.32)), checked(t), isReady, isProven, known(one(hours(26))), known(proof(hours(3))),
				known(func(o *backupv1.BackupObservation) { o.LastVerified = "older" }),
				with(failing(run("orders-verify-x", backup.Verify, hours(50.2), hours(50.3)), backupv1.ReasonPodNotStarted, "the pod cannot pull image x"), failing(scheduled(hours(50), hours(50.1)), backup.StoreFull, "the volume is full"))),
			want: outcome{Phase: backupv1.BackupFailed, Ready: "True Available: The last backup failed: the volume is full", Verified: restored, Events: []string{"Warning BackupFailed"},
				Do: []string{"create " + firstName("orders", "a", 2)}},
		},
		"NoRoomKilled": {
			reason: "Nor has one that was gone with its node.",
			state: state(settle(t), at2(hours(50.32)), checked(t), isReady, isProven, known(one(hours(26))), known(proof(hours(3))),
				known(func(o *backupv1.BackupObservation) { o.LastVerified = "older" }),
				with(failing(run("orders-verify-x", backup.Verify, hours(50.2), hours(50.3)), backupv1.ReasonPodTerminated, "the pod is gone and left no report"), failing(scheduled(hours(50), hours(50.1)), backup.StoreFull, "the volume is full"))),
			want: outcome{Phase: backupv1.BackupFailed, Ready: "True Available: The last backup failed: the volume is full", Verified: restored, Events: []string{"Warning BackupFailed"},
				Do: []string{"create " + firstName("orders", "a", 2)}},
		},
		"NoRoomCorrupt": {
			reason: "A backup that is damaged does not become good by trying it again.",
			state: state(settle(t), at2(hours(51)), checked(t), isReady, isProven, known(one(hours(26))), known(proof(hours(3))),
				known(func(o *backupv1.BackupObservation) { o.LastVerified = "older" }),
				with(failing(run("orders-verify-x", backup.Verify, hours(50.2), hours(50.3)), backup.BackupCorrupt, "object 1 is cut off"), failing(scheduled(hours(50), hours(50.1)), backup.StoreFull, "the volume is full"))),
			want: outcome{Phase: backupv1.BackupFailed, Ready: "True Available: The last backup failed: the volume is full", Verified: "False BackupCorrupt: object 1 is cut off", Events: []string{"Warning BackupFailed", "Warning BackupCorrupt"}},
		},
		"NoRoomCorruptBefore": {
			reason: "Nor does it by a later attempt that did not reach it.",
			state: state(settle(t), at2(hours(52)), checked(t), isReady, says(disproven("BackupCorrupt", "object 1 is cut off", born)), known(one(hours(26))), known(proof(hours(3))),
				known(func(o *backupv1.BackupObservation) { o.LastVerified = "older" }),
				with(failing(scheduled2(hours(50.2), hours(50.3)), backup.BackupCorrupt, "object 1 is cut off"),
					failing(run("orders-verify-x", backup.Verify, hours(50.4), hours(50.5)), backup.StoreUnreachable, "503"), failing(scheduled(hours(50), hours(50.1)), backup.StoreFull, "the volume is full"))),
			want: outcome{Phase: backupv1.BackupFailed, Ready: "True Available: The last backup failed: the volume is full", Verified: "False BackupCorrupt: object 1 is cut off", Events: []string{"Warning BackupFailed"}},
		},
		"NoRoomVerified": {
			reason: "The newest one was verified.",
			state: state(settle(t), at2(hours(51)), checked(t), isReady, isProven, known(one(hours(26))), known(proof(hours(27))),
				with(failing(scheduled(hours(50), hours(50.1)), backup.StoreFull, "the volume is full"))),
			want: outcome{Phase: backupv1.BackupFailed, Ready: "True Available: The last backup failed: the volume is full", Verified: restored, Events: []string{"Warning BackupFailed"}},
		},
		"TwoFailures": {
			reason: "Two periods without a backup are.",
			state: state(settle(t), at2(hours(51)), checked(t), isReady, isProven, known(one(hours(2))), known(proof(hours(3))),
				with(failing(scheduled(hours(26), hours(26.1)), backup.SourceUnreachable, "refused"), failing(scheduled(hours(50), hours(50.1)), backupv1.ReasonOutOfMemory, "the pod ran out of memory"))),
			want: outcome{Phase: backupv1.BackupFailed, Verified: restored, Events: []string{"Warning BackupFailed", "Warning BackupOverdue"},
				Ready: "False BackupOverdue: The newest good backup is older than two periods of the schedule: the pod ran out of memory"},
		},
		"HundredMissed": {
			reason: "None was made for a hundred days.",
			state:  state(settle(t), at2(hours(24*100)), checked(t), isReady, isProven, known(one(hours(2))), known(proof(hours(24*99)))),
			want: outcome{Phase: backupv1.BackupScheduled, Verified: restored, Events: []string{"Warning BackupOverdue"},
				Ready: "False BackupOverdue: The newest good backup is older than two periods of the schedule"},
		},
		"Recovered": {
			reason: "The next success clears it all.",
			state: state(settle(t), at2(hours(75)), checked(t), says(unready(backupv1.ReasonBackupOverdue, "x", born)), isProven, known(one(hours(2))), known(proof(hours(3))),
				known(func(o *backupv1.BackupObservation) { o.LastFailure = &backupv1.Failure{Time: *at(hours(50.1))} }),
				with(listing(scheduled(hours(74), hours(74.1)), entry(hours(74)), verified(entry(hours(2)), hours(3))))),
			want: outcome{Phase: backupv1.BackupScheduled, Ready: "True Available", Verified: restored, Events: []string{"Normal BackupSucceeded", "Normal Ready"}},
		},
		"Suspended": {
			reason: "Who holds the schedule is not told that backups are old.",
			state: state(params(func(p *backupv1.BackupParameters) { p.Suspend = true }), settle(t), at2(hours(24*30)), checked(t), isReady, isProven,
				known(one(hours(2))), known(proof(hours(3)))),
			want: outcome{Phase: backupv1.BackupSuspended, Ready: "True Available: The schedule is suspended", Verified: restored},
		},
		"Resumed": {
			reason: "What was missed meanwhile is not made up for.",
			state: state(params(func(p *backupv1.BackupParameters) { p.Suspend = true }), settle(t), params(func(p *backupv1.BackupParameters) { p.Suspend = false }),
				at2(hours(25)), checked(t), isReady, isProven, known(one(hours(2))), known(proof(hours(3)))),
			want: outcome{Phase: backupv1.BackupScheduled, Ready: "True Available", Verified: restored,
				Do: []string{"resume orders-dump", "resume orders-verify", "apply CronJob orders-dump", "apply CronJob orders-verify"}},
		},
		"Edited": {
			reason: "A CronJob that a user edited is set right, and one that is not wanted goes.",
			state: state(settle(t), checked(t), isReady, func(s *State) {
				s.CronJobs[0].Spec.ConcurrencyPolicy = "Allow"
				s.CronJobs[1].Name = "orders-other"
			}),
			want: outcome{Phase: backupv1.BackupScheduled, Ready: "True Available", Verified: noBackup,
				Do: []string{"apply CronJob orders-dump", "apply CronJob orders-verify", "remove orders-other"}},
		},
		"Opened": {
			reason: "A rule that is added to a policy, or has lost what it is bound to, is set right.",
			state: state(settle(t), checked(t), isReady, func(s *State) {
				s.Policy.Spec.Egress = append(s.Policy.Spec.Egress, networkingv1.NetworkPolicyEgressRule{})
				s.SourcePolicy.Spec.Egress[1].To = nil
			}),
			want: outcome{Phase: backupv1.BackupScheduled, Ready: "True Available", Verified: noBackup, Do: []string{"apply NetworkPolicy orders-dump-database", "apply NetworkPolicy orders-dump"}},
		},
		"Narrowed": {
			reason: "So is one that is bound to more.",
			state: state(settle(t), checked(t), isReady, func(s *State) {
				s.SourcePolicy.Spec.Egress[0].To = s.SourcePolicy.Spec.Egress[1].To
			}),
			want: outcome{Phase: backupv1.BackupScheduled, Ready: "True Available", Verified: noBackup, Do: []string{"apply NetworkPolicy orders-dump-database"}},
		},
		"SourceGone": {
			reason: "Pods that verify go on reaching the store alone, whatever an older release let them reach, and those at work their database.",
			state: state(settle(t), checked(t), isReady, func(s *State) {
				s.Policy.Spec = networkingv1.NetworkPolicySpec{PodSelector: s.Policy.Spec.PodSelector, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}}
				s.Source, s.Problem = resolve.Source{}, &resolve.Problem{Reason: backupv1.ReasonSecretNotFound, Message: "no Secret"}
			}),
			want: outcome{Phase: backupv1.BackupFailed, Ready: "False SecretNotFound: no Secret", Verified: noBackup, Events: []string{"Warning SecretNotFound"}, Do: []string{"apply NetworkPolicy orders-dump"}},
		},
		"StoreGone": {
			reason: "While the store is not known its policy stays as it is.",
			state: state(settle(t), checked(t), isReady, func(s *State) {
				s.Store, s.Source, s.Problem = resolve.Store{Configured: true}, resolve.Source{}, &resolve.Problem{Reason: backupv1.ReasonSecretNotFound, Message: "no Secret"}
			}),
			want: outcome{Phase: backupv1.BackupFailed, Ready: "False SecretNotFound: no Secret", Verified: noBackup, Events: []string{"Warning SecretNotFound"}},
		},
		"Moved": {
			reason: "A database that is somewhere else is let through before it is tried.",
			state: state(settle(t), checked(t), isReady, func(s *State) {
				s.Source.Hosts, s.Source.Print = []string{"orders-db.eu.example.com:6432"}, "source/2"
			}),
			want: outcome{Phase: backupv1.BackupScheduled, Ready: "True Available", Verified: noBackup, Do: []string{"apply NetworkPolicy orders-dump-database", "apply CronJob orders-dump", "apply CronJob orders-verify", "create " + checkName("orders", digestOf(t, state(func(s *State) { s.Source.Print = "source/2" })), 1)}},
		},
		"RunNow": {
			reason: "A new value starts a backup.",
			state:  state(settle(t), checked(t), isReady, annotated(backupv1.RunNowAnnotation, "a")),
			want:   outcome{Phase: backupv1.BackupScheduled, Ready: "True Available", Verified: noBackup, Do: []string{"create " + runName("orders", "a")}},
		},
		"RunNowLater": {
			reason: "But not beside another one.",
			state:  state(settle(t), checked(t), isReady, annotated(backupv1.RunNowAnnotation, "a"), with(scheduled(hours(0), time.Time{}))),
			want:   outcome{Phase: backupv1.BackupRunning, Ready: "True Available", Verified: noBackup},
		},
		"RunNowDone": {
			reason: "Once for each value, though the Job is gone.",
			state: state(settle(t), checked(t), isReady, annotated(backupv1.RunNowAnnotation, "a"),
				known(func(o *backupv1.BackupObservation) { o.RunNow = "a" })),
			want: outcome{Phase: backupv1.BackupScheduled, Ready: "True Available", Verified: noBackup},
		},
		"VerifyNow": {
			reason: "A new value starts a verification.",
			state: state(settle(t), at2(hours(4)), checked(t), isReady, isProven, known(one(hours(2))), known(proof(hours(3))),
				annotated(backupv1.VerifyNowAnnotation, "a")),
			want: outcome{Phase: backupv1.BackupScheduled, Ready: "True Available", Verified: restored, Do: []string{"create " + verifyNowName("orders", "a")}},
		},
		"VerifyNowOff": {
			reason: "Also where no schedule does: a user asks for it.",
			state: state(settle(t), at2(hours(4)), checked(t), isReady, isProven, known(one(hours(2))), known(proof(hours(3))),
				annotated(backupv1.VerifyNowAnnotation, "a"), func(s *State) { s.params().Verification.Enabled = new(false) }),
			want: outcome{Phase: backupv1.BackupScheduled, Ready: "True Available", Verified: restored, Do: []string{
				"create " + verifyNowName("orders", "a"), "remove orders-verify",
			}},
		},
		"Stuck": {
			reason: "A pod that does not start for long is told.",
			state: state(settle(t), at2(hours(2.1)), checked(t), isReady, with(func() workload.Run {
				r := scheduled(hours(2), time.Time{})
				r.PodFailure = "cannot be scheduled: Insufficient memory"
				return r
			}())),
			want: outcome{Phase: backupv1.BackupRunning, Verified: noBackup, Events: []string{"Warning PodNotStarted"},
				Ready: "False PodNotStarted: Job orders-backup-020000: the pod cannot be scheduled: Insufficient memory"},
		},
		"Physical": {
			reason: "Of a DatabaseCluster only the verification is ours.",
			state:  state(physical),
			want: outcome{Phase: backupv1.BackupPending, Ready: waiting, Verified: noBackup, Do: []string{
				"apply ServiceAccount orders-backup-dump", "apply NetworkPolicy orders-backup-dump", "apply CronJob orders-backup-verify",
				"create " + checkName("orders-backup", digestOf(t, state(physical)), 1),
			}},
		},
		"Copies": {
			reason: "Copies of MySQL are made as dumps are, by the Backup's own schedule.",
			state:  state(copied),
			want: outcome{Phase: backupv1.BackupPending, Ready: waiting, Verified: noBackup, Do: []string{
				"apply ServiceAccount orders-dump", "apply NetworkPolicy orders-dump-database", "apply NetworkPolicy orders-dump",
				"apply CronJob orders-dump", "apply CronJob orders-verify", "create " + checkName("orders", digestOf(t, state(copied)), 1),
			}},
		},
		"CopyNow": {
			reason: "And when a user asks for one.",
			state:  state(copied, settle(t), checked(t), annotated(backupv1.RunNowAnnotation, "a")),
			want:   outcome{Phase: backupv1.BackupScheduled, Ready: "True Available", Verified: noBackup, Do: []string{"create " + runName("orders", "a")}, Events: []string{"Normal Ready"}},
		},
		"PhysicalEarly": {
			reason: "Its CronJobs come once the database is ready.",
			state:  state(physical, func(s *State) { s.CronJobs = nil }),
			want: outcome{Phase: backupv1.BackupPending, Ready: "False CronJobNotFound: Waiting for the CronJobs of DatabaseCluster orders", Verified: noBackup,
				Events: []string{"Warning CronJobNotFound"}, Do: []string{"apply ServiceAccount orders-backup-dump", "apply NetworkPolicy orders-backup-dump"}},
		},
	}
	var seen []states.State
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := decide(t, tc.state)
			if diff := cmp.Diff(tc.want, outcomeOf(d)); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			setStatus(tc.state.Backup, &d)
			seen = append(seen, states.Of(t, name, expected(tc.state.Backup, tc.want), tc.state.Backup))
		})
	}
	for _, s := range seen {
		if k := states.Kstatus(t, s.Object); !s.Expect.Allows(k) {
			t.Errorf("%s is %s, and kstatus calls it %s", s.Name, s.Expect, k)
		}
	}
	states.Compare(t, "testdata/states.yaml", *update, seen)
}

// scheduled2 returns a verification of the CronJob.
func scheduled2(created, finished time.Time) workload.Run {
	r := run("orders-verify-1", backup.Verify, created, finished)
	r.Owner = "cronjob"
	return r
}

// encrypted turns encryption on.
func encrypted(s *State) {
	s.params().Encryption = &backupv1.Encryption{SecretRef: backupv1.SecretKey{Name: "key", Key: "key"}}
}

// unsealed adds plain backups from before encryption to the report of a run.
func unsealed(r workload.Run) workload.Run {
	r.Report.Catalog.Unsealed = 3
	return r
}

// attempted2 returns the n-th attempt of a run.
func attempted2(n int, r workload.Run) workload.Run {
	r.Attempt = n
	return r
}

// TestDecideSystems: a status describes the backups of one database, and lists others in the same
// place.
func TestDecideSystems(t *testing.T) {
	r := listing(scheduled(hours(2), hours(2.1)), entry(hours(2)))
	r.Report.Catalog.System = "7200"
	r.Report.Catalog.Others = []backup.System{{ID: "7100", Count: 3, First: hours(-40).Add(time.Millisecond), Last: hours(-22)}}
	got := decide(t, state(settle(t), at2(hours(3)), checked(t), with(r))).Observation
	want := []backupv1.BackupSystem{{SystemIdentifier: "7100", Count: 3, FirstRecoverableTime: *at(hours(-40)), LastBackupTime: *at(hours(-22))}}
	if diff := cmp.Diff(want, got.OtherSystems); diff != "" || got.SystemIdentifier != "7200" {
		t.Errorf("systems beside %s: -want, +got:\n%s", got.SystemIdentifier, diff)
	}
}

func TestDecideObservation(t *testing.T) {
	s := state(settle(t), at2(hours(3)), checked(t), with(
		listing(scheduled(hours(2), hours(2.1)), verified(entry(hours(2)), hours(2.2)), entry(hours(-22))),
	))
	d := decide(t, s)
	want := backupv1.BackupObservation{
		Phase: backupv1.BackupScheduled, Schedule: "0 2 * * *", LastScheduleTime: at(hours(2)), NextScheduleTime: at(hours(26)),
		LastSuccessfulTime: at(hours(2)), LastDuration: d.Observation.LastDuration, LastVerifiedTime: at(hours(2.2)), LastVerified: "20260301T020000Z",
		Size: d.Observation.Size, Count: 2, FirstRecoverableTime: at(hours(-22)), LastRecoverableTime: at(hours(2)), CatalogTime: at(hours(2.1)),
		Location: "team/shop/orders/logical", Checked: digestOf(t, s),
		Backups: []backupv1.BackupEntry{
			{ID: "20260301T020000Z", Time: *at(hours(2)), Size: 5 << 20, Verified: at(hours(2.2))},
			{ID: "20260228T020000Z", Time: *at(hours(-22)), Size: 5 << 20},
		},
	}
	if diff := cmp.Diff(want, d.Observation); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if got := d.Observation.Size.String(); got != "5Mi" {
		t.Errorf("want 5Mi, got %s", got)
	}
	if got := d.Observation.LastDuration.Duration; got != time.Minute {
		t.Errorf("want a minute, got %s", got)
	}
}

// TestDecidePeriods: a backup or verification that is not scheduled is not reported as overdue.
func TestDecidePeriods(t *testing.T) {
	const day = 24 * time.Hour
	cases := map[string]struct {
		reason string
		change func(*backupv1.BackupParameters)
		want   telemetry.Periods
	}{
		"Default":   {reason: "A backup a day, and a verification a week.", change: func(*backupv1.BackupParameters) {}, want: telemetry.Periods{Backup: day, Verification: 7 * day}},
		"TurnedOff": {reason: "A verification that is turned off is not waited for.", change: func(p *backupv1.BackupParameters) { p.Verification = &backupv1.Verification{Enabled: new(false)} }, want: telemetry.Periods{Backup: day}},
		"Suspended": {reason: "Nor for anything while all is suspended.", change: func(p *backupv1.BackupParameters) { p.Suspend = true }},
		"Asked":     {reason: "What is made when a user asks for it is verified by a schedule.", change: func(p *backupv1.BackupParameters) { p.Schedule = "" }, want: telemetry.Periods{Verification: 7 * day}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, decide(t, state(params(tc.change), settle(t))).Periods); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNoFlapping: messages contain neither times nor counts, so a lasting problem does not change
// its condition.
func TestNoFlapping(t *testing.T) {
	later := func(now time.Time) outcome {
		return outcomeOf(decide(t, state(settle(t), at2(now), checked(t), known(func(o *backupv1.BackupObservation) { o.LastSuccessfulTime = at(hours(2)) }),
			with(failing(scheduled(hours(26), hours(26.1)), backup.ToolFailed, "x")))))
	}
	one, two := later(hours(60)), later(hours(1000))
	if diff := cmp.Diff(one.Ready, two.Ready); diff != "" {
		t.Errorf("-earlier, +later:\n%s", diff)
	}
}
