package telemetry

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
)

func TestBackups(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	tel := New(r)
	b := &backupv1.Backup{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders"}}
	noon := metav1.NewTime(time.Unix(1000, 0))

	tel.Backups.Observe(b, backupv1.BackupObservation{}, Periods{})
	nothing := `
# HELP storeplane_backup_count How many good backups are in the store.
# TYPE storeplane_backup_count gauge
storeplane_backup_count{name="orders",namespace="shop"} 0
# HELP storeplane_backup_failures_total How many backups were seen to fail.
# TYPE storeplane_backup_failures_total counter
storeplane_backup_failures_total{name="orders",namespace="shop"} 0
`
	if err := testutil.GatherAndCompare(r, strings.NewReader(nothing), "storeplane_backup_count", "storeplane_backup_failures_total", "storeplane_backup_size_bytes", "storeplane_backup_period_seconds", "storeplane_backup_verification_period_seconds"); err != nil {
		t.Errorf("What is not known is not there.\n%v", err)
	}

	full := backupv1.BackupObservation{
		LastSuccessfulTime: &noon, LastVerifiedTime: &noon, LastDuration: &metav1.Duration{Duration: 90 * time.Second}, Count: 2,
		Backups: []backupv1.BackupEntry{{Size: 7}}, LastFailure: &backupv1.Failure{Time: noon},
	}
	periods := Periods{Backup: time.Hour, Verification: 2 * time.Hour}
	tel.Backups.Observe(b, full, periods)
	tel.Backups.Observe(b, full, periods) // the status was not written, and is observed again
	for name, want := range map[string]float64{"last_success_timestamp_seconds": 1000, "last_verified_timestamp_seconds": 1000, "duration_seconds": 90, "size_bytes": 7, "count": 2, "failures_total": 1, "period_seconds": 3600, "verification_period_seconds": 7200} {
		got, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, f := range got {
			if f.GetName() != "storeplane_backup_"+name {
				continue
			}
			found = true
			m := f.GetMetric()[0]
			if v := m.GetGauge().GetValue() + m.GetCounter().GetValue(); v != want {
				t.Errorf("%s: want %v, got %v", name, want, v)
			}
		}
		if !found {
			t.Errorf("%s is missing", name)
		}
	}

	tel.Backups.Forget(types.NamespacedName{Namespace: "shop", Name: "orders"})
	if n := testutil.CollectAndCount(tel.Backups); n != 0 {
		t.Errorf("Metrics go with their Backup: want none, got %d", n)
	}
}

func TestAppConfigs(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	tel := New(r)
	for _, result := range []string{"", "Succeeded", "RolledBack", "RolledBack"} {
		tel.AppConfigs.Observe(result, 3*time.Second)
	}
	want := `
# HELP storeplane_appconfig_rollbacks_total How many times the last good configuration was put back.
# TYPE storeplane_appconfig_rollbacks_total counter
storeplane_appconfig_rollbacks_total 2
# HELP storeplane_appconfig_rollouts_total How many rollouts of configuration ended, by how: Succeeded, RolledBack, Failed, or Superseded by a newer one.
# TYPE storeplane_appconfig_rollouts_total counter
storeplane_appconfig_rollouts_total{result="Failed"} 0
storeplane_appconfig_rollouts_total{result="RolledBack"} 2
storeplane_appconfig_rollouts_total{result="Succeeded"} 1
storeplane_appconfig_rollouts_total{result="Superseded"} 0
`
	if err := testutil.GatherAndCompare(r, strings.NewReader(want), "storeplane_appconfig_rollbacks_total", "storeplane_appconfig_rollouts_total"); err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(r, "storeplane_appconfig_converge_seconds"); err != nil || n != 1 {
		t.Errorf("want a histogram, got %d, %v", n, err)
	}
}

// failing is a client whose calls fail with err.
type failing struct {
	managed.ExternalClient

	err error
}

func (f failing) Observe(context.Context, resource.Managed) (managed.ExternalObservation, error) {
	return managed.ExternalObservation{}, f.err
}

func (f failing) Update(context.Context, resource.Managed) (managed.ExternalUpdate, error) {
	return managed.ExternalUpdate{}, f.err
}

func TestCount(t *testing.T) {
	r := prometheus.NewRegistry()
	tel := New(r)
	for _, err := range []error{nil, kerrors.NewForbidden(schema.GroupResource{}, "x", nil), context.DeadlineExceeded, errors.New("x")} {
		c := tel.Count("Backup", managed.ExternalConnectorFn(func(context.Context, resource.Managed) (managed.ExternalClient, error) {
			return failing{err: err}, nil
		}))
		e, cerr := c.Connect(t.Context(), nil)
		if cerr != nil {
			t.Fatal(cerr)
		}
		_, _ = e.Observe(t.Context(), nil)
		_, _ = e.Update(t.Context(), nil)
	}
	want := `
# HELP storeplane_provider_reconcile_errors_total How often something could not be done for a managed resource, by its kind, what was tried and the reason.
# TYPE storeplane_provider_reconcile_errors_total counter
storeplane_provider_reconcile_errors_total{kind="Backup",operation="observe",reason="Forbidden"} 1
storeplane_provider_reconcile_errors_total{kind="Backup",operation="observe",reason="Other"} 1
storeplane_provider_reconcile_errors_total{kind="Backup",operation="observe",reason="Timeout"} 1
storeplane_provider_reconcile_errors_total{kind="Backup",operation="update",reason="Forbidden"} 1
storeplane_provider_reconcile_errors_total{kind="Backup",operation="update",reason="Other"} 1
storeplane_provider_reconcile_errors_total{kind="Backup",operation="update",reason="Timeout"} 1
`
	if err := testutil.GatherAndCompare(r, strings.NewReader(want), "storeplane_provider_reconcile_errors_total"); err != nil {
		t.Error(err)
	}
}

func TestJitter(t *testing.T) {
	for range 1000 {
		if got := Jitter(time.Minute); got < 48*time.Second || got > 72*time.Second {
			t.Fatalf("want a minute, more or less, got %s", got)
		}
	}
}
