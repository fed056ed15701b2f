package harness

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// PodReady reports whether a pod is ready and not being deleted.
func PodReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil
		}
	}
	return false
}

// warnings collects the warnings of the API server.
type warnings struct{ texts []string }

func (w *warnings) HandleWarningHeader(_ int, _, text string) { w.texts = append(w.texts, text) }

// Restricted returns an error unless the API server admits such a pod under the restricted pod
// security standard. The pod is not stored.
func (c *Cluster) Restricted(ctx context.Context, spec corev1.PodSpec) error {
	// The labels of the namespace decide, so the pod is created as a dry run in a new one that
	// enforces restricted, and its own namespace stays as it is.
	spec = *spec.DeepCopy()
	spec.NodeName, spec.ServiceAccountName, spec.PriorityClassName, spec.Priority = "", "", "", nil
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "tried"}, Spec: spec}

	const ns = "e2e-restricted"
	if err := c.CreateNamespace(ctx, ns); err != nil {
		return err
	}
	defer func() {
		_ = c.Kube.CoreV1().Namespaces().Delete(context.WithoutCancel(ctx), ns, metav1.DeleteOptions{})
	}()
	// Admission requires a ServiceAccount, and the namespace's default one is created a moment
	// later.
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "tried"}}
	if _, err := c.Kube.CoreV1().ServiceAccounts(ns).Create(ctx, sa, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("cannot create a ServiceAccount: %w", err)
	}
	pod.Spec.ServiceAccountName = sa.Name
	if _, err := c.Kube.CoreV1().Pods(ns).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		return fmt.Errorf("a pod like this is not restricted: %w", err)
	}
	return nil
}

// AuditRestricted returns an error unless a namespace enforces the restricted pod security standard
// and all pods in it comply.
func (c *Cluster) AuditRestricted(ctx context.Context, namespace string) error {
	const label = "pod-security.kubernetes.io/enforce"
	ns, err := c.Get(ctx, "Namespace", "", namespace)
	if err != nil {
		return err
	}
	if l := ns.GetLabels()[label]; l != "restricted" {
		return fmt.Errorf("namespace %s enforces %q, not restricted", namespace, l)
	}
	// The API server checks the running pods only when the labels change. Two dry runs, to a weaker
	// standard and back, would not trigger that, but another version of the standard does.
	w := &warnings{}
	cfg := rest.CopyConfig(c.Config)
	cfg.WarningHandler = w
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("cannot make a client: %w", err)
	}
	patch := `{"metadata":{"labels":{"pod-security.kubernetes.io/enforce-version":"v1.34"}}}`
	if _, err := kube.CoreV1().Namespaces().Patch(ctx, namespace, "application/merge-patch+json", []byte(patch), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		return fmt.Errorf("cannot audit namespace %s: %w", namespace, err)
	}
	if len(w.texts) > 0 {
		return fmt.Errorf("pods in namespace %s are not restricted: %s", namespace, strings.Join(w.texts, "; "))
	}
	return nil
}

// WritableRoots returns the containers whose root file system is writable, as "object/container".
func WritableRoots(u *unstructured.Unstructured) []string {
	var out []string
	for _, c := range Containers(u) {
		sc, _ := c["securityContext"].(map[string]any)
		if ro, _ := sc["readOnlyRootFilesystem"].(bool); !ro {
			out = append(out, fmt.Sprintf("%s/%v", u.GetName(), c["name"]))
		}
	}
	return out
}
