package resolve

import (
	"bytes"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storeplane/storeplane/internal/backup"
)

// OwnKey is the generated key of a Backup, as far as it exists. Those that a DatabaseCluster's CronJobs make have
// that of the cluster.
type OwnKey struct {
	// Secret is the one in the Backup's namespace, nil if none was created for the Backup. Taken is
	// true if another Secret has its name.
	Secret *corev1.Secret
	Taken  bool

	// Kept is the copy in escrow, or nil.
	Kept *corev1.Secret
}

// OwnKey reads the generated key of the Backup of that name, and its copy in escrow. It does not
// return the content of a Secret that was not created for the Backup.
func (r *Resolver) OwnKey(ctx context.Context, namespace, name string) (OwnKey, error) {
	out := OwnKey{}
	s, err := r.find(ctx, namespace, backup.LogicalKeyName(name))
	if err != nil {
		return OwnKey{}, err
	}
	if s != nil && backup.IsLogicalKey(s, name) {
		out.Secret = s
	}
	out.Taken = s != nil && out.Secret == nil
	out.Kept, err = r.KeptKey(ctx, namespace, name)
	return out, err
}

// KeptKey returns the copy in escrow of a Backup's generated key, or nil.
func (r *Resolver) KeptKey(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return r.find(ctx, backup.EscrowNamespace, backup.LogicalEscrowName(namespace, name))
}

// Identities returns the age identities with which the backups can be decrypted: those in the
// namespace, and those in escrow if they differ. It returns nil for plain backups.
func (o OwnKey) Identities() []byte {
	own, kept := KeyOf(o.Secret), KeyOf(o.Kept)
	switch {
	case len(own) == 0:
		return kept
	case len(kept) == 0, bytes.Equal(own, kept):
		return own
	}
	return bytes.Join([][]byte{bytes.TrimSpace(own), bytes.TrimSpace(kept), nil}, []byte("\n"))
}

// KeyOf returns the key that a Secret holds, or nil. The Secret may be nil.
func KeyOf(s *corev1.Secret) []byte {
	if s == nil || len(s.Data[backup.EscrowKey]) == 0 {
		return nil
	}
	return s.Data[backup.EscrowKey]
}

// find returns a Secret, or nil if it does not exist.
func (r *Resolver) find(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	s := &corev1.Secret{}
	err := r.Reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, s)
	if kerrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot get Secret %s/%s: %w", namespace, name, err)
	}
	return s, nil
}
