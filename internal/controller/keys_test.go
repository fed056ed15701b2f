package controller_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	storeplanev1 "github.com/storeplane/storeplane/apis/storeplane/v1"
	"github.com/storeplane/storeplane/internal/backup"
)

// keyOf returns the key in a Secret, or "" if there is none.
func (w *world) keyOf(t testing.TB, namespace, name string) string {
	t.Helper()
	s := &corev1.Secret{}
	err := w.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, s)
	if err != nil && !kerrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return string(s.Data[backup.EscrowKey])
}

// begin reconciles a Backup until it has its CronJobs. Its checks report what is in the store.
func (w *world) begin(t testing.TB, b *backupv1.Backup, report string) {
	t.Helper()
	if _, err := w.reconcile(t, b); err != nil {
		t.Fatal(err)
	}
	for _, j := range w.jobs(t) {
		w.finish(t, j, report)
	}
	for range 3 {
		if _, err := w.reconcile(t, b); err != nil {
			t.Fatal(err)
		}
	}
}

// mounts returns the name of the Secret with a key that pods of the schedule mount, or "".
func (w *world) mounts(t testing.TB) string {
	t.Helper()
	c := &batchv1.CronJob{}
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "orders-dump"}, c); err != nil {
		return err.Error()
	}
	for _, v := range c.Spec.JobTemplate.Spec.Template.Spec.Volumes {
		if v.Name == "encryption" {
			return v.Secret.SecretName
		}
	}
	return ""
}

