package backup

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/controller/kube"
	"github.com/storeplane/storeplane/internal/instance"
)

// TestArchived: what a DatabaseCluster archives belongs to the Backups whose folder it is in.
func TestArchived(t *testing.T) {
	want := hours(2)
	for name, tc := range map[string]struct {
		reason string
		engine backupv1.Engine
		method backupv1.Method
		owner  string
		want   time.Time
	}{
		"Repository":  {reason: "All physical backups of PostgreSQL are in the repository that WAL is archived to.", engine: backupv1.PostgreSQL, method: backupv1.Physical, want: want},
		"Own":         {reason: "Binary logs are beside the cluster's own backups.", engine: backupv1.MySQL, method: backupv1.Physical, owner: "1", want: want},
		"Users":       {reason: "A Backup of a user has a folder without binary logs.", engine: backupv1.MySQL, method: backupv1.Physical},
		"Predecessor": {reason: "That of a cluster of the same name that is gone has those of its time.", engine: backupv1.MySQL, method: backupv1.Physical, owner: "0"},
		"Dumps":       {reason: "A dump restores to its own time.", engine: backupv1.MySQL, method: backupv1.Logical, owner: "1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := state(func(s *State) {
				p := s.params()
				p.Method, p.Source.Type = tc.method, tc.engine
				p.Source.Connection = backupv1.Connection{DatabaseClusterRef: &backupv1.LocalReference{Name: "ledger"}}
				if tc.owner != "" {
					s.Backup.OwnerReferences = []metav1.OwnerReference{{
						APIVersion: appsv1.GroupVersion.String(), Kind: appsv1.DatabaseClusterKind, Name: "ledger", UID: types.UID("uid-" + tc.owner), Controller: new(true),
					}}
				}
			})
			if err := archivedBy(t, s.Backup.Namespace, string(tc.engine), want).archived(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if want := tc.engine == backupv1.MySQL && !tc.want.IsZero(); s.BinaryLogs != want {
				t.Errorf("%s\narchived(): binary logs beside the backups: %t, want %t", tc.reason, s.BinaryLogs, want)
			}
			if diff := cmp.Diff(tc.want, s.Archived); diff != "" {
				t.Errorf("%s\narchived(): time of the archive: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestArchivedUnknown: without a report of the servers that can be read, what was known of MySQL's archive stays. A report
// without an archive makes nothing of it.
func TestArchivedUnknown(t *testing.T) {
	known := hours(2)
	for name, tc := range map[string]struct {
		reason  string
		reports []string
		want    time.Time
	}{
		"None":     {reason: "The ConfigMap was deleted.", want: known},
		"Damaged":  {reason: "It was written to by hand.", reports: []string{"{"}, want: known},
		"Begins":   {reason: "What was known is of dumps, before the method was changed.", reports: []string{"{}"}},
		"Archives": {reason: "Nothing can be restored yet.", reports: []string{`{"archive":{}}`}},
	} {
		t.Run(name, func(t *testing.T) {
			s := state(func(s *State) {
				p := s.params()
				p.Method, p.Source.Type = backupv1.Physical, backupv1.MySQL
				p.Source.Connection = backupv1.Connection{DatabaseClusterRef: &backupv1.LocalReference{Name: "ledger"}}
				s.Backup.OwnerReferences = []metav1.OwnerReference{{
					APIVersion: appsv1.GroupVersion.String(), Kind: appsv1.DatabaseClusterKind, Name: "ledger", UID: "uid-1", Controller: new(true),
				}}
				s.Backup.Status.AtProvider.LastRecoverableTime = at(known)
			})
			if err := reportedBy(t, s.Backup.Namespace, string(backupv1.MySQL), tc.reports...).archived(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if !s.Archived.Equal(tc.want) || !s.BinaryLogs {
				t.Errorf("%s\narchived(): until %s, binary logs %t, want %s", tc.reason, s.Archived, s.BinaryLogs, tc.want)
			}
		})
	}
}

// archivedBy returns a client beside DatabaseCluster ledger, which has archived all up to a time.
func archivedBy(t *testing.T, namespace, engine string, until time.Time) *external {
	t.Helper()
	report, err := json.Marshal(instance.Cluster{Archive: &instance.Archive{Recoverable: &until}})
	if err != nil {
		t.Fatal(err)
	}
	return reportedBy(t, namespace, engine, string(report))
}

// reportedBy returns a client beside DatabaseCluster ledger, whose servers have written a report, or none.
func reportedBy(t *testing.T, namespace, engine string, reports ...string) *external {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	cluster := &unstructured.Unstructured{}
	cluster.SetGroupVersionKind(appsv1.GroupVersion.WithKind(appsv1.DatabaseClusterKind))
	cluster.SetNamespace(namespace)
	cluster.SetName("ledger")
	cluster.SetUID("uid-1")
	objects := []client.Object{cluster}
	for _, report := range reports {
		objects = append(objects, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: instance.StatusName("ledger-" + engine)},
			Data:       map[string]string{instance.ClusterKey: report},
		})
	}
	return &external{connector: &connector{kube: kube.Kube{Reader: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()}}}
}
