package restore

import (
	"encoding/json"
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/controller/resolve"
	"github.com/storeplane/storeplane/internal/controller/workload"
	"github.com/storeplane/storeplane/internal/images"
	"github.com/storeplane/storeplane/test/gitops/states"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func state(changes ...func(*State)) *State {
	s := &State{
		Restore: &backupv1.Restore{
			TypeMeta:   metav1.TypeMeta{APIVersion: backupv1.GroupVersion.String(), Kind: backupv1.RestoreKind},
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "back", UID: "restore", Generation: 1},
			Spec: backupv1.RestoreSpec{ForProvider: backupv1.RestoreParameters{
				Source: backupv1.RestoreSource{BackupRef: &backupv1.LocalReference{Name: "orders"}},
				Target: backupv1.Database{Type: backupv1.PostgreSQL, Databases: []string{"app"}, Connection: backupv1.Connection{SecretRef: &backupv1.ConnectionSecret{Name: "target", Key: "uri"}}},
			}},
		},
		Now:    noon,
		Images: images.Set{Registry: images.DefaultRegistry},
		From:   From{Namespace: "shop", Name: "orders", Version: "15"},
	}
	s.Target.Secret = "target"
	s.Store.Destination, s.Store.Secret = backupv1.Destination{Type: backupv1.S3, Bucket: "backups"}, "store"
	s.Restore.Status.ObservedGeneration = -1
	for _, c := range changes {
		c(s)
	}
	return s
}

func ran(change func(*workload.Run)) func(*State) {
	return func(s *State) {
		r := workload.Run{Job: "back-restore", Owner: "restore", Action: backup.Restore, Created: noon.Add(-time.Minute)}
		change(&r)
		s.Runs = []workload.Run{r}
	}
}

func known(o backupv1.RestoreObservation) func(*State) {
	return func(s *State) { s.Restore.Status.AtProvider = o }
}

