package backup

import (
	"context"
	"encoding/json"
	"fmt"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/controller/resolve"
	"github.com/storeplane/storeplane/internal/controller/workload"
	"github.com/storeplane/storeplane/internal/instance"
)

// readState reads the State of a Backup.
func (e *external) readState(ctx context.Context, b *backupv1.Backup) (*State, error) {
	s := &State{Backup: b, Now: e.now(), Images: e.images}
	jobs, crons, pods, err := e.kube.Work(ctx, b.Namespace, backupv1.BackupLabel, b.Name)
	if err != nil {
		return nil, err
	}
	s.CronJobs, s.Runs = crons.Items, workload.Runs(jobs.Items, e.witness.With(jobs.Items, pods.Items), s.Now)

	for _, step := range []func(context.Context, *State) error{e.objects, e.namespace, e.resolve, e.archived, e.escrow} {
		if err := step(ctx, s); err != nil {
			return nil, err
		}
	}
	// For a Backup that is being deleted the use was recorded before. Its namespace may be
	// terminating too, where a ProviderConfigUsage that is already deleted could not be created
	// again.
	if s.Store.Configured && b.Spec.ProviderConfigReference != nil && !xpmeta.WasDeleted(b) {
		if err := e.usage.Track(ctx, b); err != nil {
			return nil, fmt.Errorf("cannot record that Backup %s/%s uses its ProviderConfig: %w", b.Namespace, b.Name, err)
		}
	}
	return s, nil
}

// objects reads the objects that a Backup always has. One that is being deleted needs its policy
// only.
func (e *external) objects(ctx context.Context, s *State) error {
	b := s.Backup
	account, policy, source, secret := &corev1.ServiceAccount{}, &networkingv1.NetworkPolicy{}, &networkingv1.NetworkPolicy{}, &corev1.Secret{}
	found, err := e.kube.Find(ctx, b.Namespace, objectName(b.Name), policy)
	if err != nil {
		return err
	}
	if found {
		s.Policy = policy
	}
	if xpmeta.WasDeleted(b) {
		return nil
	}
	if found, err = e.kube.Find(ctx, b.Namespace, objectName(b.Name), account); err != nil {
		return err
	}
	if found {
		s.Account = account
	}
	if found, err = e.kube.Find(ctx, b.Namespace, sourcePolicyName(b.Name), source); err != nil {
		return err
	}
	if found {
		s.SourcePolicy = source
	}
	if found, err = e.kube.Find(ctx, b.Namespace, storeSecretName(b.Name), secret); err != nil {
		return err
	}
	if found {
		s.Secret = secret
	}
	return nil
}

// namespace finds out whether the namespace of a Backup that is being deleted is being deleted too.
func (e *external) namespace(ctx context.Context, s *State) error {
	if !xpmeta.WasDeleted(s.Backup) {
		return nil
	}
	n := &corev1.Namespace{}
	found, err := e.kube.Find(ctx, "", s.Backup.Namespace, n)
	s.NamespaceGone = !found || n.DeletionTimestamp != nil
	return err
}

// resolve resolves what the Backup refers to. The database of a Backup that is being deleted is not
// needed, and may have been deleted long before.
func (e *external) resolve(ctx context.Context, s *State) error {
	err := e.references(ctx, s)
	if p := resolve.AsProblem(err); p != nil {
		s.Problem = p
		return nil
	}
	return err
}

func (e *external) references(ctx context.Context, s *State) (err error) {
	b, p := s.Backup, s.params()
	deleted := xpmeta.WasDeleted(b)
	if s.byCluster() {
		// Its pods are those of the DatabaseCluster. Once that is deleted, they reach the store by
		// the Backup's own policy.
		if s.Store.Store, err = e.reach.Resolved(ctx, b.Namespace, p.Destination); err != nil || deleted {
			return err
		}
		name := p.Source.Connection.DatabaseClusterRef.Name
		if s.Cluster, err = e.reach.Cluster(ctx, b.Namespace, name); err != nil {
			return err
		}
		return s.Cluster.Check(name, p.Source.Type)
	}
	if s.Store, err = e.reach.Store(ctx, b.Namespace, b.Spec.ProviderConfigReference, p.Destination, storeSecretName(b.Name)); err != nil || deleted {
		return err
	}
	if err := s.checkPlace(); err != nil {
		return err
	}
	if s.Source, err = e.reach.Source(ctx, b.Namespace, p.Source); err != nil {
		return err
	}
	if s.copies() {
		if s.Cluster, err = e.reach.Volumes(ctx, b.Namespace, s.Source.Cluster); err != nil {
			return err
		}
	}
	if s.Source.Waiting != "" && b.Status.AtProvider.Checked == "" {
		return (&resolve.Problem{Reason: backupv1.ReasonDatabaseClusterNotReady, Message: s.Source.Waiting}).Error()
	}
	s.Key, err = e.reach.Key(ctx, b.Namespace, p.Encryption)
	return err
}

// checkPlace returns an error for copies at a place from which no database can be filled.
func (s *State) checkPlace() error {
	if !s.copies() || s.Store.Destination.Type != backupv1.Volume {
		return nil
	}
	return (&resolve.Problem{Reason: backupv1.ReasonMethodNotSupported, Message: "destination.type volume is not available with method physical and source.type mysql, since no DatabaseCluster can be filled from a volume claim with it: name an object store, or make a Backup of method logical"}).Error()
}

// archived reads from the status of a Backup's DatabaseCluster with an archive up to which time that
// can be restored, and what is missing in it.
func (e *external) archived(ctx context.Context, s *State) error {
	ref := s.params().Source.Connection.DatabaseClusterRef
	if s.params().Method != backupv1.Physical || ref == nil || xpmeta.WasDeleted(s.Backup) {
		return nil
	}
	if s.copies() {
		// Binary logs are beside the cluster's own backups, while WAL is in the repository of all of them.
		if own, err := e.isClusters(ctx, s.Backup); err != nil || !own {
			return err
		}
		s.BinaryLogs = true
	}
	cm := &corev1.ConfigMap{}
	name := instance.StatusName(ref.Name + "-" + string(s.params().Source.Type))
	found, err := e.kube.Find(ctx, s.Backup.Namespace, name, cm)
	if err != nil {
		return err
	}
	c := instance.Cluster{}
	if !found || json.Unmarshal([]byte(cm.Data[instance.ClusterKey]), &c) != nil {
		// The instance managers write it again. What was known stays meanwhile.
		if known := s.Backup.Status.AtProvider.LastRecoverableTime; s.BinaryLogs && known != nil {
			s.Archived = known.Time
		}
		return nil
	}
	if c.Archive == nil {
		return nil
	}
	s.Lost = c.Archive.Lost()
	if c.Archive.Recoverable != nil && !s.Lost {
		s.Archived = *c.Archive.Recoverable
	}
	s.Gaps = c.Archive.Gaps
	return nil
}
