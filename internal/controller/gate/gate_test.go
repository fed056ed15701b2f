package gate_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	xpgate "github.com/crossplane/crossplane-runtime/v2/pkg/gate"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/storeplane/storeplane/internal/controller/gate"
)

var (
	group  = schema.GroupVersion{Group: "apps.example.com", Version: "v1"}
	web    = group.WithKind("WebApp")
	worker = group.WithKind("Worker")
)

// server reports the kinds, or the error, that the test has set.
type server struct {
	mu    sync.Mutex
	err   error
	kinds map[schema.GroupVersionKind]bool
	asked int
}

func (s *server) set(err error, kinds ...schema.GroupVersionKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err, s.kinds = err, map[schema.GroupVersionKind]bool{}
	for _, k := range kinds {
		s.kinds[k] = true
	}
}

func (s *server) serves(k schema.GroupVersionKind) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	return s.kinds[k], s.err
}

// TestGate: controllers start only when a kind is served, which is after its definition is
// established.
func TestGate(t *testing.T) {
	type step struct {
		reason      string
		established []schema.GroupVersionKind
		err         error
		served      []schema.GroupVersionKind
		stopped     bool
		want        int
	}
	cases := map[string]struct {
		reason string
		steps  []step
	}{
		"Served": {
			reason: "What is served begins when its definition is established.",
			steps: []step{
				{reason: "not established", served: []schema.GroupVersionKind{web, worker}},
				{reason: "one of two", established: []schema.GroupVersionKind{web}, served: []schema.GroupVersionKind{web, worker}},
				{reason: "both", established: []schema.GroupVersionKind{worker}, served: []schema.GroupVersionKind{web, worker}, want: 1},
			},
		},
		"Late": {
			reason: "It begins once, when the last kind is served.",
			steps: []step{
				{reason: "established only", established: []schema.GroupVersionKind{web, worker}},
				{reason: "one of two", served: []schema.GroupVersionKind{web}},
				{reason: "both", served: []schema.GroupVersionKind{web, worker}, want: 1},
				{reason: "established again", established: []schema.GroupVersionKind{web, worker}, served: []schema.GroupVersionKind{web, worker}, want: 1},
			},
		},
		"Silent": {
			reason: "An API server that does not answer is asked again.",
			steps: []step{
				{reason: "silent", established: []schema.GroupVersionKind{web, worker}, err: errors.New("no route")},
				{reason: "back", served: []schema.GroupVersionKind{web, worker}, want: 1},
			},
		},
		"Stopped": {
			reason: "Nothing begins after the end.",
			steps: []step{
				{reason: "established only", established: []schema.GroupVersionKind{web, worker}},
				{reason: "stopped", stopped: true},
				{reason: "served", served: []schema.GroupVersionKind{web, worker}},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				api := &server{}
				g := gate.New(ctx, new(xpgate.Gate[schema.GroupVersionKind]), api.serves, logging.NewNopLogger())
				var mu sync.Mutex
				got := 0
				g.Register(func() {
					mu.Lock()
					defer mu.Unlock()
					got++
				}, web, worker)
				for _, s := range tc.steps {
					api.set(s.err, s.served...)
					if s.stopped {
						cancel()
					}
					for _, k := range s.established {
						g.Set(k, true)
					}
					time.Sleep(time.Minute)
					synctest.Wait()
					mu.Lock()
					if got != s.want {
						t.Errorf("%s (%s): it began %d times, want %d", tc.reason, s.reason, got, s.want)
					}
					mu.Unlock()
				}
			})
		})
	}
}

// TestGateAsksSeldom: a kind that was deleted again causes at most one request in five seconds.
func TestGateAsksSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		api := &server{}
		g := gate.New(ctx, new(xpgate.Gate[schema.GroupVersionKind]), api.serves, logging.NewNopLogger())
		g.Register(func() { t.Error("it began without its kind") }, web)
		g.Set(web, true)
		time.Sleep(time.Hour)
		synctest.Wait()
		api.mu.Lock()
		defer api.mu.Unlock()
		if most := int(time.Hour/(5*time.Second)) + 20; api.asked > most {
			t.Errorf("it asked %d times in an hour, want at most %d", api.asked, most)
		}
	})
}

func TestIn(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{group})
	mapper.Add(web, meta.RESTScopeNamespace)
	cases := map[string]struct {
		mapper meta.RESTMapper
		kind   schema.GroupVersionKind
		want   bool
		err    string
	}{
		"Served":    {mapper: mapper, kind: web, want: true},
		"NotServed": {mapper: mapper, kind: worker},
		"Error":     {mapper: silent{}, kind: web, err: "cannot find out whether WebApp is served: no route"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := gate.In(tc.mapper)(tc.kind)
			said := ""
			if err != nil {
				said = err.Error()
			}
			if diff := cmp.Diff(tc.err, said); diff != "" {
				t.Errorf("error: -want, +got:\n%s", diff)
			}
			if got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

// silent is an API server that cannot be reached.
type silent struct{ meta.RESTMapper }

func (silent) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	return nil, errors.New("no route")
}
