package harness

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/e2e-framework/klient/wait"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
)

// Label marks what the tests create: namespaces and objects outside of them. Its value may be the
// name of the suite.
const Label = "storeplane.example.com/e2e"

// CreateNamespace creates a namespace that admits only pods of the restricted pod security
// standard.
func (c *Cluster) CreateNamespace(ctx context.Context, name string) error {
	return c.CreateNamespaceOf(ctx, "true", name)
}

// CreateNamespaceOf creates such a namespace for a suite. Its name is free.
func (c *Cluster) CreateNamespaceOf(ctx context.Context, suite, name string) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		Label:                                suite,
		"pod-security.kubernetes.io/enforce": "restricted",
	}}}
	if _, err := c.Kube.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("cannot create namespace %s: %w", name, err)
	}
	return nil
}

// Sweep removes what a suite has created, and waits until it is gone: the suite's objects outside
// of its namespaces, and the namespaces that have its name, its name and a hyphen as prefix, or its
// label. Claims are deleted first, and what they composed is deleted with them.
func (c *Cluster) Sweep(ctx context.Context, name string) error {
	if err := c.sweepCluster(ctx, name); err != nil {
		return err
	}
	list := metav1.ListOptions{LabelSelector: Label}
	left := ""
	err := wait.For(func(ctx context.Context) (bool, error) {
		nss, err := c.Kube.CoreV1().Namespaces().List(ctx, list)
		if err != nil {
			return false, err
		}
		left = ""
		for _, ns := range nss.Items {
			if ns.Name != name && !strings.HasPrefix(ns.Name, name+"-") && ns.Labels[Label] != name {
				continue
			}
			left = ns.Name
			if err := c.clear(ctx, ns.Name); err != nil {
				return false, err
			}
		}
		return left == "", nil
	}, wait.WithContext(ctx), wait.WithTimeout(5*time.Minute), wait.WithInterval(time.Second), wait.WithImmediate())
	if err != nil {
		return fmt.Errorf("cannot remove namespace %s: %w", left, err)
	}
	return nil
}

// sweepCluster removes what a suite has created outside of its namespaces.
func (c *Cluster) sweepCluster(ctx context.Context, suite string) error {
	list := metav1.ListOptions{LabelSelector: Label + "=" + suite}
	for _, kind := range []string{"MutatingAdmissionPolicyBinding", "MutatingAdmissionPolicy", "IngressClass", "ClusterRoleBinding", "ClusterRole", "ClusterProviderConfig"} {
		err := c.Dynamic.Resource(kinds[kind]).DeleteCollection(ctx, metav1.DeleteOptions{}, list)
		if err != nil && !errors.IsNotFound(err) {
			return fmt.Errorf("cannot remove every %s of suite %s: %w", kind, suite, err)
		}
	}
	// Network policies of the platform team beside those that are installed.
	err := c.Dynamic.Resource(kinds["NetworkPolicy"]).Namespace("crossplane-system").DeleteCollection(ctx, metav1.DeleteOptions{}, list)
	if err != nil && !errors.IsNotFound(err) {
		return fmt.Errorf("cannot remove every NetworkPolicy of suite %s in namespace crossplane-system: %w", suite, err)
	}
	return nil
}

// clear deletes all claims of a namespace, and the namespace. It has to be called repeatedly: a
// database with deletion protection can be deleted only some time after the protection is removed.
func (c *Cluster) clear(ctx context.Context, namespace string) error {
	// These kinds do not exist without Storeplane, and then there is nothing to remove.
	for _, kind := range []string{"EcommercePlatform", "DatabaseCluster"} {
		claims, err := c.List(ctx, kind, namespace, "")
		for _, claim := range claims {
			if err == nil && Field(&claim, "spec", "deletionProtection") != "false" {
				_, _ = c.Patch(ctx, kind, namespace, claim.GetName(), Patch{"spec": Patch{"deletionProtection": false}})
			}
		}
	}
	// A Backup whose store is gone would wait for the store in order to delete its data.
	backups, err := c.List(ctx, "Backup", namespace, "")
	for _, b := range backups {
		if err == nil && b.GetAnnotations()[backupv1.ReleaseAnnotation] == "" {
			_, _ = c.Patch(ctx, "Backup", namespace, b.GetName(), Patch{"metadata": Patch{"annotations": Patch{backupv1.ReleaseAnnotation: "true"}}})
		}
	}
	for _, kind := range []string{"EcommercePlatform", "DatabaseCluster", "WebApp", "Backup", "Restore", "AppConfig"} {
		_ = c.Dynamic.Resource(kinds[kind]).Namespace(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	}
	err = c.Kube.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{})
	if err != nil && !errors.IsNotFound(err) && !errors.IsConflict(err) {
		return fmt.Errorf("cannot delete namespace %s: %w", namespace, err)
	}
	return nil
}
