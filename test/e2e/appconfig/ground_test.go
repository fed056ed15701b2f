//go:build e2e

package appconfig

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/test/e2e/harness"
	"github.com/storeplane/storeplane/test/e2e/manifests"
	"github.com/storeplane/storeplane/test/e2e/suite"
)

// ground is a namespace in which checks create AppConfigs and workloads.
type ground struct {
	namespace string

	world  *harness.World
	client *harness.Client
	once   suite.Once
}

func newGround(namespace string) *ground {
	return &ground{namespace: namespace, once: suite.Once{}}
}

// ready creates the namespace and starts the watch and the client, once.
func (g *ground) ready(ctx context.Context) error {
	return g.once.Do("ground", func() error {
		if err := cluster.CreateNamespace(ctx, g.namespace); err != nil {
			return err
		}
		var err error
		if g.world, err = cluster.Watch(ctx, g.namespace); err != nil {
			return err
		}
		g.client, err = harness.StartClient(ctx, cluster, g.world)
		return err
	})
}

// create creates the object of a file in manifests/appconfig.
func (g *ground) create(ctx context.Context, file string, values map[string]string) error {
	all := map[string]string{"NAMESPACE": g.namespace, "REGISTRY": cluster.Registry, "REPLICAS": "2"}
	maps.Copy(all, values)
	u, err := manifests.Read("appconfig/"+file, all)
	if err != nil {
		return err
	}
	if u, err = cluster.Create(ctx, u); err != nil {
		return err
	}
	return g.world.AwaitSeen(ctx, u)
}

// workload creates the workload of a file for an application.
func (g *ground) workload(ctx context.Context, file, name, application string) error {
	return g.create(ctx, file+".yaml", map[string]string{"NAME": name, "APP": application})
}

// first creates the ConfigMap with an application's options that its workloads read before there is
// an AppConfig.
func (g *ground) first(ctx context.Context, application string) error {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"OPTIONS": "None,Other"}}}
	u.SetName(application + "-first")
	u.SetNamespace(g.namespace)
	_, err := cluster.Create(ctx, u)
	return err
}

// secret creates a Secret with these texts.
func (g *ground) secret(ctx context.Context, name string, texts map[string]string) error {
	return cluster.CreateSecret(ctx, g.namespace, name, texts)
}

// change patches an object and waits until the watch contains the change.
func (g *ground) change(ctx context.Context, kind, name string, p harness.Patch) error {
	u, err := cluster.Patch(ctx, kind, g.namespace, name, p)
	if err != nil {
		return err
	}
	return g.world.AwaitSeen(ctx, u)
}

// ask requests a path from the Service of a WebApp or from a pod.
func (g *ground) ask(ctx context.Context, host, path string) (string, error) {
	a, err := g.client.Do(ctx, harness.Request{Host: host, Port: port, Method: "GET", Path: path})
	if err != nil {
		return "", err
	}
	if a.Status != 200 {
		return "", fmt.Errorf("GET http://%s%s: %d %s", host, path, a.Status, a.Body)
	}
	return a.Body, nil
}

// answers waits until ten requests in a row reach pods that are in a poll. Each may reach another pod, and for a moment one that
// ends, since kube-proxy writes changes once a second.
func (g *ground) answers(ctx context.Context, host, poll string) error {
	deadline := time.Now().Add(soon)
	for in := 0; in < 10; {
		body, err := g.ask(ctx, host, "/poll")
		switch {
		case err != nil:
			return err
		case strings.Contains(body, strconv.Quote(poll)):
			in++
		case time.Now().After(deadline):
			return fmt.Errorf("a pod is not in poll %s: %s", poll, body)
		default:
			in = 0
		}
	}
	return nil
}

// port is the port of the vote app.
const port = 8080
