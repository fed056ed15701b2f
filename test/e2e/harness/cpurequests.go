package harness

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/e2e-framework/klient/wait"

	"github.com/storeplane/storeplane/test/e2e/manifests"
)

// enoughCores is the number of cores on which a production EcommercePlatform fits together with
// everything that the tests run beside it.
const enoughCores = 8

// Cramp creates a policy by which the pods of a suite's namespaces request about a fifth of their
// CPU, if the cluster has fewer than enoughCores. It reports whether it did.
func (c *Cluster) Cramp(ctx context.Context, suite string) (bool, error) {
	nodes, err := c.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, fmt.Errorf("cannot list nodes: %w", err)
	}
	cores := int64(0)
	for _, n := range nodes.Items {
		cores += n.Status.Allocatable.Cpu().Value()
	}
	if cores >= enoughCores {
		return false, nil
	}
	policy, err := manifests.ReadAll("cramped/policy.yaml", map[string]string{"SUITE": suite})
	if err != nil {
		return false, err
	}
	for _, u := range policy {
		_, err := c.Create(ctx, u)
		if errors.IsNotFound(err) {
			// Older clusters do not have this kind. There, pods that do not fit stay pending.
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, c.awaitCramped(ctx, suite)
}

// awaitCramped waits until the API server applies the policy, which takes a moment after its
// creation.
func (c *Cluster) awaitCramped(ctx context.Context, suite string) error {
	name := suite + "-cramped"
	if err := c.CreateNamespaceOf(ctx, suite, name); err != nil {
		return err
	}
	defer func() {
		_ = c.Kube.CoreV1().Namespaces().Delete(context.WithoutCancel(ctx), name, metav1.DeleteOptions{})
	}()
	const within = time.Minute
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "tried"}, Spec: restrictedPod("tried")}
	var last error
	err := wait.For(func(ctx context.Context) (bool, error) {
		var tried *corev1.Pod
		// Admission requires the namespace's ServiceAccount, which is created a moment later.
		if tried, last = c.Kube.CoreV1().Pods(name).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); last != nil {
			return false, nil //nolint:nilerr // The request is retried.
		}
		last = fmt.Errorf("a pod asks for %s of a core", tried.Spec.Containers[0].Resources.Requests.Cpu())
		return !tried.Spec.Containers[0].Resources.Requests.Cpu().IsZero(), nil
	}, wait.WithContext(ctx), wait.WithTimeout(within), wait.WithInterval(200*time.Millisecond), wait.WithImmediate())
	if err != nil {
		return fmt.Errorf("waited %s for MutatingAdmissionPolicy %s to be in force: %w: %w", within, name, err, last)
	}
	return nil
}

// restrictedPod returns the smallest pod spec that the restricted pod security standard admits.
func restrictedPod(image string) corev1.PodSpec {
	return corev1.PodSpec{
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot:   new(true),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: "tried", Image: image,
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false),
				Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}},
	}
}
