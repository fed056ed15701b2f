//go:build e2e

package platform

import (
	"context"
	"fmt"
	"maps"
	"time"

	"sigs.k8s.io/e2e-framework/klient/wait"

	"github.com/storeplane/storeplane/test/e2e/harness"
	"github.com/storeplane/storeplane/test/e2e/manifests"
)

const (
	// ingressNamespace is where the ingress controller runs.
	ingressNamespace = suiteName + "-ingress"
	// ingressClass is the class that the controller serves.
	ingressClass = suiteName
	// ingressHost is the address of the controller's Service.
	ingressHost = "traefik." + ingressNamespace + ".svc"
)

// startIngress starts an ingress controller that serves the suite's own class.
func startIngress(ctx context.Context) error {
	return once.Do("ingress", func() error {
		if err := apply(ctx, ingressNamespace, "traefik/controller.yaml", nil); err != nil {
			return err
		}
		return available(ctx, ingressNamespace, "traefik")
	})
}

// apply creates the objects of a manifest in a namespace of the suite.
func apply(ctx context.Context, ns, file string, more map[string]string) error {
	if err := namespace(ctx, ns); err != nil {
		return err
	}
	values := map[string]string{"SUITE": suiteName, "NAMESPACE": ns, "REGISTRY": cluster.Registry}
	maps.Copy(values, more)
	us, err := manifests.ReadAll(file, values)
	if err != nil {
		return err
	}
	for _, u := range us {
		if _, err := cluster.Create(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

// available waits until a Deployment has an available pod.
func available(ctx context.Context, ns, name string) error {
	have := int64(0)
	err := wait.For(func(ctx context.Context) (bool, error) {
		u, err := cluster.Get(ctx, "Deployment", ns, name)
		have = harness.Number(u, "status", "availableReplicas")
		return have > 0, err
	}, wait.WithContext(ctx), wait.WithTimeout(2*time.Minute), wait.WithInterval(time.Second), wait.WithImmediate())
	if err != nil {
		return fmt.Errorf("cannot wait for Deployment %s/%s, which has %d pods: %w", ns, name, have, err)
	}
	return nil
}
