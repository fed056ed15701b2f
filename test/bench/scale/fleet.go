package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// kind is a kind of claims that is measured.
type kind struct {
	name, plural string
	resource     schema.GroupVersionResource

	// web is the suffix of the name of the Deployment that an edit of a claim changes.
	web  string
	spec func(registry, edit string) map[string]any

	// within is the timeout for all claims of a fleet to be Ready.
	within time.Duration
}

// scheduling adds to a spec what schedules its pods on simulated nodes.
func scheduling(spec map[string]any) map[string]any {
	spec["nodeSelector"] = map[string]any{fake: "true"}
	spec["tolerations"] = []any{map[string]any{"key": fake, "operator": "Exists"}}
	return spec
}

func edited(value string) []any { return []any{map[string]any{"name": "EDIT", "value": value}} }

var (
	webApps = kind{
		name: "WebApp", plural: "WebApps", web: "-web", within: 30 * time.Minute,
		resource: schema.GroupVersionResource{Group: "apps.example.com", Version: "v1", Resource: "webapps"},
		spec: func(registry, edit string) map[string]any {
			return scheduling(map[string]any{"image": registry + "/shop-frontend:v1", "env": edited(edit)})
		},
	}
	shops = kind{
		name: "EcommercePlatform", plural: "EcommercePlatforms", web: "-frontend-web", within: 75 * time.Minute,
		resource: schema.GroupVersionResource{Group: "platform.example.com", Version: "v1", Resource: "ecommerceplatforms"},
		spec: func(registry, edit string) map[string]any {
			return map[string]any{
				"environment": "development",
				"frontend":    scheduling(map[string]any{"image": registry + "/shop-frontend:v1", "env": edited(edit)}),
				"backend":     scheduling(map[string]any{"image": registry + "/shop-backend:v1", "migration": map[string]any{"args": []any{"migrate"}}}),
				"database":    scheduling(map[string]any{"storage": "1Gi", "storageClassName": storageClass}),
				"cache":       map[string]any{"enabled": false},
			}
		},
	}
)

// fleet is a number of claims of one kind, with what is observed of them.
type fleet struct {
	kind  kind
	names []string
	stop  context.CancelFunc

	mu     sync.Mutex
	claims map[string]seen
	runs   map[string]string // value of the variable EDIT, by Deployment
	changed,
	filed map[string]time.Time
}

// seen is the observed state of a claim.
type seen struct {
	ready      bool
	open       bool // whether Crossplane's circuit breaker is open
	conditions string
}

// watch starts to watch the claims of a kind and their Deployments.
func (b *bench) watch(ctx context.Context, k kind) (*fleet, error) {
	ctx, cancel := context.WithCancel(ctx)
	f := &fleet{kind: k, stop: cancel, claims: map[string]seen{}, runs: map[string]string{}, changed: map[string]time.Time{}, filed: map[string]time.Time{}}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(b.cluster.Dynamic, 0, namespace, nil)
	for gvr, note := range map[schema.GroupVersionResource]func(*unstructured.Unstructured){
		k.resource: f.noteClaim,
		{Group: "apps", Version: "v1", Resource: "deployments"}: f.noteDeployment,
	} {
		informer := factory.ForResource(gvr).Informer()
		err := informer.SetTransform(func(o any) (any, error) {
			if u, ok := o.(*unstructured.Unstructured); ok {
				u.SetManagedFields(nil)
			}
			return o, nil
		})
		if err != nil {
			cancel()
			return nil, fmt.Errorf("cannot watch %s: %w", gvr.Resource, err)
		}
		take := func(o any) {
			if u, ok := o.(*unstructured.Unstructured); ok {
				f.mu.Lock()
				note(u)
				f.mu.Unlock()
			}
		}
		_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: take, UpdateFunc: func(_, o any) { take(o) }})
		if err != nil {
			cancel()
			return nil, fmt.Errorf("cannot watch %s: %w", gvr.Resource, err)
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return f, ctx.Err()
}

