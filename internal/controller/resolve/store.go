package resolve

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	storeplanev1 "github.com/storeplane/storeplane/apis/storeplane/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/controller/workload"
)

// Store is where backups are stored.
type Store struct {
	workload.Store

	// Copy is what the Secret with the credentials must hold if the provider creates it, as a copy
	// of those of a configuration.
	Copy map[string][]byte

	// Print is a fingerprint of the credentials or the volume: it changes whenever another store
	// may be reached.
	Print string

	// Configured is true if a ProviderConfig or ClusterProviderConfig was used.
	Configured bool

	// Bounds are what the credentials may be used for, nil for those of the namespace.
	Bounds *backup.Bounds

	// Platforms is true if the credentials are those of the platform's configuration, which then
	// also sets the Bounds. Generates is true if Backups that use them get generated keys.
	Platforms, Generates bool
}

// defaultConfig is the name of the ClusterProviderConfig that is used if none is named. It need not
// exist.
const defaultConfig = "default"

// Store resolves a destination. copyName is the name of the Secret that credentials of a
// configuration are copied to.
func (r *Resolver) Store(ctx context.Context, namespace string, ref *xpv2.ProviderConfigReference, d backupv1.Destination, copyName string) (Store, error) {
	if err := backup.CheckDestination(d); err != nil {
		return Store{}, problem(backupv1.ReasonDestinationInvalid, "cannot use the destination: %v", err)
	}
	if d.Type == backupv1.Volume {
		return r.volume(ctx, namespace, d)
	}
	config, found, err := r.config(ctx, namespace, ref)
	if err != nil {
		return Store{}, err
	}
	out := Store{Configured: found}
	var secret *corev1.Secret
	switch {
	case d.SecretRef != nil:
		if secret, err = r.secret(ctx, namespace, d.SecretRef.Name, "destination.secretRef"); err != nil {
			return Store{}, err
		}
		if out.Bounds, err = readBounds(secret, "destination.secretRef"); err != nil {
			return Store{}, err
		}
	case isPlatforms(ref, config):
		if out.Bounds, err = boundsOf(ref, config, namespace); err != nil {
			return Store{}, err
		}
		out.Platforms, out.Generates = true, config.Encryption != storeplanev1.EncryptionNone
	case config.Credentials.Source == storeplanev1.CredentialsSecret:
		// A ProviderConfig of the namespace may name a copy of the platform's credentials, which
		// has bounds.
		named, err := r.secret(ctx, namespace, config.Credentials.SecretRef.Name, "credentials.secretRef")
		if err != nil {
			return Store{}, err
		}
		if out.Bounds, err = readBounds(named, "credentials.secretRef"); err != nil {
			return Store{}, err
		}
	}
	if err := out.Bounds.Check(d); err != nil {
		return Store{}, problem(backupv1.ReasonDestinationInvalid, "%v", err)
	}
	if d.Endpoint == "" {
		d.Endpoint, d.Insecure = config.Endpoint, config.Insecure
	}
	d.Region = cmp.Or(d.Region, config.Region)
	out.Destination = out.Bounds.Place(d)
	out.Destination.SecretRef = nil
	if err := backup.CheckDestination(out.Destination); err != nil {
		return Store{}, problem(backupv1.ReasonProviderConfigInvalid, "cannot use the store of the ProviderConfig: %v", err)
	}
	if secret != nil {
		out.Secret, out.Print, out.Authenticates = secret.Name, PrintOf(secret), authenticates(d.Type, secret.Data)
		return out, nil
	}
	if err := r.credentials(ctx, namespace, config.Credentials, copyName, &out); err != nil {
		// It is not known whether the pods have credentials or need an identity, so the store does
		// not count as known: an empty destination leaves the existing NetworkPolicy as it is.
		out.Destination = backupv1.Destination{}
		return out, err
	}
	out.Authenticates = authenticates(d.Type, out.Copy)
	return out, nil
}