// TestOwnKeyOfBackup: a generated key is copied to escrow before there is a schedule, and is
// restored from there when its Secret is deleted or its Backup is created again.
func TestOwnKeyOfBackup(t *testing.T) {
	b := aBackup()
	w := newWorld(t, append(shop(), b)...)
	w.begin(t, b, checkReport)
	key := w.keyOf(t, "shop", "orders-dump-key")
	if !strings.HasPrefix(key, "AGE-SECRET-KEY-1") || w.keyOf(t, backup.EscrowNamespace, "shop.orders.backup") != key {
		t.Fatal("want a key, and a copy of it")
	}
	if got := w.mounts(t); got != "orders-dump-key" {
		t.Errorf("want the schedule's pods to mount the key, got %q", got)
	}
	if c := b.GetCondition(backupv1.TypeEscrowed); c.Status != corev1.ConditionTrue {
		t.Errorf("want Escrowed True, got %s %s: %s", c.Status, c.Reason, c.Message)
	}
	remove := func(o client.Object) {
		t.Helper()
		if err := w.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	reconcile := func() {
		t.Helper()
		for range 2 {
			if _, err := w.reconcile(t, b); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove(secret("shop", "orders-dump-key", nil))
	reconcile()
	if w.keyOf(t, "shop", "orders-dump-key") != key {
		t.Error("want the key put back")
	}
	config := &storeplanev1.ClusterProviderConfig{}
	if err := w.Get(t.Context(), client.ObjectKey{Name: "default"}, config); err != nil {
		t.Fatal(err)
	}
	config.Spec.Encryption = storeplanev1.EncryptionNone
	if err := w.Update(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	// The Backup's namespace is lost with its content.
	remove(secret("shop", "orders-dump-key", nil))
	remove(b)
	remove(&batchv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders-dump"}})
	b = aBackup()
	if err := w.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	reconcile()
	if w.keyOf(t, "shop", "orders-dump-key") != key || w.mounts(t) != "orders-dump-key" {
		t.Error("want the Backup of the same name to go on with its key, also where none are drawn any more")
	}
}

// TestOwnKeyOfCluster: a Backup of a DatabaseCluster gets a generated key if the function asks for one, and
// no other Backup with the same annotation does.
func TestOwnKeyOfCluster(t *testing.T) {
	cluster := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps.example.com/v1", "kind": "DatabaseCluster",
		"metadata": map[string]any{"namespace": "shop", "name": "orders", "uid": "dbc"},
		"spec":     map[string]any{"engine": "mysql", "version": "9.7", "storageSize": "20Gi"},
		"status":   map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}},
	}}
	for uid, want := range map[types.UID]bool{"dbc": true, "another": false} {
		b := aBackup()
		b.Annotations = map[string]string{backup.EscrowAnnotation: "true"}
		b.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps.example.com/v1", Kind: "DatabaseCluster", Name: "orders", UID: uid, Controller: new(true)}}
		b.Spec.ForProvider.Source = backupv1.Database{Type: backupv1.MySQL, Connection: backupv1.Connection{DatabaseClusterRef: &backupv1.LocalReference{Name: "orders"}}}
		b.Spec.ForProvider.Destination.SecretRef = &backupv1.LocalReference{Name: "own"}
		w := newWorld(t, append(shop(), cluster.DeepCopy(), secret("shop", "orders-dumper", map[string]string{"uri": "mysql://u:p@h/"}), secret("shop", "own", map[string]string{"AWS_ACCESS_KEY_ID": "k"}), b)...)
		w.begin(t, b, checkReport)
		key := w.keyOf(t, "shop", "orders-dump-key")
		if (key != "") != want || w.keyOf(t, backup.EscrowNamespace, "shop.orders.backup") != key {
			t.Errorf("Controlled by %s: want a key and its copy: %t, got a key: %t", uid, want, key != "")
		}
	}
}

// TestPlainBackup: a Backup that has plain backups stays plain, and so does one whose store has
// generated keys turned off.
func TestPlainBackup(t *testing.T) {
	b := aBackup()
	w := newWorld(t, append(shop(), b)...)
	w.begin(t, b, `{"action":"check","finished":"2026-03-01T12:00:00Z","catalog":{"count":2}}`)
	copied := &corev1.Secret{}
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: backup.EscrowNamespace, Name: "shop.orders.backup"}, copied); err != nil || len(copied.Data) > 0 {
		t.Errorf("want a copy that says that there is no key, got %d keys, %v", len(copied.Data), err)
	}
	if key, mounts := w.keyOf(t, "shop", "orders-dump-key"), w.mounts(t); key != "" || mounts != "" {
		t.Errorf("want plain backups, got a key of %d bytes, and %q mounted", len(key), mounts)
	}

	b = aBackup()
	objects := shop()
	for _, o := range objects {
		if c, ok := o.(*storeplanev1.ClusterProviderConfig); ok {
			c.Spec.Encryption = storeplanev1.EncryptionNone
		}
	}
	w = newWorld(t, append(objects, b)...)
	w.begin(t, b, checkReport)
	if key, mounts := w.keyOf(t, "shop", "orders-dump-key"), w.mounts(t); key != "" || mounts != "" {
		t.Errorf("turned off: want plain backups, got a key of %d bytes, and %q mounted", len(key), mounts)
	}
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: backup.EscrowNamespace, Name: "shop.orders.backup"}, copied); !kerrors.IsNotFound(err) {
		t.Errorf("turned off: want no copy, got %v", err)
	}
}

