package backup

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/instance"
)

// TestPhysicalArchive: any time up to the last archived one can be restored.
func TestPhysicalArchive(t *testing.T) {
	s := state(physical, settle(t), at2(hours(3)), with(listing(scheduled(hours(2), hours(2.1)), entry(hours(2)))), func(s *State) { s.Archived = hours(2.9) })
	if diff := cmp.Diff(at(hours(2.9)), decide(t, s).Observation.LastRecoverableTime); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestPhysicalGaps: times that cannot be restored are reported.
func TestPhysicalGaps(t *testing.T) {
	from, to := hours(1), hours(2.1)
	s := state(physical, settle(t), at2(hours(3)), with(listing(scheduled(hours(2), hours(2.1)), entry(hours(2)))), func(s *State) {
		s.Gaps = []instance.Gap{{From: &from, To: &to}, {From: &to}}
	})
	want := []backupv1.RecoveryGap{{From: at(from), To: at(to)}, {From: at(to)}}
	if diff := cmp.Diff(want, decide(t, s).Observation.Gaps); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestPhysicalOpenGap: while a gap has no end, the last time that can be restored is not one that was
// known before, and may lie in the gap.
func TestPhysicalOpenGap(t *testing.T) {
	from, to := hours(2.5), hours(2.8)
	cases := map[string]struct {
		reason   string
		engine   backupv1.Engine
		gaps     []instance.Gap
		archived time.Time
		want     *metav1.Time
	}{
		"None":     {reason: "It stays as it was known.", archived: hours(2.6), want: at(hours(2.9))},
		"Closed":   {reason: "What follows the gap can be restored.", gaps: []instance.Gap{{From: &from, To: &to}}, archived: hours(2.9), want: at(hours(2.9))},
		"Archived": {reason: "The servers know up to when the archive is whole.", gaps: []instance.Gap{{From: &from}}, archived: hours(2.5), want: at(hours(2.5))},
		"Older":    {reason: "Where they do not, the newest backup can be restored.", gaps: []instance.Gap{{}}, want: at(hours(2.1))},
		"MySQL":    {reason: "It ends with the last transaction before the gap.", engine: backupv1.MySQL, gaps: []instance.Gap{{From: &from}}, archived: hours(2.5), want: at(hours(2.5))},
		"Id":       {reason: "The newest backup of MySQL can be restored by its id, and not to the time of its end.", engine: backupv1.MySQL, gaps: []instance.Gap{{}}},
		"Failing":  {reason: "Binary logs have not been archived for long, and no gap is known.", engine: backupv1.MySQL, archived: hours(2.05), want: at(hours(2.05))},
		"Nothing":  {reason: "None has been archived.", engine: backupv1.MySQL},
		"Before":   {reason: "So can one that is newer than the last transaction before the gap.", engine: backupv1.MySQL, gaps: []instance.Gap{{From: &to}}, archived: hours(2.05), want: at(hours(2.05))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := entry(hours(2))
			e.Seconds = hours(2.1).Sub(hours(2)).Seconds()
			s := state(physical, settle(t), at2(hours(3)), with(listing(scheduled(hours(2), hours(2.1)), e)), func(s *State) {
				s.Gaps, s.Archived = tc.gaps, tc.archived
				s.Backup.Status.AtProvider.LastRecoverableTime = at(hours(2.9))
				if tc.engine != "" {
					s.params().Source.Type, s.BinaryLogs = tc.engine, true
				}
			})
			s.Runs[0].Report.Catalog.Latest = new(hours(2.9))
			if diff := cmp.Diff(tc.want, decide(t, s).Observation.LastRecoverableTime); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPhysicalLost: once the repository has lost all backups, no recoverable time is reported.
func TestPhysicalLost(t *testing.T) {
	from := hours(1)
	s := state(physical, settle(t), at2(hours(3)), with(listing(scheduled(hours(2), hours(2.1)), entry(hours(2)))), func(s *State) {
		s.Gaps = []instance.Gap{{From: &from}}
	})
	if o := decide(t, s).Observation; o.FirstRecoverableTime == nil {
		t.Error("before a gap there is something to restore: got no first time")
	}
	s.Lost, s.Gaps = true, []instance.Gap{{}}
	d := decide(t, s)
	if o := d.Observation; o.FirstRecoverableTime != nil || o.LastRecoverableTime != nil {
		t.Errorf("want no time to restore to, got %s to %s", o.FirstRecoverableTime, o.LastRecoverableTime)
	}
	if got := outcomeOf(d).Ready; got != "False NoBackup: The repository has lost all backups, and holds no new one yet" {
		t.Errorf("the Backup is ready: %s", got)
	}
}

// TestDerived: the pods of a verification are those of the DatabaseCluster's own backups, except
// for the task and the volumes for it.
func TestDerived(t *testing.T) {
	s := state(physical, params(func(p *backupv1.BackupParameters) { p.Verification.Query = "select true" }))
	pod, err := s.template(backup.Verify)
	if err != nil {
		t.Fatal(err)
	}
	c := pod.Spec.Containers[0]
	i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == backup.TaskVariable })
	for _, want := range []string{`"action":"verify"`, `"method":"physical"`, `"name":"orders"`, `"query":"select true"`} {
		if !strings.Contains(c.Env[i].Value, want) {
			t.Errorf("want %s in %s", want, c.Env[i].Value)
		}
	}
	j := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "scratch" })
	if got := pod.Spec.Volumes[j].Ephemeral.VolumeClaimTemplate.Spec.Resources.Requests.Storage().String(); got != "20Gi" {
		t.Errorf("want a volume of the DatabaseCluster's size, got %s", got)
	}
	if got := pod.Spec.InitContainers[0].Resources.Limits.Memory().String(); got != "1Gi" {
		t.Errorf("want a limit of 1Gi for the throw-away database, got %s", got)
	}
	if got := pod.Labels[backupv1.ActionLabel]; got != "verify" {
		t.Errorf("want the label of the action, got %s", got)
	}
}

// TestPhysicalFirst: until WAL is archived after the first backup there is no recoverable time.
func TestPhysicalFirst(t *testing.T) {
	r := listing(scheduled(hours(2), hours(2.1)), entry(hours(2)))
	r.Report.Catalog.Latest = new(hours(1.9))
	got := decide(t, state(physical, settle(t), at2(hours(3)), with(r))).Observation
	if got.LastRecoverableTime != nil {
		t.Errorf("LastRecoverableTime: got %s, want none before %s", got.LastRecoverableTime, got.FirstRecoverableTime)
	}
}
