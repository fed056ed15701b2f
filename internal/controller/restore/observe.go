package restore

import (
	"cmp"
	"context"
	"fmt"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/controller/resolve"
	"github.com/storeplane/storeplane/internal/controller/workload"
)

// readState reads the State of a Restore. What the Restore refers to is read until it has started,
// and not after that. Secrets that it left are read once it has ended.
func (e *external) readState(ctx context.Context, r *backupv1.Restore) (*State, error) {
	s := &State{Restore: r, Now: e.now(), Images: e.images}
	jobs, _, pods, err := e.kube.Work(ctx, r.Namespace, backupv1.RestoreLabel, r.Name)
	if err != nil {
		return nil, err
	}
	s.Runs = workload.Runs(jobs.Items, e.witness.With(jobs.Items, pods.Items), s.Now)
	switch run := s.run(); {
	case xpmeta.WasDeleted(r), run != nil && !run.Ended:
		return s, nil
	case r.Status.AtProvider.StartTime != nil, run != nil:
		return s, e.left(ctx, s)
	}
	err = e.resolve(ctx, s)
	if p := resolve.AsProblem(err); p != nil {
		s.Problem = p
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	if s.Store.Configured && r.Spec.ProviderConfigReference != nil {
		if err := e.usage.Track(ctx, r); err != nil {
			return nil, fmt.Errorf("cannot record that Restore %s/%s uses its ProviderConfig: %w", r.Namespace, r.Name, err)
		}
	}
	return s, e.taken(ctx, s)
}

func (e *external) resolve(ctx context.Context, s *State) (err error) {
	r, p := s.Restore, &s.Restore.Spec.ForProvider
	config := r.Spec.ProviderConfigReference
	if l := p.Source.Location; l != nil {
		s.From = From{Namespace: cmp.Or(l.Namespace, r.Namespace), Name: l.Name, Destination: l.Destination, Encryption: l.Encryption}
	} else if b, err := e.backup(ctx, s); err != nil {
		return err
	} else if b.Spec.ProviderConfigReference != nil {
		config = b.Spec.ProviderConfigReference
	}
	if err := backup.CheckPlace(s.From.Destination, s.From.Namespace, s.From.Name); err != nil {
		return (&resolve.Problem{Reason: backupv1.ReasonDestinationInvalid, Message: fmt.Sprintf("cannot read from the source: %v", err)}).Error()
	}
	if s.Store, err = e.reach.Store(ctx, r.Namespace, config, s.From.Destination, storeSecretName(r.Name)); err != nil {
		return err
	}
	if err := e.reach.CheckRead(ctx, s.Store.Bounds, s.From.Namespace, r.Namespace); err != nil {
		return err
	}
	if _, err = e.reach.Key(ctx, r.Namespace, s.From.Encryption); err != nil {
		return err
	}
	if err := e.key(ctx, s); err != nil {
		return err
	}
	if s.Target, err = e.reach.Target(ctx, r.Namespace, p.Target); err != nil {
		return err
	}
	if s.Target.Waiting != "" {
		return (&resolve.Problem{Reason: backupv1.ReasonDatabaseClusterNotReady, Message: s.Target.Waiting}).Error()
	}
	return nil
}

// backup returns the Backup that is referred to.
func (e *external) backup(ctx context.Context, s *State) (*backupv1.Backup, error) {
	r := s.Restore
	name := r.Spec.ForProvider.Source.BackupRef.Name
	b := &backupv1.Backup{}
	found, err := e.kube.Find(ctx, r.Namespace, name, b)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, (&resolve.Problem{Reason: backupv1.ReasonBackupMissing, Message: fmt.Sprintf("source.backupRef names Backup %s, which does not exist in namespace %s: use source.location if only its data is left", name, r.Namespace)}).Error()
	}
	p := &b.Spec.ForProvider
	if p.Method == backupv1.Physical {
		return nil, (&resolve.Problem{Reason: backupv1.ReasonMethodNotSupported, Message: "Backup " + name + " is physical and cannot be restored into a database that runs: use DatabaseCluster.spec.restoreFrom"}).Error()
	}
	if target := r.Spec.ForProvider.Target.Type; p.Source.Type != target {
		return nil, (&resolve.Problem{Reason: backupv1.ReasonMethodNotSupported, Message: fmt.Sprintf("Backup %s is of type %s and cannot be restored into target.type %s", name, p.Source.Type, target)}).Error()
	}
	s.From = From{Namespace: b.Namespace, Name: b.Name, Destination: p.Destination, Encryption: p.Encryption, Version: p.Source.Version}
	if ref := p.Source.Connection.DatabaseClusterRef; ref != nil && s.From.Version == "" {
		// The cluster may be deleted. Then its version is not known, and only that of the target
		// counts.
		c, err := e.reach.Cluster(ctx, r.Namespace, ref.Name)
		if err != nil && resolve.AsProblem(err) == nil {
			return nil, err
		}
		s.From.Version = c.Version
	}
	return b, nil
}

// key reads the key that was generated for the Backup, if none is named. For a location it only
// does so in the platform's store: elsewhere the backups may have been written by another Backup of
// that name. The key of another namespace is read from escrow. Its use was granted with that of the
// backups just before, by the platform's own configuration: bounds that are written on a Secret
// with credentials do not count.
func (e *external) key(ctx context.Context, s *State) error {
	byRef := s.Restore.Spec.ForProvider.Source.BackupRef != nil
	switch {
	case s.From.Encryption != nil, !byRef && !s.Store.Platforms:
		return nil
	case s.From.Namespace != s.Restore.Namespace:
		kept, err := e.reach.KeptKey(ctx, s.From.Namespace, s.From.Name)
		s.From.Key = resolve.KeyOf(kept)
		return err
	}
	own, err := e.reach.OwnKey(ctx, s.From.Namespace, s.From.Name)
	s.From.Key = own.Identities()
	return err
}

// left reads the copies of the store's credentials and of a key that a Restore which has ended has
// left.
func (e *external) left(ctx context.Context, s *State) error {
	for _, name := range []string{storeSecretName(s.Restore.Name), keySecretName(s.Restore.Name)} {
		copied := &corev1.Secret{}
		found, err := e.kube.Find(ctx, s.Restore.Namespace, name, copied)
		if err != nil {
			return err
		}
		if found && metav1.IsControlledBy(copied, s.Restore) {
			s.Left = append(s.Left, copied)
		}
	}
	return nil
}

// taken finds objects of other owners that have the names of this Restore's objects.
func (e *external) taken(ctx context.Context, s *State) error {
	type object struct {
		kind, name string
		into       client.Object
	}
	objects := []object{
		{"ServiceAccount", jobName(s.Restore.Name), &corev1.ServiceAccount{}},
		{"NetworkPolicy", jobName(s.Restore.Name), &networkingv1.NetworkPolicy{}},
		{"Secret", storeSecretName(s.Restore.Name), &corev1.Secret{}},
	}
	// Without a copied key the name is not needed: a user's Secret of that name may be the one with
	// the named key.
	if len(s.From.Key) > 0 {
		objects = append(objects, object{"Secret", keySecretName(s.Restore.Name), &corev1.Secret{}})
	}
	for _, o := range objects {
		found, err := e.kube.Find(ctx, s.Restore.Namespace, o.name, o.into)
		if err != nil {
			return err
		}
		if c := metav1.GetControllerOf(o.into); found && (c == nil || c.UID != s.Restore.UID) {
			s.Taken = o.kind + " " + o.name
		}
	}
	return nil
}
