package resolve

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
)

// Resolver resolves references.
type Resolver struct {
	// Reader reads from the API server, not from a cache: the provider's cache holds only the
	// metadata of Secrets.
	Reader client.Reader

	// Getenv reads the provider's own environment.
	Getenv func(string) string
}

// PrintOf returns a fingerprint of an object, which changes with each change of the object and
// reveals nothing of its content.
func PrintOf(o client.Object) string { return string(o.GetUID()) + "/" + o.GetResourceVersion() }

// secret returns a Secret by its name, or a Problem if it does not exist. field is the field that
// refers to it.
func (r *Resolver) secret(ctx context.Context, namespace, name, field string) (*corev1.Secret, error) {
	s := &corev1.Secret{}
	err := r.Reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, s)
	if kerrors.IsNotFound(err) {
		return nil, problem(backupv1.ReasonSecretNotFound, "%s names Secret %s, which does not exist in namespace %s", field, name, namespace)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot get Secret %s/%s: %w", namespace, name, err)
	}
	return s, nil
}

// Key returns the fingerprint of the Secret with the key of an encryption, or "" without
// encryption. A key that is missing is a Problem.
func (r *Resolver) Key(ctx context.Context, namespace string, e *backupv1.Encryption) (string, error) {
	if e == nil {
		return "", nil
	}
	const field = "encryption.secretRef"
	s, err := r.secret(ctx, namespace, e.SecretRef.Name, field)
	if err != nil {
		return "", err
	}
	if len(s.Data[e.SecretRef.Key]) == 0 {
		return "", problem(backupv1.ReasonSecretKeyNotFound, "%s names key %s, which Secret %s does not have", field, e.SecretRef.Key, s.Name)
	}
	return PrintOf(s), nil
}
