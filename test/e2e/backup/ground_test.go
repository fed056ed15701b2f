//go:build e2e

package backup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/storeplane/storeplane/test/e2e/harness"
	"github.com/storeplane/storeplane/test/e2e/manifests"
	"github.com/storeplane/storeplane/test/e2e/suite"
)

// dataPod is the name of the pod in manifests/backup/data.yaml.
const dataPod = "e2e-data"

// ground is a namespace with stores and databases, each of which the first check that needs it
// starts.
type ground struct {
	namespace string

	world *harness.World
	once  suite.Once

	// bulk is how many MiB of random bytes the databases have beside their tables.
	bulk string

	// sums are the checksums of the databases that are backed up, by server.
	sums map[string]string
}

func newGround(namespace string) *ground {
	return &ground{namespace: namespace, once: suite.Once{}, bulk: "0", sums: map[string]string{}}
}

// ready creates the namespace with its volumes and the pod with the command data, once.
func (g *ground) ready(ctx context.Context) error {
	return g.once.Do("ground", func() error {
		if err := cluster.CreateNamespace(ctx, g.namespace); err != nil {
			return err
		}
		var err error
		if g.world, err = cluster.Watch(ctx, g.namespace); err != nil {
			return err
		}
		for _, e := range engines {
			if err := g.create(ctx, "backup/volume.yaml", map[string]string{"NAME": e.volume()}); err != nil {
				return err
			}
		}
		if err := g.create(ctx, "backup/data.yaml", nil); err != nil {
			return err
		}
		return g.world.Await(ctx, started, "pod "+dataPod+" to run", func() (bool, string) {
			phase := harness.Field(g.world.Get("Pod", dataPod), "status", "phase")
			return phase == "Running", "it is " + phase
		})
	})
}

// create creates the object of a file.
func (g *ground) create(ctx context.Context, file string, values map[string]string) error {
	all := map[string]string{"NAMESPACE": g.namespace, "REGISTRY": cluster.Registry}
	maps.Copy(all, values)
	u, err := manifests.Read(file, all)
	if err != nil {
		return err
	}
	_, err = cluster.Create(ctx, u)
	return err
}

// secret creates a Secret with these texts.
func (g *ground) secret(ctx context.Context, name string, texts map[string]string) error {
	return cluster.CreateSecret(ctx, g.namespace, name, texts)
}

// serve starts a server on a volume of its own and waits until it is available.
func (g *ground) serve(ctx context.Context, file, name, port string) error {
	values := map[string]string{"NAME": name, "PORT": port}
	for _, f := range []string{"backup/volume.yaml", "backup/service.yaml", file} {
		if err := g.create(ctx, f, values); err != nil {
			return err
		}
	}
	return g.available(ctx, name)
}

// available waits until the pod of a server is available.
func (g *ground) available(ctx context.Context, name string) error {
	return g.world.Await(ctx, started, name+" to be available", func() (bool, string) {
		d := g.world.Get("Deployment", name)
		n := harness.Number(d, "status", "availableReplicas")
		current := harness.Number(d, "status", "observedGeneration") >= harness.Number(d, "metadata", "generation")
		return n == 1 && current, fmt.Sprintf("%d pods are", n)
	})
}

// scaleS3 scales the S3 server to zero, or back to one.
func (g *ground) scaleS3(ctx context.Context, replicas int64) error {
	const name = "s3"
	u, err := cluster.Patch(ctx, "Deployment", g.namespace, name, harness.Patch{"spec": harness.Patch{"replicas": replicas}})
	if err != nil {
		return err
	}
	if err := g.world.AwaitSeen(ctx, u); err != nil {
		return err
	}
	if replicas > 0 {
		return g.available(ctx, name)
	}
	return g.world.Await(ctx, soon, name+" to be gone", func() (bool, string) {
		left := g.pods("app", name)
		return len(left) == 0, fmt.Sprintf("%v are there", left)
	})
}

// pods returns the names of the pods with a label.
func (g *ground) pods(label, value string) []string {
	var out []string
	for _, p := range g.world.List("Pod") {
		if p.GetLabels()[label] == value {
			out = append(out, p.GetName())
		}
	}
	return out
}

// data runs the command data in its pod.
func (g *ground) data(ctx context.Context, stdin string, args ...string) (string, error) {
	return cluster.Exec(ctx, g.namespace, dataPod, "data", strings.NewReader(stdin), append([]string{"data"}, args...)...)
}

// on runs the command data in the pod of a store.
func (g *ground) on(ctx context.Context, store string, args ...string) (string, error) {
	pods := g.pods("app", store)
	if len(pods) == 0 {
		return "", errors.New("cannot look at store " + store + ": it has no pod")
	}
	return cluster.Exec(ctx, g.namespace, pods[0], store, nil, append([]string{"data"}, args...)...)
}
