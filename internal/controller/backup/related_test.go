package backup

import (
	"errors"
	"slices"
	"testing"
	"time"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	storeplanev1 "github.com/storeplane/storeplane/apis/storeplane/v1"
	"github.com/storeplane/storeplane/internal/backup"
)

// TestRelated: a Backup is reconciled when a Secret or a configuration that it reads has changed, so
// that it need not be polled for them.
func TestRelated(t *testing.T) {
	backupOf := func(namespace, name string, ref *xpv2.ProviderConfigReference, p backupv1.BackupParameters) client.Object {
		b := &backupv1.Backup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		b.Spec.ForProvider, b.Spec.ProviderConfigReference = p, ref
		return b
	}
	secret := func(namespace, name string) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	to := func(kind, name string) *xpv2.ProviderConfigReference {
		return &xpv2.ProviderConfigReference{Kind: kind, Name: name}
	}
	credentials := func(namespace, name string, each bool) storeplanev1.ProviderConfigSpec {
		return storeplanev1.ProviderConfigSpec{Credentials: storeplanev1.Credentials{Source: storeplanev1.CredentialsSecret, SecretRef: &xpv2.SecretReference{Namespace: namespace, Name: name}, PerNamespace: each}}
	}
	own := &storeplanev1.ProviderConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "own"}, Spec: credentials("shop", "keys", false)}
	all := &storeplanev1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: credentials("system", "keys", false)}
	each := &storeplanev1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "each"}, Spec: credentials("system", "store", true)}
	byCluster := backupv1.BackupParameters{Source: backupv1.Database{Connection: backupv1.Connection{DatabaseClusterRef: &backupv1.LocalReference{Name: "orders"}}}}

	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{backupv1.SchemeBuilder.AddToScheme, storeplanev1.SchemeBuilder.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	r := &related{client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		own, all, each,
		backupOf("shop", "direct", to("ProviderConfig", "own"), backupv1.BackupParameters{
			Source:      backupv1.Database{Connection: backupv1.Connection{SecretRef: &backupv1.ConnectionSecret{Name: "db"}}},
			Destination: backupv1.Destination{SecretRef: &backupv1.LocalReference{Name: "store"}},
			Encryption:  &backupv1.Encryption{SecretRef: backupv1.SecretKey{Name: "age"}},
		}),
		backupOf("shop", "orders", nil, byCluster),
		backupOf("team", "orders", to("ClusterProviderConfig", "each"), byCluster),
		backupOf("shop", "ledger", to("ProviderConfig", "another"), backupv1.BackupParameters{
			Source: backupv1.Database{Type: backupv1.MySQL, Connection: backupv1.Connection{DatabaseClusterRef: &backupv1.LocalReference{Name: "ledger"}}},
		}),
		backupOf("shop", "each", to("ClusterProviderConfig", "each"), byCluster),
	).Build()}

	cases := map[string]struct {
		reason string
		object client.Object
		want   []string
	}{
		"Source":       {reason: "The Secret of the database.", object: secret("shop", "db"), want: []string{"shop/direct"}},
		"Elsewhere":    {reason: "One of its name in another namespace is another one.", object: secret("team", "db")},
		"Store":        {reason: "The Secret of the store.", object: secret("shop", "store"), want: []string{"shop/direct"}},
		"Encryption":   {reason: "That of the key.", object: secret("shop", "age"), want: []string{"shop/direct"}},
		"Connection":   {reason: "That of a DatabaseCluster.", object: secret("shop", "orders-connection"), want: []string{"shop/each", "shop/orders"}},
		"Dumper":       {reason: "That of its backups, with engine mysql.", object: secret("shop", "ledger-dumper"), want: []string{"shop/ledger"}},
		"Copy":         {reason: "A copy that was edited is put right.", object: secret("shop", "orders-dump-store"), want: []string{"shop/orders"}},
		"Own":          {reason: "The Secret of a ProviderConfig.", object: secret("shop", "keys"), want: []string{"shop/direct"}},
		"Default":      {reason: "That of the default, which a Backup need not name.", object: secret("system", "keys"), want: []string{"shop/orders"}},
		"PerNamespace": {reason: "That of one namespace.", object: secret("system", "store-team"), want: []string{"team/orders"}},
		"Escrow":       {reason: "A copy in escrow that was deleted is created again.", object: secret(backup.EscrowNamespace, "team.orders"), want: []string{"team/orders"}},
		"EscrowOf":     {reason: "That of a key of the Backup's own.", object: secret(backup.EscrowNamespace, "shop.direct.backup"), want: []string{"shop/direct"}},
		"Other":        {reason: "All others concern none.", object: secret("system", "store")},
		"Config":       {reason: "A ProviderConfig.", object: own, want: []string{"shop/direct"}},
		"Cluster":      {reason: "A ClusterProviderConfig.", object: each, want: []string{"shop/each", "team/orders"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			find := r.toConfig
			if _, ok := tc.object.(*corev1.Secret); ok {
				find = r.toSecret
			}
			var got []string
			for _, req := range find(t.Context(), tc.object) {
				got = append(got, req.String())
			}
			slices.Sort(got)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPoll: a Backup at rest is polled rarely. One for which something depends on the time is polled
// as often as before.
func TestPoll(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	good := func(changes ...func(*backupv1.Backup)) *backupv1.Backup {
		b := &backupv1.Backup{}
		b.SetConditions(xpv2.Available(), xpv2.ReconcileSuccess(), proven(false, now))
		b.Status.AtProvider.NextScheduleTime = new(metav1.NewTime(now.Add(14 * time.Hour)))
		for _, c := range changes {
			c(b)
		}
		return b
	}
	conditions := func(of ...xpv2.Condition) func(*backupv1.Backup) {
		return func(b *backupv1.Backup) { b.SetConditions(of...) }
	}
	archived := func(ago time.Duration) func(*backupv1.Backup) {
		return func(b *backupv1.Backup) {
			b.Spec.ForProvider.Method, b.Spec.ForProvider.Source.Type = backupv1.Physical, backupv1.PostgreSQL
			b.Status.AtProvider.LastRecoverableTime = new(metav1.NewTime(now.Add(-ago)))
		}
	}
	mysql := func(b *backupv1.Backup) {
		b.Spec.ForProvider.Method, b.Spec.ForProvider.Source.Type = backupv1.Physical, backupv1.MySQL
	}
	cases := map[string]struct {
		reason string
		backup *backupv1.Backup
		want   time.Duration
	}{
		"AtRest":     {reason: "Nothing is to be done.", backup: good(), want: 10 * time.Minute},
		"Physical":   {reason: "The archive's time advances each five minutes.", backup: good(archived(time.Minute)), want: 5 * time.Minute},
		"Advances":   {reason: "It should have advanced.", backup: good(archived(10 * time.Minute)), want: time.Minute},
		"Hibernated": {reason: "It does not while the database is hibernated.", backup: good(archived(48 * time.Hour)), want: 10 * time.Minute},
		"Unarchived": {reason: "Nothing has been archived yet.", backup: good(func(b *backupv1.Backup) {
			b.Spec.ForProvider.Method, b.Spec.ForProvider.Source.Type = backupv1.Physical, backupv1.PostgreSQL
		}), want: time.Minute},
		"Copies":       {reason: "MySQL's archive advances as well.", backup: good(archived(10*time.Minute), mysql), want: time.Minute},
		"CopiesBefore": {reason: "What was archived before the last step is read after the next one.", backup: good(archived(time.Minute), mysql), want: 5 * time.Minute},
		"CopiesAlone":  {reason: "Copies without binary logs have no time that advances.", backup: good(mysql), want: 10 * time.Minute},
		"CopiesOwned": {reason: "The cluster's own have, and it is not known yet.", backup: good(mysql, func(b *backupv1.Backup) {
			b.OwnerReferences = []metav1.OwnerReference{{Kind: appsv1.DatabaseClusterKind, Controller: new(true)}}
			b.Status.AtProvider.LastSuccessfulTime = new(metav1.NewTime(now.Add(-time.Hour)))
		}), want: time.Minute},
		"CopiesOld": {reason: "Nothing has been archived for long.", backup: good(archived(2*time.Hour), mysql), want: 10 * time.Minute},
		"Dumps":     {reason: "A dump restores to its own time.", backup: good(archived(10*time.Minute), func(b *backupv1.Backup) { b.Spec.ForProvider.Method = backupv1.Logical }), want: 10 * time.Minute},
		"Due": {reason: "The next backup should begin soon.", backup: good(func(b *backupv1.Backup) {
			b.Status.AtProvider.NextScheduleTime = new(metav1.NewTime(now.Add(time.Minute)))
		}), want: 2 * time.Minute},
		"Overdue": {reason: "It should have begun.", backup: good(func(b *backupv1.Backup) {
			b.Status.AtProvider.NextScheduleTime = new(metav1.NewTime(now.Add(-time.Hour)))
		}), want: time.Minute},
		"Unverified": {reason: "A verification that failed is tried again.", backup: good(conditions(unproven(backupv1.ReasonVerificationPending, "", now))), want: time.Minute},
		"Disabled":   {reason: "None is asked for.", backup: good(conditions(unproven(backupv1.ReasonDisabled, "", now))), want: 10 * time.Minute},
		"Running":    {reason: "A pod that does not start is reported after two minutes.", backup: good(func(b *backupv1.Backup) { b.Status.AtProvider.Job = "orders-dump-1" }), want: time.Minute},
		"Failed":     {reason: "The last backup failed.", backup: good(func(b *backupv1.Backup) { b.Status.AtProvider.LastFailure = &backupv1.Failure{} }), want: time.Minute},
		"Unsynced":   {reason: "The last reconciliation failed.", backup: good(conditions(xpv2.ReconcileError(errors.New("x")))), want: time.Minute},
		"NotReady":   {reason: "What it waits for may not be watched.", backup: good(conditions(xpv2.Unavailable())), want: impatient},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := poll(func() time.Time { return now })(tc.backup, time.Minute)
			if got < tc.want*8/10 || got > tc.want*12/10 {
				t.Errorf("%s: want %v, give or take a fifth, got %v", tc.reason, tc.want, got)
			}
		})
	}
}
