package appconfig

import (
	"context"
	"fmt"
	"slices"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	"github.com/storeplane/storeplane/internal/appconfig"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/health"
)

// readState reads the State of an AppConfig, except for the Others.
func (e *external) readState(ctx context.Context, a *configv1.AppConfig) (*State, error) {
	s := &State{AppConfig: a, Now: e.Now(), Budget: e.budget, Frozen: isFrozen(a)}
	x, err := e.existing(ctx, a)
	if err != nil {
		return nil, err
	}
	s.Whole = x.whole(a.Spec.ForProvider.Application)
	for name := range e.note.made {
		if s.Whole[name] {
			// The cache has caught up.
			delete(e.note.made, name)
			continue
		}
		s.Whole[name] = true
	}
	for _, step := range []func() error{
		func() error { return e.render(ctx, s, x) },
		func() error { return e.seeStable(ctx, s, x) },
		func() error { return e.targets(ctx, s) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	e.existed = x
	return s, nil
}

// isFrozen reports whether the management policies allow no changes.
func isFrozen(a *configv1.AppConfig) bool {
	p := a.GetManagementPolicies()
	return len(p) > 0 && !slices.Contains(p, xpv2.ManagementActionAll) && !slices.Contains(p, xpv2.ManagementActionUpdate)
}

// render renders the wanted content and sets the name of its bundle, or the Problem.
func (e *external) render(ctx context.Context, s *State, x existing) error {
	a := s.AppConfig
	secrets := map[string]map[string][]byte{}
	for _, r := range a.Spec.ForProvider.SecretRefs {
		secret := &corev1.Secret{}
		found, err := e.kube.Find(ctx, a.Namespace, r.Name, secret)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		if _, bound := secret.Annotations[backup.BoundsAnnotation]; bound {
			// A bundle would hold the credentials without their bounds.
			s.Problem = &appconfig.Problem{Reason: configv1.ReasonSecretNotAllowed, Message: "Secret " + r.Name + " holds the platform's credentials of an object store, which are for backups alone: remove it from secretRefs"}
			return nil
		}
		secrets[r.Name] = secret.Data
	}
	c, problem := appconfig.Render(&a.Spec.ForProvider, a.Namespace, secrets)
	if s.Problem = problem; problem != nil {
		return nil
	}
	name, err := e.name(ctx, s, x, c)
	if err != nil {
		return err
	}
	if s.Problem, err = e.prove(ctx, a, x, name, c); s.Problem != nil || err != nil {
		return err
	}
	s.Wanted = name
	e.contents[name] = c
	return nil
}

// targets reads the targets.
func (e *external) targets(ctx context.Context, s *State) error {
	a := s.AppConfig
	list, err := e.workloads(ctx, a)
	if err != nil {
		return err
	}
	e.loads = map[Key]*workload{}
	for _, w := range list {
		e.loads[w.Key] = w
		t := w.target(a)
		// The pods of a target that does not allow changes are not read either: their messages and
		// logs are its own.
		if !t.Missing && t.Closed == "" {
			if err := e.examine(ctx, s, w, &t); err != nil {
				return err
			}
		}
		s.Targets = append(s.Targets, t)
	}
	return nil
}

// examine finds out whether an existing target is as it should be, and what its pods show.
func (e *external) examine(ctx context.Context, s *State, w *workload, t *Target) error {
	a := s.AppConfig
	e.catchUp(w, t)
	if r, ok := e.note.refused[t.Key]; ok {
		if r.uid == w.object.GetUID() && r.bundle == a.Status.AtProvider.Bundle && s.Now.Before(r.until) {
			t.Refused = &r.Refusal
		} else {
			delete(e.note.refused, t.Key)
		}
	}
	// For any other bundle this does not matter: it is replaced anyway.
	if !appconfig.ByOwner(&a.Spec.ForProvider) && t.Bundle != "" && t.Current && (t.Bundle == s.Wanted || t.Bundle == a.Status.AtProvider.Bundle) {
		c, found, err := e.content(ctx, a, t.Bundle)
		if err != nil {
			return err
		}
		if found {
			p := w.plan(a, t.Bundle, c, t.Reader)
			t.Current = p.Current || p.Refusal != ""
		}
	}
	return e.inspect(ctx, s, w, t)
}

// catchUp corrects a target by what was patched, if the cache does not show that yet.
func (e *external) catchUp(w *workload, t *Target) {
	p, ok := e.note.patched[t.Key]
	if !ok {
		return
	}
	if p.uid != w.object.GetUID() || w.object.GetGeneration() >= p.generation {
		delete(e.note.patched, t.Key)
		return
	}
	t.Bundle, t.Annotated, t.Current = p.bundle, true, true
	t.Health = health.Status{State: health.Progressing, Message: "Not all pods are ready"}
	w.observed = false
}

// others returns the other AppConfigs of the namespace that roll something out, from the cache.
func (e *external) others(ctx context.Context, a *configv1.AppConfig) ([]Other, error) {
	l := &configv1.AppConfigList{}
	if err := e.kube.Client.List(ctx, l, client.InNamespace(a.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("cannot list the AppConfigs of namespace %s: %w", a.Namespace, err)
	}
	var out []Other
	for i := range l.Items {
		o := &l.Items[i]
		paused := o.Spec.ForProvider.Rollout != nil && o.Spec.ForProvider.Rollout.Pause
		if other, ok := otherOf(o.Name, paused, &o.Status.AtProvider); ok && o.Name != a.Name && o.DeletionTimestamp == nil {
			out = append(out, other)
		}
	}
	return out, nil
}
