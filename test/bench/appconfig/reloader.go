package main

import (
	"context"
	"crypto/sha1" //nolint:gosec // The measured method uses SHA-1.
	"encoding/hex"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	restclient "k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/storeplane/storeplane/test/plane"
)

// reload simulates Reloader's published method for a number of edits of one ConfigMap to which
// all Deployments of a namespace refer, and returns the requests. For each event the method lists
// the workload kinds, and updates the workloads that refer to the changed object by setting a
// variable to its hash.
func (b *bench) reload(ctx context.Context, namespace string, edits int) (counts, error) {
	p, err := newProxy(ctx, b.plane.Config(plane.Admin))
	if err != nil {
		return nil, err
	}
	defer func() { _ = p.server.Close() }()
	c, err := client.New(&restclient.Config{Host: p.address, QPS: -1}, client.Options{Scheme: b.admin.Scheme()})
	if err != nil {
		return nil, fmt.Errorf("cannot make a client: %w", err)
	}
	p.reset()
	for i := range edits {
		sum := sha1.Sum([]byte{byte(i)}) //nolint:gosec // The measured method uses SHA-1.
		if err := reloadOnce(ctx, c, namespace, hex.EncodeToString(sum[:])); err != nil {
			return nil, err
		}
	}
	return p.reset(), nil
}

func reloadOnce(ctx context.Context, c client.Client, namespace, hash string) error {
	deployments := &appsv1.DeploymentList{}
	for _, l := range []client.ObjectList{deployments, &appsv1.DaemonSetList{}, &appsv1.StatefulSetList{}, &batchv1.CronJobList{}, &batchv1.JobList{}} {
		if err := c.List(ctx, l, client.InNamespace(namespace)); err != nil {
			return fmt.Errorf("cannot list %T: %w", l, err)
		}
	}
	for i := range deployments.Items {
		d := &deployments.Items[i]
		env := d.Spec.Template.Spec.Containers[0].Env
		n := 0
		for n < len(env) && env[n].Name != "STAKATER_BIG_CONFIG_CONFIGMAP" {
			n++
		}
		if n == len(env) {
			env = append(env, corev1.EnvVar{Name: "STAKATER_BIG_CONFIG_CONFIGMAP"})
		}
		env[n].Value = hash
		d.Spec.Template.Spec.Containers[0].Env = env
		// Reloader retries a conflict. Its retries are not counted here.
		if err := c.Update(ctx, d); client.IgnoreNotFound(err) != nil {
			continue
		}
	}
	return nil
}
