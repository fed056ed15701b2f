package appconfig

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/internal/appconfig"
	"github.com/storeplane/storeplane/internal/controller/kube"
)

// stableSeen is the bundle that the objects of the stable name were found to hold, and their
// resource versions at that time.
type stableSeen struct {
	config, secret string
	holds          string
}

// seeStable finds out what the stable name holds, and whether its objects belong to the AppConfig.
// They are only read again if their metadata has changed.
func (e *external) seeStable(ctx context.Context, s *State, x existing) error {
	a := s.AppConfig
	name := appconfig.StableName(a.Spec.ForProvider.Application)
	if c, seen := x.configs[name], e.note.stable; c != nil && seen.holds != "" && seen.config == c.ResourceVersion {
		secret := ""
		if m := x.secrets[name]; m != nil {
			secret = m.ResourceVersion
		}
		if secret == seen.secret {
			s.Holds = seen.holds
			return nil
		}
	}
	e.note.stable = stableSeen{}
	config, secret := &corev1.ConfigMap{}, &corev1.Secret{}
	foundConfig, err := e.kube.Find(ctx, a.Namespace, name, config)
	if err != nil {
		return err
	}
	foundSecret, err := e.kube.Find(ctx, a.Namespace, name, secret)
	if err != nil {
		return err
	}
	switch {
	case foundConfig && !isOurs(a, config):
		s.Taken = "ConfigMap " + name
		return nil
	case foundSecret && !isOurs(a, secret):
		s.Taken = "Secret " + name
		return nil
	case !foundConfig:
		return nil
	case !foundSecret:
		secret = nil
	}
	have := appconfig.ContentOf(config, secret)
	for _, b := range []string{config.Annotations[configv1.HoldsAnnotation], s.Wanted, a.Status.AtProvider.Bundle} {
		if b == "" {
			continue
		}
		c, found, err := e.content(ctx, a, b)
		if err != nil {
			return err
		}
		if found && c.Equal(have) {
			s.Holds = b
			e.note.stable = stableSeen{config: config.ResourceVersion, holds: b}
			if secret != nil {
				e.note.stable.secret = secret.ResourceVersion
			}
			return nil
		}
	}
	return nil
}

// publish writes a bundle's content under the stable name. The Secret comes first, since an
// annotation of the ConfigMap names what both hold.
func (e *external) publish(ctx context.Context, a *configv1.AppConfig, bundle string) error {
	c, found, err := e.content(ctx, a, bundle)
	if err != nil || !found {
		return err
	}
	name := appconfig.StableName(a.Spec.ForProvider.Application)
	config, secret := objects(a, name, c)
	if config.Annotations == nil {
		config.Annotations = map[string]string{}
	}
	config.Annotations[configv1.HoldsAnnotation] = bundle

	haveSecret, haveConfig := &corev1.Secret{}, &corev1.ConfigMap{}
	foundSecret, err := e.kube.Find(ctx, a.Namespace, name, haveSecret)
	if err != nil {
		return err
	}
	foundConfig, err := e.kube.Find(ctx, a.Namespace, name, haveConfig)
	if err != nil {
		return err
	}
	if foundSecret && !isOurs(a, haveSecret) || foundConfig && !isOurs(a, haveConfig) {
		// It was created just now, and the next reconciliation reports it.
		return nil
	}
	if secret != nil {
		if err := e.put(ctx, secret, haveSecret, foundSecret); err != nil {
			return err
		}
	}
	if err := e.put(ctx, config, haveConfig, foundConfig); err != nil {
		return err
	}
	if secret == nil && foundSecret {
		return e.kube.Remove(ctx, haveSecret)
	}
	return nil
}

// put creates an object, or replaces the one that exists.
func (e *external) put(ctx context.Context, want, have client.Object, found bool) error {
	kind := want.GetObjectKind().GroupVersionKind().Kind
	if !found {
		if err := e.kube.Client.Create(ctx, want, kube.Owner); err != nil {
			return fmt.Errorf("cannot create %s %s/%s: %w", kind, want.GetNamespace(), want.GetName(), err)
		}
		return nil
	}
	// If another client has changed it since, the update fails and is retried after the object was
	// read again.
	want.SetResourceVersion(have.GetResourceVersion())
	if err := e.kube.Client.Update(ctx, want, kube.Owner); err != nil {
		return fmt.Errorf("cannot update %s %s/%s: %w", kind, want.GetNamespace(), want.GetName(), err)
	}
	return nil
}