// Resolved returns the store of a destination that takes nothing from a configuration, such as that
// of a DatabaseCluster.
func (r *Resolver) Resolved(ctx context.Context, namespace string, d backupv1.Destination) (workload.Store, error) {
	out := workload.Store{Destination: d}
	if d.SecretRef == nil {
		return out, nil
	}
	s := &corev1.Secret{}
	err := r.Reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: d.SecretRef.Name}, s)
	if err != nil && !kerrors.IsNotFound(err) {
		return workload.Store{}, fmt.Errorf("cannot get Secret %s/%s: %w", namespace, d.SecretRef.Name, err)
	}
	// A missing Secret counts as one with credentials, so that no pod gets access to the cloud's
	// identity.
	out.Secret, out.Authenticates = d.SecretRef.Name, err != nil || authenticates(d.Type, s.Data)
	return out, nil //nolint:nilerr // see above
}

func authenticates(t backupv1.StoreType, data map[string][]byte) bool {
	return backup.Authenticates(t, func(key string) bool { return len(data[key]) > 0 })
}

// readBounds reads the bounds of the credentials in a Secret that a field names.
func readBounds(s *corev1.Secret, field string) (*backup.Bounds, error) {
	b, err := backup.ReadBounds(s.Annotations)
	if err != nil {
		return nil, problem(backupv1.ReasonCredentialsMissing, "cannot use Secret %s, which %s names: %v", s.Name, field, err)
	}
	return b, nil
}

// isPlatforms reports whether the credentials of a configuration are the platform's. The rights of
// a ServiceAccount in the namespace are the namespace's own.
func isPlatforms(ref *xpv2.ProviderConfigReference, c storeplanev1.ProviderConfigSpec) bool {
	return (ref == nil || ref.Kind == storeplanev1.ClusterProviderConfigKind) &&
		(c.Credentials.Source == storeplanev1.CredentialsSecret || c.Credentials.Source == storeplanev1.CredentialsEnvironment)
}

// boundsOf returns the bounds of the platform's credentials in a namespace.
func boundsOf(ref *xpv2.ProviderConfigReference, c storeplanev1.ProviderConfigSpec, namespace string) (*backup.Bounds, error) {
	of := storeplanev1.ClusterProviderConfigKind + " " + defaultConfig
	if ref != nil {
		of = storeplanev1.ClusterProviderConfigKind + " " + ref.Name
	}
	if c.Bucket == "" {
		return nil, problem(backupv1.ReasonProviderConfigInvalid, "%s does not name the bucket that its credentials are for: set its bucket, or name credentials of this namespace in destination.secretRef", of)
	}
	b := &backup.Bounds{Of: of, Bucket: c.Bucket, Prefix: c.Prefix, Endpoint: c.Endpoint, Region: c.Region, Insecure: c.Insecure, Reads: []string{namespace}}
	for _, g := range c.Grants {
		if slices.Contains(g.To, namespace) {
			b.Reads = append(b.Reads, g.Of)
		}
	}
	return b, nil
}

// CheckRead returns a Problem if the backups of namespace of may not be restored in namespace to.
func (r *Resolver) CheckRead(ctx context.Context, b *backup.Bounds, of, to string) error {
	if b.MayRead(of) {
		return nil
	}
	grants := &backupv1.RestoreGrantList{}
	// There are no grants if the kind is not activated.
	if err := r.Reader.List(ctx, grants, client.InNamespace(of)); err != nil && !meta.IsNoMatchError(err) && !kerrors.IsNotFound(err) {
		return fmt.Errorf("cannot list RestoreGrants of namespace %s: %w", of, err)
	}
	if err := b.CheckRead(of, to, grants.Items); err != nil {
		return problem(backupv1.ReasonNotGranted, "source.location: %v", err)
	}
	return nil
}

func (r *Resolver) volume(ctx context.Context, namespace string, d backupv1.Destination) (Store, error) {
	pvc := &corev1.PersistentVolumeClaim{}
	err := r.Reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: d.Bucket}, pvc)
	if kerrors.IsNotFound(err) {
		return Store{}, problem(backupv1.ReasonVolumeNotFound, "destination.bucket names PersistentVolumeClaim %s, which does not exist in namespace %s", d.Bucket, namespace)
	}
	if err != nil {
		return Store{}, fmt.Errorf("cannot get PersistentVolumeClaim %s/%s: %w", namespace, d.Bucket, err)
	}
	out := Store{Print: string(pvc.UID)}
	out.Destination = d
	return out, nil
}