func (f *fleet) noteClaim(u *unstructured.Unstructured) {
	c := harness.ClaimOf(u)
	f.claims[u.GetName()] = seen{
		ready: c.Ready() && c.Status.ReadyGeneration == u.GetGeneration(), open: c.Condition("Responsive").Status == metav1.ConditionFalse,
		conditions: c.String(),
	}
}

func (f *fleet) noteDeployment(u *unstructured.Unstructured) {
	containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	for _, c := range containers {
		container, _ := c.(map[string]any)
		env, _, _ := unstructured.NestedSlice(container, "env")
		for _, e := range env {
			if e, _ := e.(map[string]any); e["name"] == "EDIT" {
				value, _ := e["value"].(string)
				if f.runs[u.GetName()] != value {
					f.runs[u.GetName()], f.changed[u.GetName()] = value, time.Now()
				}
			}
		}
	}
}

// file creates n claims as fast as the API server accepts them, ten at a time.
func (b *bench) file(ctx context.Context, f *fleet, n int) error {
	for i := range n {
		f.names = append(f.names, fmt.Sprintf("c%04d", i))
	}
	return f.each(func(name string) error {
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": f.kind.resource.GroupVersion().String(), "kind": f.kind.name,
			"metadata": map[string]any{"name": name, "namespace": namespace},
			"spec":     f.kind.spec(b.cluster.Registry, "0"),
		}}
		_, err := b.cluster.Dynamic.Resource(f.kind.resource).Namespace(namespace).Create(ctx, u, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("cannot file %s: %w", name, err)
		}
		return nil
	})
}

// edit sets the variable EDIT of a claim to value.
func (b *bench) edit(ctx context.Context, f *fleet, name, value string) error {
	spec := harness.Patch{"env": edited(value)}
	if f.kind.name == shops.name {
		spec = harness.Patch{"frontend": spec}
	}
	// An API server that has just started refuses claims for up to 30 s (docs/guardrails.md), and whoever edits one
	// tries again.
	const refused = "failed to configure policy"
	var edited error
	err := b.until(ctx, time.Minute, "the edit of "+name+" to be accepted", func() (bool, error) {
		_, edited = b.cluster.Patch(ctx, f.kind.name, namespace, name, harness.Patch{"spec": spec})
		return edited == nil || !strings.Contains(edited.Error(), refused), edited
	})
	return cmp.Or(edited, err)
}

// each calls do for each claim, ten at a time, and returns one of the errors.
func (f *fleet) each(do func(name string) error) error { return each(f.names, do) }

// each calls do for each name, ten at a time, and returns one of the errors.
func each(all []string, do func(name string) error) error {
	names, errs := make(chan string), make(chan error, 10)
	for range cap(errs) {
		go func() {
			var err error
			for name := range names {
				if e := do(name); e != nil && err == nil {
					err = e
				}
			}
			errs <- err
		}()
	}
	for _, name := range all {
		names <- name
	}
	close(names)
	var err error
	for range cap(errs) {
		if e := <-errs; e != nil {
			err = e
		}
	}
	return err
}

// pending returns the number of claims that are not ready with the value, and the conditions of
// one of them.
func (f *fleet) pending(value string) (n int, example string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range f.names {
		if c := f.claims[name]; !c.ready || f.runs[name+f.kind.web] != value {
			n, example = n+1, name+": "+c.conditions
		}
	}
	return n, example
}

// open returns the number of claims whose circuit breaker is open.
func (f *fleet) open() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, c := range f.claims {
		if c.open {
			n++
		}
	}
	return n
}

// since returns when a claim's Deployment got the value, or the zero time if it does not have it.
func (f *fleet) since(name, value string) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.runs[name+f.kind.web] != value {
		return time.Time{}
	}
	return f.changed[name+f.kind.web]
}
