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

// OwnKey of a Backup with method logical, as far as it is kept.
type OwnKey struct {
	// Secret of the Backup's namespace, nil where none was made for it. Taken says that there is
	// another one of that name.
	Secret *corev1.Secret
	Taken  bool

	// Kept is the copy in escrow, or nil.
	Kept *corev1.Secret
}

// OwnKey of a Backup of a name. Nothing is read of a Secret that was not made for it.
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

// KeptKey is the copy in escrow of a Backup's own key, or nil.
func (r *Resolver) KeptKey(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return r.find(ctx, backup.EscrowNamespace, backup.LogicalEscrowName(namespace, name))
}

// Identities by which the backups can be read: those of the namespace, and those in escrow where
// they are others. There are none for plain backups.
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

// KeyOf a Secret, nil where it holds none.
func KeyOf(s *corev1.Secret) []byte {
	if s == nil || len(s.Data[backup.EscrowKey]) == 0 {
		return nil
	}
	return s.Data[backup.EscrowKey]
}

// find a Secret, nil where there is none.
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