// config returns the configuration that a reference names, and whether it exists. Only
// ClusterProviderConfig default, which is used without a reference, may be missing.
func (r *Resolver) config(ctx context.Context, namespace string, ref *xpv2.ProviderConfigReference) (storeplanev1.ProviderConfigSpec, bool, error) {
	if ref == nil {
		ref = &xpv2.ProviderConfigReference{Kind: storeplanev1.ClusterProviderConfigKind, Name: defaultConfig}
	}
	var err error
	var spec storeplanev1.ProviderConfigSpec
	switch ref.Kind {
	case storeplanev1.ProviderConfigKind:
		c := &storeplanev1.ProviderConfig{}
		err = r.Reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, c)
		spec = c.Spec
		if s := spec.Credentials.SecretRef; s != nil && s.Namespace != namespace {
			return spec, false, problem(backupv1.ReasonProviderConfigInvalid, "ProviderConfig %s names a Secret of namespace %s: it may only name one of its own", ref.Name, s.Namespace)
		}
		if spec.Credentials.Source == storeplanev1.CredentialsEnvironment {
			return spec, false, problem(backupv1.ReasonProviderConfigInvalid, "ProviderConfig %s asks for the provider's own credentials, which are the platform's: only a ClusterProviderConfig may", ref.Name)
		}
	case storeplanev1.ClusterProviderConfigKind:
		c := &storeplanev1.ClusterProviderConfig{}
		err = r.Reader.Get(ctx, client.ObjectKey{Name: ref.Name}, c)
		spec = *c.Spec.DeepCopy()
		if s := spec.Credentials.SecretRef; s != nil && spec.Credentials.PerNamespace {
			s.Name += "-" + namespace
		}
	default:
		return spec, false, problem(backupv1.ReasonProviderConfigInvalid, "providerConfigRef.kind must be %s or %s, is %q", storeplanev1.ProviderConfigKind, storeplanev1.ClusterProviderConfigKind, ref.Kind)
	}
	switch {
	case kerrors.IsNotFound(err) && ref.Kind == storeplanev1.ClusterProviderConfigKind && ref.Name == defaultConfig:
		return spec, false, nil
	case kerrors.IsNotFound(err):
		return spec, false, problem(backupv1.ReasonProviderConfigNotFound, "providerConfigRef names %s %s, which does not exist", ref.Kind, ref.Name)
	case err != nil:
		return spec, false, fmt.Errorf("cannot get %s %s: %w", ref.Kind, ref.Name, err)
	}
	return spec, true, nil
}

func (r *Resolver) credentials(ctx context.Context, namespace string, c storeplanev1.Credentials, copyName string, out *Store) error {
	switch c.Source {
	case storeplanev1.CredentialsSecret:
		s, err := r.secret(ctx, c.SecretRef.Namespace, c.SecretRef.Name, "credentials.secretRef")
		if err != nil {
			return err
		}
		out.Copy = pick(func(key string) []byte { return s.Data[key] })
		out.Print = PrintOf(s)
		if len(out.Copy) == 0 {
			return problem(backupv1.ReasonCredentialsMissing, "credentials.secretRef names Secret %s, which has none of the keys that a store's credentials have", s.Name)
		}
	case storeplanev1.CredentialsEnvironment:
		out.Copy = pick(func(key string) []byte { return []byte(r.Getenv(key)) })
		if len(out.Copy) == 0 {
			return problem(backupv1.ReasonCredentialsMissing, "credentials.source is Environment, and the provider's has no credentials of a store")
		}
	case storeplanev1.CredentialsInjectedIdentity:
		out.ServiceAccount = c.ServiceAccountName
		out.Print = c.ServiceAccountName
		return r.account(ctx, namespace, c.ServiceAccountName)
	case storeplanev1.CredentialsNone:
	}
	if len(out.Copy) > 0 {
		out.Secret = copyName
	}
	return nil
}

func (r *Resolver) account(ctx context.Context, namespace, name string) error {
	err := r.Reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &corev1.ServiceAccount{})
	if kerrors.IsNotFound(err) {
		return problem(backupv1.ReasonServiceAccountNotFound, "credentials.serviceAccountName names ServiceAccount %s, which does not exist in namespace %s", name, namespace)
	}
	if err != nil {
		return fmt.Errorf("cannot get ServiceAccount %s/%s: %w", namespace, name, err)
	}
	return nil
}

func pick(get func(string) []byte) map[string][]byte {
	out := map[string][]byte{}
	for _, key := range backup.CredentialKeys {
		if v := get(key); len(v) > 0 {
			out[key] = v
		}
	}
	return out
}
