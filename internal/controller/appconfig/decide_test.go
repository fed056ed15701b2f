package appconfig

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/internal/appconfig"
	"github.com/storeplane/storeplane/internal/health"
	"github.com/storeplane/storeplane/test/gitops/states"
)

// noon is the current time in the tests.
var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// ago returns the time some seconds before noon.
func ago(seconds int) *metav1.Time {
	return new(metav1.NewTime(noon.Add(-time.Duration(seconds) * time.Second)))
}

const (
	first  = "shop-config-0000000001"
	second = "shop-config-0000000002"
	third  = "shop-config-0000000003"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

var (
	web    = Key{Kind: configv1.Deployment, Name: "web"}
	worker = Key{Kind: configv1.Deployment, Name: "worker"}
	db     = Key{Kind: configv1.StatefulSet, Name: "db"}
	report = Key{Kind: configv1.CronJob, Name: "report"}
)

// given returns the state of an AppConfig that requests the second bundle while the first one runs
// on one Deployment.
func given(changes ...func(*State)) *State {
	a := &configv1.AppConfig{
		TypeMeta:   metav1.TypeMeta{APIVersion: configv1.GroupVersion.String(), Kind: configv1.AppConfigKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop", Generation: 1},
	}
	a.Status.ObservedGeneration = -1
	a.Spec.ForProvider = configv1.AppConfigParameters{Application: "shop", Rollout: &configv1.Rollout{ProgressDeadline: &metav1.Duration{Duration: time.Minute}}}
	a.Status.AtProvider = configv1.AppConfigObservation{Bundle: first, LastGood: first}
	s := &State{AppConfig: a, Now: noon, Wanted: second, Holds: first, Whole: map[string]bool{first: true, second: true}, Budget: 20}
	s.Targets = []Target{runs(web, first)}
	for _, c := range changes {
		c(s)
	}
	return s
}

// runs returns a healthy target that runs a bundle.
func runs(k Key, bundle string, changes ...func(*Target)) Target {
	t := Target{Key: k, Bundle: bundle, Annotated: bundle != "", Current: true, Health: health.Status{State: health.Healthy}}
	for _, c := range changes {
		c(&t)
	}
	return t
}

func sick(t *Target) {
	t.Health = health.Status{State: health.Progressing, Message: "Not all pods are ready"}
}

func targets(t ...Target) func(*State) { return func(s *State) { s.Targets = t } }

func known(change func(*configv1.AppConfigObservation)) func(*State) {
	return func(s *State) { change(&s.AppConfig.Status.AtProvider) }
}

func params(change func(*configv1.AppConfigParameters)) func(*State) {
	return func(s *State) { change(&s.AppConfig.Spec.ForProvider) }
}

// pending makes the second bundle the pending one, for some seconds.
func pending(seconds int) func(*State) {
	return known(func(o *configv1.AppConfigObservation) {
		o.Bundle, o.Pending, o.PendingSince, o.LastStarted = second, second, ago(seconds), ago(seconds)
	})
}

// recorded adds a target to the status, in a state for some seconds.
func recorded(k Key, bundle string, state configv1.TargetState, seconds int, message ...string) func(*State) {
	return known(func(o *configv1.AppConfigObservation) {
		o.Targets = append(o.Targets, configv1.TargetStatus{Kind: k.Kind, Name: k.Name, Bundle: bundle, State: state, Since: ago(seconds), Message: strings.Join(message, "")})
	})
}

// because sets the reason why the last recorded target is not changed.
func because(reason string) func(*State) {
	return known(func(o *configv1.AppConfigObservation) { o.Targets[len(o.Targets)-1].Reason = reason })
}

// closed returns the message about a target that does not allow the AppConfig.
func closed(allow string) string {
	return "It does not allow this AppConfig to change it: set its annotation config.example.com/appconfigs: " + allow
}

func failedSecond(o *configv1.AppConfigObservation) {
	o.Failed = &configv1.FailedRollout{Bundle: second, Message: "Deployment web: pod x: container a keeps failing"}
}

// summary is the outcome of a decision in short form.
type summary struct {
	Bundle, Pending, LastGood, Failed string
	Ready                             string
	Targets, Do, Events               []string
}

// expected returns how the state is to be classified: an AppConfig is working while there is
// something to do, or while a Secret is missing.
func expected(s *State, o summary) states.Expectation {
	acts := slices.ContainsFunc(o.Do, func(do string) bool { return do != "make" })
	switch {
	case strings.HasPrefix(o.Ready, "True") && !acts:
		return states.Done
	case strings.HasPrefix(o.Ready, "False Paused"):
		return states.Held
	}
	if s.Problem != nil && strings.HasPrefix(s.Problem.Reason, "Secret") {
		return states.Working
	}
	for _, final := range []string{"RolledBack", "RolloutFailed", "InvalidConfig"} {
		if strings.HasPrefix(o.Ready, "False "+final) {
			return states.Failed
		}
	}
	return states.Working
}

func summaryOf(d Decision) summary {
	o := summary{Bundle: d.Observation.Bundle, Pending: d.Observation.Pending, LastGood: d.Observation.LastGood}
	if f := d.Observation.Failed; f != nil {
		o.Failed = f.Bundle
	}
	for _, c := range d.Conditions {
		if c.Type == xpv2.TypeReady {
			o.Ready = fmt.Sprintf("%s %s", c.Status, c.Reason)
			if c.Message != "" {
				o.Ready += ": " + c.Message
			}
		}
	}
	for _, t := range d.Observation.Targets {
		o.Targets = append(o.Targets, t.Name+" "+string(t.State))
	}
	if d.Make {
		o.Do = append(o.Do, "make")
	}
	if d.Publish != "" {
		o.Do = append(o.Do, "publish "+d.Publish)
	}
	for _, k := range d.Patch {
		o.Do = append(o.Do, "patch "+k.Name)
	}
	for _, p := range d.Evict {
		o.Do = append(o.Do, "evict "+p.Name)
	}
	for _, e := range d.Events {
		o.Events = append(o.Events, string(e.Type)+" "+string(e.Reason))
	}
	return o
}

func TestDecide(t *testing.T) {
	rolling := "False RollingOut: Bundle " + second + " is rolled out"
	cases := map[string]struct {
		reason string
		state  *State
		want   summary
		again  time.Duration
	}{
		"New": {
			reason: "The first bundle is made, published and brought to the targets.",
			state: given(targets(runs(web, "")), known(func(o *configv1.AppConfigObservation) { *o = configv1.AppConfigObservation{} }), func(s *State) {
				s.Whole, s.Holds = nil, ""
			}),
			want: summary{Bundle: second, Pending: second, Ready: rolling + ": Deployment web is Progressing", Targets: []string{"web Progressing"}, Do: []string{"make", "publish " + second, "patch web"}, Events: []string{"Normal RollingOut"}},
		},
		"Same": {
			reason: "Nothing is asked for that does not run.",
			state:  given(func(s *State) { s.Wanted = first }, recorded(web, first, configv1.TargetUpdated, 60)),
			want:   summary{Bundle: first, LastGood: first, Ready: "True Available", Targets: []string{"web Updated"}},
		},
		"StatusLost": {
			reason: "What healthy targets run is good.",
			state:  given(known(func(o *configv1.AppConfigObservation) { *o = configv1.AppConfigObservation{} }), func(s *State) { s.Wanted = first }),
			want:   summary{Bundle: first, LastGood: first, Ready: "True Available", Targets: []string{"web Updated"}},
		},
		"Reader": {
			reason: "What reads the stable name runs it from the start.",
			state: given(targets(runs(web, "", func(t *Target) { t.Reader = true })), known(func(o *configv1.AppConfigObservation) { *o = configv1.AppConfigObservation{} }), func(s *State) {
				s.Holds = ""
			}),
			want: summary{Bundle: second, LastGood: second, Ready: "True Available", Targets: []string{"web Updated"}, Do: []string{"publish " + second}, Events: []string{"Normal RolledOut"}},
		},
		"ReaderOfOthers": {
			reason: "A stable name that is not the AppConfig's is not touched, and not read by us.",
			state:  given(targets(runs(web, "", func(t *Target) { t.Reader = true })), func(s *State) { s.Taken = "ConfigMap shop-config" }),
			want:   summary{Bundle: second, Pending: second, LastGood: first, Ready: rolling + ": Deployment web: It refers to ConfigMap shop-config, which is not this AppConfig's", Targets: []string{"web Conflict"}, Events: []string{"Normal RollingOut", "Warning AlreadyExists"}},
		},
		"Closed": {
			reason: "A workload that does not name the AppConfig is not changed, nor are its pods, and the others are.",
			state:  given(pending(5), targets(runs(db, second, func(t *Target) { t.Closed, t.Pods.Blocking = "shop", []Pod{{Name: "db-0"}} }), runs(worker, first))),
			want:   summary{Bundle: second, Pending: second, LastGood: first, Ready: rolling + ": Deployment worker is Progressing", Targets: []string{"db Forbidden", "worker Progressing"}, Do: []string{"publish " + second, "patch worker"}},
		},
		"ClosedAlone": {
			reason: "Where no workload allows it, the condition says what would.",
			state:  given(targets(runs(web, first, func(t *Target) { t.Closed = "other,shop" }))),
			want:   summary{Bundle: second, Pending: second, LastGood: first, Ready: rolling + ": Deployment web: It does not allow this AppConfig to change it: set its annotation config.example.com/appconfigs: other,shop", Targets: []string{"web Forbidden"}, Do: []string{"publish " + second}, Events: []string{"Normal RollingOut"}},
		},
		"Invalid": {
			reason: "What cannot be made replaces nothing.",
			state: given(recorded(web, first, configv1.TargetUpdated, 60), func(s *State) {
				s.Wanted, s.Problem = "", &appconfig.Problem{Reason: configv1.ReasonSecretNotFound, Message: "there is no Secret db"}
			}),
			want: summary{Bundle: first, LastGood: first, Ready: "False InvalidConfig: there is no Secret db", Targets: []string{"web Updated"}, Events: []string{"Warning InvalidConfig"}},
		},
		"InvalidTemplate": {
			reason: "Nor does it wait for what only an edit corrects.",
			state: given(recorded(web, first, configv1.TargetUpdated, 60), func(s *State) {
				s.Wanted, s.Problem = "", &appconfig.Problem{Reason: configv1.ReasonInvalidTemplate, Message: "config a: no such function"}
			}),
			want: summary{
				Bundle: first, LastGood: first, Ready: "False InvalidConfig: config a: no such function", Targets: []string{"web Updated"},
				Events: []string{"Warning InvalidConfig"},
			},
		},
		"Change": {
			reason: "A change starts at once.",
			state:  given(),
			want:   summary{Bundle: second, Pending: second, LastGood: first, Ready: rolling + ": Deployment web is Progressing", Targets: []string{"web Progressing"}, Do: []string{"publish " + second, "patch web"}, Events: []string{"Normal RollingOut"}},
			again:  glance,
		},
		"Paused": {
			reason: "Unless it is held back.",
			state:  given(params(func(p *configv1.AppConfigParameters) { p.Rollout.Pause = true }), recorded(web, first, configv1.TargetUpdated, 60)),
			want:   summary{Bundle: first, LastGood: first, Ready: "False Paused: rollout.pause holds bundle " + second + " back", Targets: []string{"web Updated"}},
		},
		"Frozen": {
			reason: "Or may not.",
			state:  given(func(s *State) { s.Frozen, s.Holds = true, "" }, recorded(web, first, configv1.TargetUpdated, 60)),
			want:   summary{Bundle: first, LastGood: first, Ready: "False Paused: The management policies hold bundle " + second + " back", Targets: []string{"web Updated"}},
		},
		"SoonAfter": {
			reason: "Or another one was just before: then more may come.",
			state:  given(known(func(o *configv1.AppConfigObservation) { o.LastStarted = ago(10) }), recorded(web, first, configv1.TargetUpdated, 10)),
			want:   summary{Bundle: first, LastGood: first, Ready: "False Debouncing: Bundle " + second + " waits until no more edits come", Targets: []string{"web Updated"}},
			again:  quiet,
		},
		"MoreCome": {
			reason: "Each one is waited for.",
			state: given(known(func(o *configv1.AppConfigObservation) {
				o.LastStarted, o.Debouncing = ago(40), &configv1.Debouncing{Bundle: third, LastChangeTime: *ago(4), FirstChangeTime: *ago(20)}
			}), recorded(web, first, configv1.TargetUpdated, 10)),
			want:  summary{Bundle: first, LastGood: first, Ready: "False Debouncing: Bundle " + second + " waits until no more edits come", Targets: []string{"web Updated"}},
			again: quiet,
		},
		"NoMoreCome": {
			reason: "Until none comes.",
			state: given(known(func(o *configv1.AppConfigObservation) {
				o.LastStarted, o.Debouncing = ago(10), &configv1.Debouncing{Bundle: second, LastChangeTime: *ago(5), FirstChangeTime: *ago(9)}
			})),
			want:  summary{Bundle: second, Pending: second, LastGood: first, Ready: rolling + ": Deployment web is Progressing", Targets: []string{"web Progressing"}, Do: []string{"publish " + second, "patch web"}, Events: []string{"Normal RollingOut"}},
			again: glance,
		},
		"TooManyCome": {
			reason: "Or for a minute.",
			state: given(known(func(o *configv1.AppConfigObservation) {
				o.LastStarted, o.Debouncing = ago(70), &configv1.Debouncing{Bundle: third, LastChangeTime: *ago(1), FirstChangeTime: *ago(60)}
			})),
			want:  summary{Bundle: second, Pending: second, LastGood: first, Ready: rolling + ": Deployment web is Progressing", Targets: []string{"web Progressing"}, Do: []string{"publish " + second, "patch web"}, Events: []string{"Normal RollingOut"}},
			again: glance,
		},
		"Progressing": {
			reason: "The gate waits.",
			state:  given(pending(10), recorded(web, second, configv1.TargetProgressing, 10), targets(runs(web, second, sick)), func(s *State) { s.Holds = second }),
			want:   summary{Bundle: second, Pending: second, LastGood: first, Ready: rolling + ": Deployment web: Not all pods are ready", Targets: []string{"web Progressing"}},
			again:  glance,
		},
		"Unproven": {
			reason: "A pod that no probe asks is waited for a little longer.",
			state:  given(pending(10), recorded(web, second, configv1.TargetProgressing, 10), targets(runs(web, second, func(t *Target) { t.Pods.Unproven = true })), func(s *State) { s.Holds = second }),
			want:   summary{Bundle: second, Pending: second, LastGood: first, Ready: rolling + ": Deployment web is Progressing", Targets: []string{"web Progressing"}},
			again:  glance,
		},
		"Good": {
			reason: "And then the bundle is good. CronJobs come after.",
			state:  given(pending(10), recorded(web, second, configv1.TargetProgressing, 10), targets(runs(web, second), runs(report, first)), func(s *State) { s.Holds = second }),
			want:   summary{Bundle: second, LastGood: second, Ready: "False RollingOut: CronJob report is Progressing", Targets: []string{"web Updated", "report Progressing"}, Do: []string{"patch report"}, Events: []string{"Normal RolledOut"}},
		},
		"Crash": {
			reason: "What crashes is taken back at once.",
			state:  given(pending(10), recorded(web, second, configv1.TargetProgressing, 10), targets(runs(web, second, sick, func(t *Target) { t.Pods.Fault = &Fault{Pod: "x", Message: "container a keeps failing"} })), func(s *State) { s.Holds = second }),
			want: summary{Bundle: first, LastGood: first, Failed: second, Ready: "False RolledBack: Bundle " + second + " failed, and " + first + " was put back: Deployment web: pod x: container a keeps failing", Targets: []string{"web Progressing"},
				Do: []string{"publish " + first, "patch web"}, Events: []string{"Warning RolledBack"}},
			again: glance,
		},
		"CrashLate": {
			reason: "What may pass is waited for.",
			state:  given(pending(10), recorded(web, second, configv1.TargetProgressing, 10), targets(runs(web, second, sick, func(t *Target) { t.Pods.Fault = &Fault{Pod: "x", Message: "is not ready", Late: true} })), func(s *State) { s.Holds = second }),
			want:   summary{Bundle: second, Pending: second, LastGood: first, Ready: rolling + ": Deployment web: Not all pods are ready", Targets: []string{"web Progressing"}},
			again:  glance,
		},
		"Deadline": {
			reason: "Until the deadline.",
			state:  given(pending(90), recorded(web, second, configv1.TargetProgressing, 60), targets(runs(web, second, sick)), func(s *State) { s.Holds = second }),
			want: summary{Bundle: first, LastGood: first, Failed: second, Ready: "False RolledBack: Bundle " + second + " failed, and " + first + " was put back: Deployment web exceeded its progress deadline: Not all pods are ready", Targets: []string{"web Progressing"},
				Do: []string{"publish " + first, "patch web"}, Events: []string{"Warning RolledBack"}},
			again: glance,
		},
		"SlowProgress": {
			reason: "Which pods that become ready put off.",
			state:  given(pending(90), recorded(web, second, configv1.TargetProgressing, 60), targets(runs(web, second, sick, func(t *Target) { t.Pods.LastReady = ago(20).Time })), func(s *State) { s.Holds = second }),
			want:   summary{Bundle: second, Pending: second, LastGood: first, Ready: rolling + ": Deployment web: Not all pods are ready", Targets: []string{"web Progressing"}},
			again:  glance,
		},
		"NoRollback": {
			reason: "Nothing is rolled back where that is turned off.",
			state:  given(pending(90), params(func(p *configv1.AppConfigParameters) { p.Rollout.AutoRollback = new(false) }), recorded(web, second, configv1.TargetProgressing, 60), targets(runs(web, second, sick), runs(worker, first)), func(s *State) { s.Holds = second }),
			want:   summary{Bundle: second, Pending: second, LastGood: first, Failed: second, Ready: "False RolloutFailed: Bundle " + second + " failed: Deployment web exceeded its progress deadline: Not all pods are ready", Targets: []string{"web Failed", "worker Waiting"}, Events: []string{"Warning RolloutFailed"}},
		},
		"Recovered": {
			reason: "If it becomes healthy after all, the rollout goes on.",
			state:  given(pending(90), known(failedSecond), recorded(web, second, configv1.TargetFailed, 60), targets(runs(web, second), runs(worker, first)), func(s *State) { s.Holds = second }),
			want:   summary{Bundle: second, Pending: second, LastGood: first, Ready: rolling + ": Deployment worker is Progressing", Targets: []string{"web Updated", "worker Progressing"}, Do: []string{"patch worker"}},
			again:  glance,
		},
		"NotAgain": {
			reason: "What has failed is not tried again.",
			state:  given(known(failedSecond), recorded(web, first, configv1.TargetUpdated, 60)),
			want:   summary{Bundle: first, LastGood: first, Failed: second, Ready: "False RolledBack: Bundle " + second + " failed, and " + first + " was put back: Deployment web: pod x: container a keeps failing", Targets: []string{"web Updated"}},
		},
		"ChangedBack": {
			reason: "Once what runs is asked for, the failure is forgotten.",
			state:  given(known(failedSecond), recorded(web, first, configv1.TargetUpdated, 60), func(s *State) { s.Wanted = first }),
			want:   summary{Bundle: first, LastGood: first, Ready: "True Available", Targets: []string{"web Updated"}},
		},
		"Sequential": {
			reason: "One after the other.",
			state:  given(params(func(p *configv1.AppConfigParameters) { p.Rollout.Order = configv1.Sequential }), targets(runs(web, first), runs(worker, first))),
			want:   summary{Bundle: second, Pending: second, LastGood: first, Ready: rolling + ": Deployment web is Progressing", Targets: []string{"web Progressing", "worker Waiting"}, Do: []string{"publish " + second, "patch web"}, Events: []string{"Normal RollingOut"}},
			again:  glance,
		},
		"Budget": {
			reason: "No more at a time than the namespace may, over all AppConfigs.",
			state: given(targets(runs(web, first), runs(worker, first)), func(s *State) {
				s.Budget, s.Others = 2, []Other{{Name: "other", Since: noon.Add(-time.Minute), Progressing: []Key{{Kind: configv1.Deployment, Name: "x"}}}}
			}),
			want:  summary{Bundle: second, Pending: second, LastGood: first, Ready: rolling + ": Deployment web is Progressing", Targets: []string{"web Progressing", "worker Waiting"}, Do: []string{"publish " + second, "patch web"}, Events: []string{"Normal RollingOut"}},
			again: glance,
		},
		"OtherFirst": {
			reason: "One AppConfig after the other on one workload.",
			state: given(func(s *State) {
				s.Others = []Other{{Name: "other", Since: noon.Add(-time.Minute), Waiting: []Key{web}}}
			}),
			want:  summary{Bundle: second, Pending: second, LastGood: first, Ready: rolling + ": Deployment web: Waiting for AppConfig other", Targets: []string{"web Waiting"}, Do: []string{"publish " + second}, Events: []string{"Normal RollingOut"}},
			again: glance,
		},
		"PausedDeployment": {
			reason: "A paused Deployment is not waited for, if others prove the bundle.",
			state:  given(pending(10), recorded(web, second, configv1.TargetProgressing, 10), targets(runs(web, second), runs(worker, first, func(t *Target) { t.Paused = true })), func(s *State) { s.Holds = second }),
			want:   summary{Bundle: second, LastGood: second, Ready: "True Available: Deployment worker is paused, and gets the bundle once it is resumed", Targets: []string{"web Updated", "worker Paused"}, Events: []string{"Normal RolledOut"}},
		},
		"NobodyProves": {
			reason: "Where none can be reached nothing is proven.",
			state:  given(pending(10), targets(runs(web, first, func(t *Target) { t.Missing = true })), func(s *State) { s.Holds = second }),
			want:   summary{Bundle: second, Pending: second, LastGood: first, Ready: rolling + ": Deployment web is Missing", Targets: []string{"web Missing"}},
		},
		"NoTargets": {
			reason: "Without any there is no target to wait for.",
			state:  given(targets()),
			want:   summary{Bundle: second, LastGood: second, Ready: "True Available: There are no targets", Do: []string{"publish " + second}, Events: []string{"Normal RolledOut"}},
		},
		"Forbidden": {
			reason: "One that may not be changed is told, and tried again.",
			state:  given(known(func(o *configv1.AppConfigObservation) { o.Bundle, o.LastGood = second, second }), recorded(web, first, configv1.TargetForbidden, 60, "The API server forbids the change: no"), because(configv1.ReasonForbidden), func(s *State) { s.Holds = second }),
			want:   summary{Bundle: second, LastGood: second, Ready: "False TargetsUnavailable: Deployment web: The API server forbids the change: no", Targets: []string{"web Forbidden"}, Do: []string{"patch web"}, Events: []string{"Warning TargetsUnavailable"}},
		},
		"ForbiddenStill": {
			reason: "What the API server forbids is not waited for: a bundle does not hang on it.",
			state: given(pending(10), recorded(web, first, configv1.TargetForbidden, 60, "The API server forbids the change: no"), because(configv1.ReasonForbidden), recorded(worker, second, configv1.TargetProgressing, 10),
				targets(runs(web, first), runs(worker, second)), func(s *State) { s.Holds = second }),
			want: summary{Bundle: second, LastGood: second, Ready: "False TargetsUnavailable: Deployment web: The API server forbids the change: no", Targets: []string{"web Forbidden", "worker Updated"}, Do: []string{"patch web"}, Events: []string{"Normal RolledOut", "Warning TargetsUnavailable"}},
		},
		"ForbiddenReworded": {
			reason: "Whether a change was refused is in the reason: another version of the provider may have written another message.",
			state: given(pending(10), recorded(web, first, configv1.TargetForbidden, 60, "Not permitted"), because(configv1.ReasonForbidden), recorded(worker, second, configv1.TargetProgressing, 10),
				targets(runs(web, first), runs(worker, second)), func(s *State) { s.Holds = second }),
			want: summary{Bundle: second, LastGood: second, Ready: "False TargetsUnavailable: Deployment web: Not permitted", Targets: []string{"web Forbidden", "worker Updated"}, Do: []string{"patch web"}, Events: []string{"Normal RolledOut", "Warning TargetsUnavailable"}},
		},
		"NameFreedReworded": {
			reason: "Nor is the message read of one that referred to the stable name.",
			state: given(pending(10), recorded(web, first, configv1.TargetConflict, 60, "Its ConfigMap shop-config is another client's"), because(configv1.ReasonAlreadyExists), recorded(worker, second, configv1.TargetProgressing, 10),
				targets(runs(web, "", func(t *Target) { t.Reader = true }), runs(worker, second)), func(s *State) { s.Holds = second }),
			want:  summary{Bundle: second, Pending: second, LastGood: first, Ready: rolling + ": Deployment web is Progressing", Targets: []string{"web Progressing", "worker Updated"}, Do: []string{"patch web"}},
			again: glance,
		},
		"ForbiddenWithoutReason": {
			reason: "A state without a reason is of a version before it had one: it is waited for, which is the safe side.",
			state: given(pending(10), recorded(web, first, configv1.TargetForbidden, 60, "The API server forbids the change: no"), recorded(worker, second, configv1.TargetProgressing, 10),
				targets(runs(web, first), runs(worker, second)), func(s *State) { s.Holds = second }),
			want:  summary{Bundle: second, Pending: second, LastGood: first, Ready: rolling + ": Deployment web is Progressing", Targets: []string{"web Progressing", "worker Updated"}, Do: []string{"patch web"}},
			again: glance,
		},
		"Opened": {
			reason: "One that did not allow the AppConfig, and does by now, has not proven the bundle: it gets it within the gate.",
			state: given(pending(10), recorded(web, "", configv1.TargetForbidden, 60, closed("shop")), because(configv1.ReasonNotAllowed), recorded(worker, second, configv1.TargetProgressing, 10),
				targets(runs(web, first), runs(worker, second)), func(s *State) { s.Holds = second }),
			want:  summary{Bundle: second, Pending: second, LastGood: first, Ready: rolling + ": Deployment web is Progressing", Targets: []string{"web Progressing", "worker Updated"}, Do: []string{"patch web"}},
			again: glance,
		},
		"OpenedLater": {
			reason: "Until it is its turn it waits, and the bundle is not good before.",
			state: given(pending(10), recorded(web, "", configv1.TargetForbidden, 60, closed("shop")), because(configv1.ReasonNotAllowed), recorded(worker, second, configv1.TargetProgressing, 10),
				targets(runs(web, first), runs(worker, second)), func(s *State) {
					s.Holds = second
					s.Others = []Other{{Name: "other", Since: noon.Add(-time.Minute), Waiting: []Key{web}}}
				}),
			want:  summary{Bundle: second, Pending: second, LastGood: first, Ready: rolling + ": Deployment web: Waiting for AppConfig other", Targets: []string{"web Waiting", "worker Updated"}},
			again: glance,
		},
		"OpenedAndSick": {
			reason: "If it fails there, all are rolled back.",
			state: given(pending(90), recorded(web, second, configv1.TargetProgressing, 60), recorded(worker, second, configv1.TargetUpdated, 80),
				targets(runs(web, second, sick), runs(worker, second)), func(s *State) { s.Holds = second }),
			want: summary{Bundle: first, LastGood: first, Failed: second, Ready: "False RolledBack: Bundle " + second + " failed, and " + first + " was put back: Deployment web exceeded its progress deadline: Not all pods are ready", Targets: []string{"web Progressing", "worker Progressing"},
				Do: []string{"publish " + first, "patch web", "patch worker"}, Events: []string{"Warning RolledBack"}},
			again: glance,
		},
		"RefusedBefore": {
			reason: "That another bundle was refused there says nothing of the next one, which is not good before it was tried.",
			state: given(params(func(p *configv1.AppConfigParameters) { p.Rollout.Order = configv1.Sequential }),
				recorded(web, first, configv1.TargetUpdated, 60), recorded(worker, "", configv1.TargetConflict, 60, "Its fields belong to kubectl"), because(configv1.ReasonFieldManagerConflict),
				targets(runs(web, first), runs(worker, "", func(t *Target) {
					t.Refused = &Refusal{State: configv1.TargetConflict, Reason: configv1.ReasonFieldManagerConflict, Message: "Its fields belong to kubectl"}
				}))),
			want:  summary{Bundle: second, Pending: second, LastGood: first, Ready: rolling + ": Deployment web is Progressing", Targets: []string{"web Progressing", "worker Waiting"}, Do: []string{"publish " + second, "patch web"}, Events: []string{"Normal RollingOut"}},
			again: glance,
		},
		"NameFreed": {
			reason: "Nor has one that refers to the stable name, since that is this AppConfig's.",
			state: given(pending(10), recorded(web, first, configv1.TargetConflict, 60, "It refers to ConfigMap shop-config, which is not this AppConfig's"), because(configv1.ReasonAlreadyExists), recorded(worker, second, configv1.TargetProgressing, 10),
				targets(runs(web, "", func(t *Target) { t.Reader = true }), runs(worker, second)), func(s *State) { s.Holds = second }),
			want:  summary{Bundle: second, Pending: second, LastGood: first, Ready: rolling + ": Deployment web is Progressing", Targets: []string{"web Progressing", "worker Updated"}, Do: []string{"patch web"}},
			again: glance,
		},
		"Drift": {
			reason: "What was taken away is put back.",
			state:  given(func(s *State) { s.Wanted = first }, recorded(web, first, configv1.TargetUpdated, 60), targets(runs(web, first, func(t *Target) { t.Current = false }))),
			want:   summary{Bundle: first, LastGood: first, Ready: "False RollingOut: Deployment web is Progressing", Targets: []string{"web Progressing"}, Do: []string{"patch web"}},
			again:  glance,
		},
		"SickLater": {
			reason: "What becomes of a target later is not its configuration's.",
			state:  given(func(s *State) { s.Wanted = first }, recorded(web, first, configv1.TargetUpdated, 60), targets(runs(web, first, sick))),
			want:   summary{Bundle: first, LastGood: first, Ready: "True Available", Targets: []string{"web Updated"}},
		},
		"Owner": {
			reason: "The owner changes the targets.",
			state:  given(params(func(p *configv1.AppConfigParameters) { p.Rollout.By = configv1.ByOwner })),
			want:   summary{Bundle: second, Pending: second, LastGood: first, Ready: rolling + ": Deployment web: Waiting for its owner to bring the bundle", Targets: []string{"web Waiting"}, Do: []string{"publish " + second}, Events: []string{"Normal RollingOut"}},
		},
		"Blocked": {
			reason: "A StatefulSet's pod that is in the way is deleted.",
			state: given(known(failedSecond), targets(runs(Key{Kind: configv1.StatefulSet, Name: "db"}, first, sick, func(t *Target) { t.Pods.Blocking = []Pod{{Name: "db-0"}} })),
				recorded(Key{Kind: configv1.StatefulSet, Name: "db"}, first, configv1.TargetProgressing, 300)),
			want:  summary{Bundle: first, LastGood: first, Failed: second, Ready: "False RolledBack: Bundle " + second + " failed, and " + first + " was put back: Deployment web: pod x: container a keeps failing", Targets: []string{"db Progressing"}, Do: []string{"evict db-0"}},
			again: glance,
		},
	}
	var seen []states.State
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := Decide(tc.state)
			status := tc.state.AppConfig.DeepCopy()
			setStatus(status, &d)
			seen = append(seen, states.Of(t, name, expected(tc.state, tc.want), status))
			if diff := cmp.Diff(tc.want, summaryOf(d)); diff != "" {
				t.Errorf("%s\nDecide(...): -want, +got:\n%s", tc.reason, diff)
			}
			if tc.again != 0 && d.Again != tc.again {
				t.Errorf("%s\nDecide(...): want a look in %s, got %s", tc.reason, tc.again, d.Again)
			}
			// Decide with the recorded status must reach the same decision.
			next := *tc.state
			next.AppConfig = tc.state.AppConfig.DeepCopy()
			next.AppConfig.Status.AtProvider = d.Observation
			next.AppConfig.SetConditions(d.Conditions...)
			if again := Decide(&next); again.Observation.Bundle != d.Observation.Bundle || len(again.Events) > len(d.Events) {
				t.Errorf("%s\nDecide(...) again: %+v after %+v", tc.reason, summaryOf(again), summaryOf(d))
			}
		})
	}
	for _, s := range seen {
		if k := states.Kstatus(t, s.Object); !s.Expect.Allows(k) {
			t.Errorf("%s is %s, and kstatus calls it %s", s.Name, s.Expect, k)
		}
	}
	states.Compare(t, "testdata/states.yaml", *update, seen)
}
