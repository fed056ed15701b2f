package appconfig

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/internal/appconfig"
	"github.com/storeplane/storeplane/internal/controller/kube"
	"github.com/storeplane/storeplane/internal/label"
)

// secretAnnotation on a bundle's ConfigMap means that a Secret belongs to it.
const secretAnnotation = "config.example.com/with-secret" //nolint:gosec // The name is not a secret.

// keyField is the key of the Secret that holds the key for the names of bundles.
const keyField = "key"

// keyBytes is the length of a generated key.
const keyBytes = 32

// meta returns the metadata of an object that belongs to an AppConfig. Its only owner is the claim
// that owns the AppConfig, if one does, and which creates the pods too: what pods need to start
// again must not be deleted with the AppConfig.
func meta(a *configv1.AppConfig, name string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{
		Namespace: a.Namespace, Name: name,
		Labels: kube.Inherit(map[string]string{configv1.AppConfigLabel: a.Name, label.ManagedBy: label.Storeplane}, a),
	}
	if c := metav1.GetControllerOf(a); c != nil {
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: c.APIVersion, Kind: c.Kind, Name: c.Name, UID: c.UID}}
	}
	return m
}

// objects returns the ConfigMap and the Secret that hold a content under a name. The Secret is nil
// if the content has no secret values.
func objects(a *configv1.AppConfig, name string, c appconfig.Content) (*corev1.ConfigMap, *corev1.Secret) {
	config := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: meta(a, name), Data: c.Config}
	if len(c.Secret) == 0 {
		return config, nil
	}
	config.Annotations = map[string]string{secretAnnotation: "true"}
	return config, &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: meta(a, name), Type: corev1.SecretTypeOpaque, Data: c.Secret}
}

// isOurs reports whether an object belongs to an AppConfig.
func isOurs(a *configv1.AppConfig, o metav1.Object) bool {
	return o.GetLabels()[configv1.AppConfigLabel] == a.Name
}

// make creates a bundle. The Secret comes first: the ConfigMap shows that the bundle is complete.
func (e *external) make(ctx context.Context, a *configv1.AppConfig, name string, c appconfig.Content) error {
	config, secret := objects(a, name, c)
	config.Immutable = new(true)
	existed := false
	if secret != nil {
		secret.Immutable = new(true)
		there, err := e.create(ctx, secret)
		if err != nil {
			return err
		}
		existed = there
	}
	there, err := e.create(ctx, config)
	if err != nil {
		return err
	}
	if existed = existed || there; existed {
		taken, found, err := e.taken(ctx, a.Namespace, name, c)
		if err != nil {
			return err
		}
		if !found || taken != "" {
			return fmt.Errorf("cannot make bundle %s/%s: an object of that name exists that is not this bundle: delete it if nothing refers to it", a.Namespace, name)
		}
	}
	e.note.made[name] = true
	return nil
}

// create creates an object, and reports whether it existed already.
func (e *external) create(ctx context.Context, o client.Object) (bool, error) {
	err := e.kube.Client.Create(ctx, o, kube.Owner)
	if kerrors.IsAlreadyExists(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot create %s %s/%s: %w", o.GetObjectKind().GroupVersionKind().Kind, o.GetNamespace(), o.GetName(), err)
	}
	return false, nil
}

// read returns the content of a bundle or of the stable name, and whether all of it exists.
func (e *external) read(ctx context.Context, namespace, name string) (appconfig.Content, bool, error) {
	config, secret := &corev1.ConfigMap{}, &corev1.Secret{}
	found, err := e.kube.Find(ctx, namespace, name, config)
	if err != nil || !found {
		return appconfig.Content{}, false, err
	}
	if config.Annotations[secretAnnotation] == "" {
		return appconfig.ContentOf(config, nil), true, nil
	}
	found, err = e.kube.Find(ctx, namespace, name, secret)
	return appconfig.ContentOf(config, secret), found, err
}

// prove returns a Problem if an existing bundle does not hold the wanted content, or can be
// changed. Other clients can create a ConfigMap of its name, and the name of a content without
// secrets is predictable.
func (e *external) prove(ctx context.Context, a *configv1.AppConfig, x existing, name string, want appconfig.Content) (*appconfig.Problem, error) {
	seen := x.version(name)
	if e.note.proven == seen && seen.config != "" {
		return nil, nil
	}
	taken, found, err := e.taken(ctx, a.Namespace, name, want)
	switch {
	case err != nil || !found:
		// A bundle that does not exist is created later.
		return nil, err
	case taken != "":
		return &appconfig.Problem{Reason: configv1.ReasonBundleTaken, Message: "ConfigMap " + name + " is in the way: it has the name of this configuration, and " + taken + ". Check where it came from, and delete it"}, nil
	}
	e.note.proven = seen
	return nil, nil
}

