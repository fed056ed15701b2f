package backup

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/controller/resolve"
	"github.com/storeplane/storeplane/internal/controller/workload"
)

// TestCopiesVolume: a copy has a volume of the size of the servers' own, unless the Backup sets one.
func TestCopiesVolume(t *testing.T) {
	cases := map[string]struct {
		reason string
		change func(*State)
		want   string
	}{
		"Cluster": {reason: "The copy is as large as what the servers' volumes hold.", change: func(*State) {}, want: "20Gi volume"},
		"Own":     {reason: "A user may know better.", change: params(func(p *backupv1.BackupParameters) { p.Verification.Storage = new(resource.MustParse("5Gi")) }), want: "5Gi volume"},
		"Unknown": {reason: "A cluster whose volumes do not exist yet.", change: func(s *State) { s.Cluster.Storage = resource.Quantity{} }, want: "10Gi of the node"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := state(copied, tc.change)
			for _, a := range []backup.Action{backup.Backup, backup.Verify} {
				pod, err := s.template(a)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tc.want, scratchOf(t, pod)); diff != "" {
					t.Errorf("%s: %s\n-want, +got:\n%s", a, tc.reason, diff)
				}
			}
		})
	}
}

func scratchOf(t *testing.T, pod corev1.PodTemplateSpec) string {
	t.Helper()
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.Name != "scratch":
		case v.Ephemeral != nil:
			return v.Ephemeral.VolumeClaimTemplate.Spec.Resources.Requests.Storage().String() + " volume"
		case v.EmptyDir != nil:
			return v.EmptyDir.SizeLimit.String() + " of the node"
		}
	}
	return ""
}

// TestCopiesPlace: copies that no DatabaseCluster could be filled from are not made.
func TestCopiesPlace(t *testing.T) {
	const want = "destination.type volume is not available with method physical and source.type mysql, since no DatabaseCluster can be filled from a volume claim with it: name an object store, or make a Backup of method logical"
	for name, tc := range map[string]struct {
		reason string
		state  *State
		want   string
	}{
		"Store":   {reason: "Servers read an object store.", state: state(copied)},
		"Volume":  {reason: "They cannot mount a volume.", state: state(copied, func(s *State) { s.Store.Destination.Type = backupv1.Volume }), want: want},
		"Dumps":   {reason: "The pods of a Restore can.", state: state(func(s *State) { s.Store.Destination.Type = backupv1.Volume })},
		"Cluster": {reason: "A repository of pgBackRest is the DatabaseCluster's business.", state: state(physical, func(s *State) { s.Store.Destination.Type = backupv1.Volume })},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if p := resolve.AsProblem(tc.state.checkPlace()); p != nil {
				got = p.Message
			}
			if got != tc.want {
				t.Errorf("%s\ncheckPlace(): want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

// TestCopiesPods: only the pods that copy and verify have a throw-away server. It is the MySQL of the cluster's version,
// with the resources that the Backup sets.
func TestCopiesPods(t *testing.T) {
	own := &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("3Gi")}}
	s := state(copied, params(func(p *backupv1.BackupParameters) { p.Resources = own }))
	for a, want := range map[backup.Action]bool{backup.Check: false, backup.Backup: true, backup.Verify: true, backup.Delete: false} {
		pod, err := s.template(a)
		if err != nil {
			t.Fatal(err)
		}
		task := backup.Task{}
		if err := json.Unmarshal([]byte(pod.Spec.Containers[0].Env[0].Value), &task); err != nil {
			t.Fatal(err)
		}
		if task.Action != a || task.Method != backupv1.Physical || task.For != "" {
			t.Errorf("%s: want a task of method physical, got %+v", a, task)
		}
		if got := len(pod.Spec.InitContainers) == 1; got != want {
			t.Errorf("%s: want a throw-away server: %t, got %t", a, want, got)
		}
		if !want {
			continue
		}
		c := pod.Spec.InitContainers[0]
		if c.Name != workload.ThrowAway || c.Image != "registry.example.com/storeplane/mysql:9.7" || c.Resources.Limits.Memory().String() != "3Gi" {
			t.Errorf("%s: want MySQL 9.7 with 3Gi of memory, got %s of %s with %s", a, c.Name, c.Image, c.Resources.Limits.Memory())
		}
		if beside := pod.Spec.Containers[0].Resources.Limits.Memory().String(); beside == "3Gi" {
			t.Errorf("%s: the container beside has the resources, too", a)
		}
	}
}

// TestCopiesLocation: copies are in a folder of their own.
func TestCopiesLocation(t *testing.T) {
	if diff := cmp.Diff("team/shop/orders/physical", location(state(copied))); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	if diff := cmp.Diff("shop.orders.backup", state(copied).escrowName()); diff != "" {
		t.Errorf("the copy of the key: -want, +got:\n%s", diff)
	}
}