func TestDecide(t *testing.T) {
	type want struct {
		Phase   backupv1.RestorePhase
		Ready   string
		Create  bool
		Over    bool
		Started bool
		Events  []string
	}
	ended := func(f *backup.Failure) func(*State) {
		return ran(func(r *workload.Run) {
			r.Ended, r.Finished, r.Failure = true, noon, f
			r.Report = &backup.Report{Action: backup.Restore, Finished: noon, Failure: f, Rows: 7, Databases: []string{"app"}, Backup: &backup.Entry{ID: "x", Time: noon.Add(-time.Hour)}}
		})
	}
	refused := &backup.Failure{Reason: backup.TargetNotEmpty, Message: "database app holds 3 tables"}
	cases := map[string]struct {
		reason string
		state  *State
		want   want
	}{
		"New": {reason: "It begins as soon as it can.", state: state(), want: want{Phase: backupv1.RestorePending, Ready: "False Waiting: Starting", Create: true}},
		"Missing": {reason: "What is missing is said in words.", state: state(func(s *State) {
			s.Problem = &resolve.Problem{Reason: backupv1.ReasonSecretNotFound, Message: "no Secret"}
		}), want: want{Phase: backupv1.RestorePending, Ready: "False SecretNotFound: no Secret", Events: []string{"Warning SecretNotFound"}}},
		"Physical": {reason: "A physical backup is restored by another way.", state: state(func(s *State) {
			s.Problem = &resolve.Problem{Reason: backupv1.ReasonMethodNotSupported, Message: "use x"}
		}), want: want{Phase: backupv1.RestoreFailed, Ready: "False MethodNotSupported: use x", Events: []string{"Warning MethodNotSupported"}}},
		"Taken":   {reason: "Nothing of another owner is overwritten.", state: state(func(s *State) { s.Taken = "Secret x" }), want: want{Phase: backupv1.RestoreFailed, Ready: "False AlreadyExists: Secret x exists already and is not this Restore's: delete it, or give the Restore another name", Events: []string{"Warning AlreadyExists"}}},
		"TooNew":  {reason: "There are no tools for it.", state: state(func(s *State) { s.Target.Version = "19" }), want: want{Phase: backupv1.RestoreFailed, Ready: "False VersionUnknown: cannot back up PostgreSQL 19: the newest version there are tools for is 18", Events: []string{"Warning VersionUnknown"}}},
		"Running": {reason: "From now on it cannot be changed.", state: state(ran(func(*workload.Run) {})), want: want{Phase: backupv1.RestoreRunning, Ready: "False Running: Restoring", Started: true, Events: []string{"Normal Running"}}},
		"NotUp":   {reason: "Why its pod does not come up is said.", state: state(ran(func(r *workload.Run) { r.PodFailure = "cannot pull image x" })), want: want{Phase: backupv1.RestoreRunning, Ready: "False Running: The pod cannot pull image x", Started: true, Events: []string{"Normal Running"}}},
		"Again": {reason: "Why it is tried again is said.", state: state(ran(func(r *workload.Run) {
			r.Failure = &backup.Failure{Reason: backupv1.ReasonPodTerminated, Message: "the pod was killed"}
		})), want: want{Phase: backupv1.RestoreRunning, Ready: "False Running: Restoring again after a failed attempt: the pod was killed", Started: true, Events: []string{"Normal Running"}}},
		"Completed":   {reason: "It is over.", state: state(ended(nil)), want: want{Phase: backupv1.RestoreCompleted, Ready: "True Available", Over: true, Started: true, Events: []string{"Normal Restored"}}},
		"Failed":      {reason: "In the tool's own words.", state: state(ended(refused)), want: want{Phase: backupv1.RestoreFailed, Ready: "False TargetNotEmpty: database app holds 3 tables", Over: true, Started: true, Events: []string{"Warning TargetNotEmpty"}}},
		"JobNotFound": {reason: "What has begun is never begun again.", state: state(known(backupv1.RestoreObservation{StartTime: at(noon), Job: "back-restore"})), want: want{Phase: backupv1.RestoreFailed, Ready: "False JobNotFound: the Job back-restore is gone and left no report", Over: true, Started: true, Events: []string{"Warning JobNotFound"}}},
		"Done":        {reason: "Nor what is over, though its Job is gone and its Secrets too.", state: state(known(backupv1.RestoreObservation{Phase: backupv1.RestoreCompleted, StartTime: at(noon), CompletionTime: at(noon)}), func(s *State) { s.Problem = &resolve.Problem{} }), want: want{Phase: backupv1.RestoreCompleted, Ready: "True Available", Over: true, Started: true, Events: []string{"Normal Restored"}}},
		"DoneBadly":   {reason: "However it ended.", state: state(known(backupv1.RestoreObservation{Phase: backupv1.RestoreFailed, StartTime: at(noon), CompletionTime: at(noon), Failure: &backupv1.Failure{Reason: "ToolFailed", Message: "x"}})), want: want{Phase: backupv1.RestoreFailed, Ready: "False ToolFailed: x", Over: true, Started: true, Events: []string{"Warning ToolFailed"}}},
		"OthersJob":   {reason: "A Job of another owner is none.", state: state(ran(func(r *workload.Run) { r.Owner = "x" })), want: want{Phase: backupv1.RestorePending, Ready: "False Waiting: Starting", Create: true}},
	}
	var seen []states.State
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d, err := Decide(tc.state)
			if err != nil {
				t.Fatal(err)
			}
			setStatus(tc.state.Restore, &d)
			seen = append(seen, states.Of(t, name, expected(tc.want.Phase), tc.state.Restore))
			got := want{Phase: d.Observation.Phase, Ready: say(d.Condition), Create: d.Create != nil, Over: d.Observation.CompletionTime != nil, Started: d.Observation.StartTime != nil}
			for _, e := range d.Events {
				got.Events = append(got.Events, string(e.Type)+" "+string(e.Reason))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	for _, st := range seen {
		if k := states.Kstatus(t, st.Object); !st.Expect.Allows(k) {
			t.Errorf("%s is %s, and kstatus calls it %s", st.Name, st.Expect, k)
		}
	}
	states.Compare(t, "testdata/states.yaml", *update, seen)
}

// expected returns how a Restore in a phase is to be classified.
func expected(p backupv1.RestorePhase) states.Expectation {
	switch p {
	case backupv1.RestoreCompleted:
		return states.Done
	case backupv1.RestoreFailed:
		return states.Failed
	case backupv1.RestorePending, backupv1.RestoreRunning:
	}
	return states.Working
}

func say(c xpv2.Condition) string {
	out := string(c.Status) + " " + string(c.Reason)
	if c.Message != "" {
		out += ": " + c.Message
	}
	return out
}

func TestCompleted(t *testing.T) {
	s := state(ran(func(r *workload.Run) {
		r.Ended, r.Finished = true, noon
		r.Report = &backup.Report{Action: backup.Restore, Finished: noon, Rows: 7, Databases: []string{"app"}, Backup: &backup.Entry{ID: "x", Time: noon.Add(-time.Hour)}}
	}))
	d, err := Decide(s)
	if err != nil {
		t.Fatal(err)
	}
	want := backupv1.RestoreObservation{
		Phase: backupv1.RestoreCompleted, Backup: "x", BackupTime: at(noon.Add(-time.Hour)), StartTime: at(noon.Add(-time.Minute)), CompletionTime: at(noon),
		Databases: []string{"app"}, Rows: 7, Job: "back-restore", Message: "Restored",
	}
	if diff := cmp.Diff(want, d.Observation); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

func TestJob(t *testing.T) {
	s := state(func(s *State) {
		p := &s.Restore.Spec.ForProvider
		p.Overwrite, p.Source.Time, p.Source.AcceptUnsealed = true, new(metav1.NewTime(noon)), true
		s.Target.Version = "17.2"
		s.From.Encryption = &backupv1.Encryption{SecretRef: backupv1.SecretKey{Name: "age", Key: "k"}}
	})
	job, err := s.job()
	if err != nil {
		t.Fatal(err)
	}
	pod := job.Spec.Template.Spec
	if got := pod.Containers[0].Image; got != "registry.example.com/storeplane/backup:postgresql-17" {
		t.Errorf("the tools are those of the newer server, got %s", got)
	}
	if *job.Spec.BackoffLimit != 0 {
		t.Errorf("one that overwrites is never begun again, got %d retries", *job.Spec.BackoffLimit)
	}
	if len(job.Spec.PodFailurePolicy.Rules) != 1 {
		t.Error("nor after a disruption")
	}
	if again, err := state().job(); err != nil || *again.Spec.BackoffLimit != 2 || len(again.Spec.PodFailurePolicy.Rules) != 2 {
		t.Errorf("one that finds its target empty goes on after a pod that was killed: got %+v, %v", again.Spec, err)
	}
	got := backup.Task{}
	if err := json.Unmarshal([]byte(pod.Containers[0].Env[0].Value), &got); err != nil {
		t.Fatal(err)
	}
	want := backup.Task{
		Action: backup.Restore, Method: backupv1.Logical, Namespace: "shop", Name: "orders", Database: backup.Database{Engine: backupv1.PostgreSQL, Databases: []string{"app"}},
		Destination: backupv1.Destination{Type: backupv1.S3, Bucket: "backups"}, Encrypted: true, Time: &noon, Overwrite: true,
		Restore: "shop/back", UID: "restore", AcceptUnsealed: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	var mounted []string
	for _, m := range pod.Containers[0].VolumeMounts {
		mounted = append(mounted, m.MountPath)
	}
	if diff := cmp.Diff([]string{"/tmp", backup.SourceDir, backup.StoreDir, "/etc/storeplane/encryption"}, mounted); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestGeneratedKey: the pod gets a generated key from a Secret that only this Restore uses, and
// that is deleted with it.
func TestGeneratedKey(t *testing.T) {
	s := state(func(s *State) { s.From.Key = []byte("k1") })
	d, err := Decide(s)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]byte{}
	for _, o := range d.Apply {
		if secret, ok := o.(*corev1.Secret); ok && metav1.IsControlledBy(secret, s.Restore) && secret.Namespace == "shop" {
			got[secret.Name] = secret.Data["key"]
		}
	}
	if diff := cmp.Diff(map[string][]byte{"back-restore-key": []byte("k1")}, got); diff != "" {
		t.Errorf("Secrets: -want, +got:\n%s", diff)
	}
	mounted := ""
	for _, v := range d.Create.Spec.Template.Spec.Volumes {
		if v.Name == backup.KeyVolume {
			mounted = v.Secret.SecretName
		}
	}
	if mounted != "back-restore-key" || !strings.Contains(d.Create.Spec.Template.Spec.Containers[0].Env[0].Value, `"encrypted":true`) {
		t.Errorf("The pod mounts %q, and its task is %s", mounted, d.Create.Spec.Template.Spec.Containers[0].Env[0].Value)
	}

	left := []*corev1.Secret{{ObjectMeta: metav1.ObjectMeta{Name: "back-restore-store"}}, {ObjectMeta: metav1.ObjectMeta{Name: "back-restore-key"}}}
	d, err = Decide(state(known(backupv1.RestoreObservation{Phase: backupv1.RestoreFailed, StartTime: at(noon), CompletionTime: at(noon), Failure: &backupv1.Failure{Reason: "ToolFailed"}}), func(s *State) { s.Left = left }))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(left, d.Remove); diff != "" {
		t.Errorf("What is removed at the end: -want, +got:\n%s", diff)
	}
}

// TestPolicy: the network policy lets the pods connect to the store and to the database into which
// they restore.
func TestPolicy(t *testing.T) {
	s := state(func(s *State) { s.Target.Hosts, s.Store.Authenticates = []string{"db.example.com:6432"}, true })
	d, err := Decide(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range d.Apply {
		np, ok := o.(*networkingv1.NetworkPolicy)
		if !ok {
			continue
		}
		want := networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{backupv1.RestoreLabel: "back"}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Egress:      slices.Concat([]networkingv1.NetworkPolicyEgressRule{build.ToDNS()}, build.ToStore("shop", "", true), build.ToHosts("shop", 5432, "db.example.com:6432")),
		}
		if diff := cmp.Diff(want, np.Spec); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
		return
	}
	t.Error("no policy closes the pods")
}