// taken returns why what exists under a bundle's name is not that bundle, or "", and whether it
// exists. It is read past the cache, whatever its labels are.
func (e *external) taken(ctx context.Context, namespace, name string, want appconfig.Content) (why string, found bool, _ error) {
	config, secret := &corev1.ConfigMap{}, (*corev1.Secret)(nil)
	if found, err := e.kube.Find(ctx, namespace, name, config); err != nil || !found {
		return "", false, err
	}
	fixed := ptr.Deref(config.Immutable, false)
	if config.Annotations[secretAnnotation] != "" {
		secret = &corev1.Secret{}
		if found, err := e.kube.Find(ctx, namespace, name, secret); err != nil || !found {
			return "", false, err
		}
		fixed = fixed && ptr.Deref(secret.Immutable, false)
	}
	switch {
	case !appconfig.ContentOf(config, secret).Equal(want):
		return "another content", true, nil
	case !fixed:
		return "can be changed", true, nil
	}
	return "", true, nil
}

// content returns the content of a bundle: what is wanted is known, any other is read once.
func (e *external) content(ctx context.Context, a *configv1.AppConfig, name string) (appconfig.Content, bool, error) {
	if c, ok := e.contents[name]; ok {
		return c, true, nil
	}
	c, found, err := e.read(ctx, a.Namespace, name)
	if found && err == nil {
		e.contents[name] = c
	}
	return c, found, err
}

// existing are the objects of an AppConfig, as metadata by their names, from the cache.
type existing struct {
	configs, secrets map[string]*metav1.PartialObjectMetadata
}

func (e *external) existing(ctx context.Context, a *configv1.AppConfig) (existing, error) {
	var out existing
	for _, l := range []struct {
		kind string
		into *map[string]*metav1.PartialObjectMetadata
	}{{"ConfigMapList", &out.configs}, {"SecretList", &out.secrets}} {
		list := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: l.kind}}
		if err := e.kube.Client.List(ctx, list, client.InNamespace(a.Namespace), client.MatchingLabels{configv1.AppConfigLabel: a.Name}); err != nil {
			return existing{}, fmt.Errorf("cannot list the bundles of AppConfig %s/%s: %w", a.Namespace, a.Name, err)
		}
		*l.into = map[string]*metav1.PartialObjectMetadata{}
		for i := range list.Items {
			(*l.into)[list.Items[i].Name] = &list.Items[i]
		}
	}
	return out, nil
}

// version returns the version of a bundle, as far as it exists.
func (x existing) version(name string) version {
	v := version{name: name}
	if c := x.configs[name]; c != nil {
		v.config = c.ResourceVersion
	}
	if s := x.secrets[name]; s != nil {
		v.secret = s.ResourceVersion
	}
	return v
}

// bundles returns the names of the existing bundles, sorted, complete or not.
func (x existing) bundles(application string) []string {
	names := map[string]bool{}
	for _, m := range []map[string]*metav1.PartialObjectMetadata{x.configs, x.secrets} {
		for n := range m {
			if appconfig.IsBundle(application, n) {
				names[n] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// whole returns the names of the complete bundles.
func (x existing) whole(application string) map[string]bool {
	out := map[string]bool{}
	for n, c := range x.configs {
		if appconfig.IsBundle(application, n) && (c.Annotations[secretAnnotation] == "" || x.secrets[n] != nil) {
			out[n] = true
		}
	}
	return out
}

// name returns the name of the bundle of a content. After the loss of the key, an existing bundle
// with the same content is used: a new name alone causes no rollout.
func (e *external) name(ctx context.Context, s *State, x existing, c appconfig.Content) (string, error) {
	a := s.AppConfig
	application := a.Spec.ForProvider.Application
	if len(c.Secret) == 0 {
		return c.Name(application, nil), nil
	}
	key, err := e.key(ctx, s)
	if err != nil {
		return "", err
	}
	name := c.Name(application, key)
	if s.Whole[name] {
		return name, nil
	}
	for _, n := range x.bundles(application) {
		if !s.Whole[n] || x.secrets[n] == nil {
			continue
		}
		have, found, err := e.read(ctx, a.Namespace, n)
		if err != nil {
			return "", err
		}
		if found && have.Equal(c) {
			return n, nil
		}
	}
	return name, nil
}

// key returns the key from which names of contents with secrets are computed. It is generated once.
func (e *external) key(ctx context.Context, s *State) ([]byte, error) {
	a := s.AppConfig
	have := &corev1.Secret{}
	name := appconfig.KeyName(a.Spec.ForProvider.Application)
	found, err := e.kube.Find(ctx, a.Namespace, name, have)
	if err != nil {
		return nil, err
	}
	if found {
		if len(have.Data[keyField]) < keyBytes/2 {
			return nil, fmt.Errorf("cannot name bundles: Secret %s/%s has no key of 16 bytes or more in %q: delete it to have a new one drawn", a.Namespace, name, keyField)
		}
		return have.Data[keyField], nil
	}
	if s.Frozen {
		return nil, errors.New("cannot name bundles: the management policies do not let the key be drawn")
	}
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key) // It never fails.
	secret := &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: meta(a, name), Type: corev1.SecretTypeOpaque, Data: map[string][]byte{keyField: key}}
	if err := e.kube.Client.Create(ctx, secret, kube.Owner); err != nil {
		return nil, fmt.Errorf("cannot create Secret %s/%s: %w", a.Namespace, name, err)
	}
	return key, nil
}
