package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// standIns measures how long Restores take to begin beside what n shops leave in the provider's caches. Only that is created,
// and Crossplane is scaled to zero meanwhile: to compose as many shops takes hours on a small machine.
func (b *bench) standIns(ctx context.Context, n int) (result, error) {
	r := result{kind: shops, n: n}
	err := b.cluster.WithoutCore(ctx, time.Minute, func() (err error) {
		// Crossplane would compose what is left.
		defer func() { err = errors.Join(err, b.removeStandIns(ctx)) }()
		names := make([]string, n)
		for i := range n {
			names[i] = fmt.Sprintf("s%04d", i)
		}
		start := time.Now()
		err = each(names, func(name string) error {
			for _, u := range b.standIn(name) {
				if _, err := b.cluster.Create(ctx, u); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		sayf("what %d EcommercePlatforms leave is created after %.0fs", n, time.Since(start).Seconds())
		r.restored, err = b.restore(ctx)
		return err
	})
	return r, err
}

// standInKinds are the resources of which stand-ins are.
var standInKinds = []schema.GroupVersionResource{
	shops.resource, {Group: "apps.example.com", Version: "v1", Resource: "databaseclusters"}, webApps.resource,
	{Group: "apps", Version: "v1", Resource: "deployments"}, {Group: "apps", Version: "v1", Resource: "statefulsets"}, {Version: "v1", Resource: "secrets"},
}

// removeStandIns removes all stand-ins, also after an interrupt. Nothing else of these kinds is in the namespace.
func (b *bench) removeStandIns(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Minute)
	defer cancel()
	for _, kind := range standInKinds {
		all := b.cluster.Dynamic.Resource(kind).Namespace(namespace)
		if err := all.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			return fmt.Errorf("cannot delete the %s: %w", kind.Resource, err)
		}
		err := b.until(ctx, 5*time.Minute, "the "+kind.Resource+" to be gone", func() (bool, error) {
			list, err := all.List(ctx, metav1.ListOptions{Limit: 1})
			return err == nil && len(list.Items) == 0, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// measureStandIns appends to results what is measured beside stand-ins, if that is asked for, and reports it.
func (b *bench) measureStandIns(ctx context.Context, results []result) ([]result, error) {
	n := b.cli.Alone
	if n == 0 {
		return results, nil
	}
	r, err := b.standIns(ctx, n)
	if err != nil {
		return results, fmt.Errorf("cannot measure Restores beside %d EcommercePlatforms without Crossplane: %w", n, err)
	}
	results = append(results, r)
	return results, b.cli.report(results)
}

// standIn returns the objects of a shop that the provider watches: claims, workloads and Secrets. Without replicas no pods
// run for them.
func (b *bench) standIn(name string) []*unstructured.Unstructured {
	object := func(apiVersion, kind, name string, content map[string]any) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: content}
		u.SetAPIVersion(apiVersion)
		u.SetKind(kind)
		u.SetNamespace(namespace)
		u.SetName(name)
		return u
	}
	workload := func(kind, name string) *unstructured.Unstructured {
		labels := map[string]any{"app": name}
		spec := map[string]any{
			"replicas": int64(0), "selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{
				"containers": []any{map[string]any{"name": "main", "image": b.cluster.Registry + "/shop-frontend:v1"}},
			}},
		}
		if kind == "StatefulSet" {
			spec["serviceName"] = name
		}
		return object("apps/v1", kind, name, map[string]any{"spec": spec})
	}
	database := name + "-database"
	out := []*unstructured.Unstructured{
		object("platform.example.com/v1", "EcommercePlatform", name, map[string]any{"spec": shops.spec(b.cluster.Registry, "0")}),
		object("apps.example.com/v1", "DatabaseCluster", database, map[string]any{"spec": map[string]any{"version": "17", "size": int64(1)}}),
		workload("StatefulSet", database+"-postgresql"),
	}
	for _, part := range []string{name + "-frontend", name + "-backend"} {
		out = append(out,
			object("apps.example.com/v1", "WebApp", part, map[string]any{"spec": webApps.spec(b.cluster.Registry, "0")}),
			workload("Deployment", part+"-web"),
		)
	}
	for _, s := range []string{"-ca", "-tls", "-control-tls", "-connection", "-credentials", "-patroni", "-backup-tls", "-monitoring"} {
		out = append(out, object("v1", "Secret", database+s, map[string]any{"stringData": map[string]any{"value": strings.Repeat("x", 800)}}))
	}
	return out
}