// TestRestoreOwnKey: a Restore gets the generated key if it may read the backups with the
// platform's credentials.
func TestRestoreOwnKey(t *testing.T) {
	key := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders-dump-key", Labels: map[string]string{backupv1.BackupLabel: "orders", "app.kubernetes.io/managed-by": "storeplane"}},
		Data:       map[string][]byte{"key": []byte("k1")},
	}
	kept := secret(backup.EscrowNamespace, "shop.orders.backup", map[string]string{"key": "k1"})
	lost := secret(backup.EscrowNamespace, "bank.orders.backup", map[string]string{"key": "bank"})
	grant := &backupv1.RestoreGrant{ObjectMeta: metav1.ObjectMeta{Namespace: "bank", Name: "g"}, Spec: backupv1.RestoreGrantSpec{To: []string{"shop"}}}
	own := secret("shop", "own", map[string]string{"AWS_ACCESS_KEY_ID": "a"})
	forged := secret("shop", "own", map[string]string{"AWS_ACCESS_KEY_ID": "a"})
	forged.Annotations = map[string]string{backup.BoundsAnnotation: `{"of":"ClusterProviderConfig default","bucket":"b","endpoint":"https://s3.example.com","region":"eu","reads":["shop","bank"]}`}
	at := func(namespace, secret string, e *backupv1.Encryption) *backupv1.Location {
		l := &backupv1.Location{Name: "orders", Namespace: namespace, Encryption: e, Destination: backupv1.Destination{Type: backupv1.S3, Bucket: "b"}}
		if secret != "" {
			l.Destination.SecretRef = &backupv1.LocalReference{Name: secret}
		}
		return l
	}
	cases := map[string]struct {
		reason   string
		objects  []client.Object
		location *backupv1.Location // or the Backup itself
		want     string             // the key in the Restore's own Secret
		refused  string
	}{
		"Backup":    {reason: "A Backup has its key in its namespace.", objects: []client.Object{aBackup(), key, kept}, want: "k1"},
		"BackupPut": {reason: "Or only in escrow.", objects: []client.Object{aBackup(), kept}, want: "k1"},
		"Plain":     {reason: "Or none.", objects: []client.Object{aBackup(), secret(backup.EscrowNamespace, "shop.orders.backup", nil)}},
		"Location":  {reason: "A Backup that is gone has left its Secret.", objects: []client.Object{key}, location: at("", "", nil), want: "k1"},
		"Again":     {reason: "A namespace that was made again has the copy.", objects: []client.Object{kept}, location: at("shop", "", nil), want: "k1"},
		"Named":     {reason: "A key that is named is the one that is meant.", objects: []client.Object{key, kept, secret("shop", "age", map[string]string{"k": "x"})}, location: at("", "", &backupv1.Encryption{SecretRef: backupv1.SecretKey{Name: "age", Key: "k"}})},
		"Called":    {reason: "It may have the name of the Restore's own Secret.", objects: []client.Object{key, secret("shop", "back-restore-key", nil)}, location: at("", "", &backupv1.Encryption{SecretRef: backupv1.SecretKey{Name: "orders-dump-key", Key: "key"}})},
		"Taken":     {reason: "Which is not written over.", objects: []client.Object{key, secret("shop", "back-restore-key", nil)}, location: at("", "", nil), refused: backupv1.ReasonAlreadyExists},
		"Elsewhere": {reason: "In a store of the namespace's own, another Backup of the name may have written.", objects: []client.Object{key, kept, own}, location: at("", "own", nil)},
		"Granted":   {reason: "Another namespace gives it with its backups.", objects: []client.Object{lost, grant}, location: at("bank", "", nil), want: "bank"},
		"NotGiven":  {reason: "Or does not.", objects: []client.Object{lost}, location: at("bank", "", nil), refused: backupv1.ReasonNotGranted},
		"OwnStore":  {reason: "Who has other credentials for the store gets no key with them.", objects: []client.Object{lost, own}, location: at("bank", "own", nil)},
		"Forged":    {reason: "Nor who writes on a Secret whose they are.", objects: []client.Object{lost, forged}, location: at("bank", "own", nil)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := aRestore()
			if tc.location != nil {
				r.Spec.ForProvider.Source = backupv1.RestoreSource{Location: tc.location}
			}
			objects := append(shop(), r)
			for _, o := range tc.objects {
				objects = append(objects, o.DeepCopyObject().(client.Object))
			}
			w := newWorld(t, objects...)
			if _, err := w.reconcile(t, r); err != nil {
				t.Fatal(err)
			}
			if got := string(r.GetCondition("Ready").Reason); tc.refused != "" && got != tc.refused || tc.refused == "" && len(w.jobs(t)) != 1 {
				t.Errorf("%s\nwant refused with %q, got %s, and the Jobs %v", tc.reason, tc.refused, got, w.jobs(t))
			}
			if diff := cmp.Diff(tc.want, w.keyOf(t, "shop", "back-restore-key")); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if tc.want == "" {
				return
			}
			w.finish(t, "back-restore", `{"action":"restore","finished":"2026-03-01T12:00:00Z","rows":3}`)
			if _, err := w.reconcile(t, r); err != nil {
				t.Fatal(err)
			}
			if w.keyOf(t, "shop", "back-restore-key") != "" {
				t.Errorf("%s\nThe key outlives the Restore.", tc.reason)
			}
		})
	}
}
