package appconfig

import (
	"cmp"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
)

// ledger records what is being rolled out in each namespace. Decisions are made and recorded one at
// a time, so that two workers do not both take the last place of a budget.
type ledger struct {
	mu sync.Mutex
	by map[types.NamespacedName]Other
}

func newLedger() *ledger { return &ledger{by: map[types.NamespacedName]Other{}} }

// decide decides with the other AppConfigs as they are in the ledger, or else as they are cached.
func (l *ledger) decide(s *State, cached []Other) Decision {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := types.NamespacedName{Namespace: s.AppConfig.Namespace, Name: s.AppConfig.Name}
	s.Others = nil
	for _, o := range cached {
		if _, ok := l.by[types.NamespacedName{Namespace: key.Namespace, Name: o.Name}]; !ok && o.Name != key.Name {
			s.Others = append(s.Others, o)
		}
	}
	for k, o := range l.by {
		if k.Namespace == key.Namespace && k.Name != key.Name {
			s.Others = append(s.Others, o)
		}
	}
	slices.SortFunc(s.Others, func(a, b Other) int { return cmp.Compare(a.Name, b.Name) })
	d := Decide(s)
	if o, ok := otherOf(s.AppConfig.Name, s.paused(), &d.Observation); ok {
		l.by[key] = o
	} else {
		delete(l.by, key)
	}
	return d
}

// forget drops an AppConfig that was deleted.
func (l *ledger) forget(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.by, key)
}

// otherOf returns an AppConfig as it matters to others. It returns false if it rolls nothing out.
func otherOf(name string, paused bool, o *configv1.AppConfigObservation) (Other, bool) {
	out := Other{Name: name}
	if o.Pending != "" && o.PendingSince != nil {
		out.Since = o.PendingSince.Time
	}
	for _, t := range o.Targets {
		k := Key{Kind: t.Kind, Name: t.Name}
		switch {
		case t.Kind == configv1.CronJob:
		case t.State == configv1.TargetProgressing:
			out.Progressing = append(out.Progressing, k)
		case t.State == configv1.TargetWaiting && !paused && o.Failed == nil:
			out.Waiting = append(out.Waiting, k)
		}
	}
	return out, !out.Since.IsZero() || len(out.Progressing) > 0
}
