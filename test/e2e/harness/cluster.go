package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// fieldManager is the name under which the tests change objects. It is the one of kubectl edit,
// because the tests stand in for users.
const fieldManager = "kubectl-edit"

// Cluster is the cluster that the tests run against, with its clients.
type Cluster struct {
	Config  *rest.Config
	Dynamic dynamic.Interface
	Kube    kubernetes.Interface

	// Registry is the registry and path of the images of claims.
	Registry string
}

// NewCluster returns the cluster of a client configuration.
func NewCluster(cfg *rest.Config) (*Cluster, error) {
	cfg = rest.CopyConfig(cfg)
	// The client's own throttling would count as time that the platform takes.
	cfg.QPS, cfg.Burst = 500, 1000
	// Warnings of the API server are checked only in the tests that are about them.
	cfg.WarningHandler = rest.NoWarnings{}

	dyn, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client: %w", err)
	}
	kube, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client: %w", err)
	}
	return &Cluster{Config: cfg, Dynamic: dyn, Kube: kube, Registry: os.Getenv("REGISTRY")}, nil
}

// Get returns an object, or nil if there is none.
func (c *Cluster) Get(ctx context.Context, kind, namespace, name string) (*unstructured.Unstructured, error) {
	u, err := c.Dynamic.Resource(kinds[kind]).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if errors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot get %s %s/%s: %w", kind, namespace, name, err)
	}
	return u, nil
}

// Create creates an object. Unknown fields are an error, as with kubectl.
func (c *Cluster) Create(ctx context.Context, u *unstructured.Unstructured, dryRun ...string) (*unstructured.Unstructured, error) {
	opts := metav1.CreateOptions{FieldManager: fieldManager, FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun}
	out, err := c.Dynamic.Resource(kinds[u.GetKind()]).Namespace(u.GetNamespace()).Create(ctx, u, opts)
	if err != nil {
		return nil, fmt.Errorf("cannot create %s %s/%s: %w", u.GetKind(), u.GetNamespace(), u.GetName(), err)
	}
	return out, nil
}

// CreateSecret creates a Secret with these texts as its data.
func (c *Cluster) CreateSecret(ctx context.Context, namespace, name string, texts map[string]string) error {
	data := map[string]any{}
	for k, v := range texts {
		data[k] = v
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": data}}
	u.SetName(name)
	u.SetNamespace(namespace)
	_, err := c.Create(ctx, u)
	return err
}

// Patch is a JSON Merge Patch.
type Patch map[string]any

// Patch applies a merge patch to an object.
func (c *Cluster) Patch(ctx context.Context, kind, namespace, name string, p Patch, dryRun ...string) (*unstructured.Unstructured, error) {
	raw, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("cannot encode a patch: %w", err)
	}
	return c.patch(ctx, kind, namespace, name, types.MergePatchType, raw, dryRun)
}

// PatchList applies a strategic merge patch, in which elements of lists are merged by name. Only
// kinds that are built into Kubernetes support it.
func (c *Cluster) PatchList(ctx context.Context, kind, namespace, name, patch string) (*unstructured.Unstructured, error) {
	return c.patch(ctx, kind, namespace, name, types.StrategicMergePatchType, []byte(patch), nil)
}

func (c *Cluster) patch(ctx context.Context, kind, namespace, name string, t types.PatchType, raw []byte, dryRun []string) (*unstructured.Unstructured, error) {
	opts := metav1.PatchOptions{FieldManager: fieldManager, FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun}
	u, err := c.Dynamic.Resource(kinds[kind]).Namespace(namespace).Patch(ctx, name, t, raw, opts)
	if err != nil {
		return nil, fmt.Errorf("cannot change %s %s/%s: %w", kind, namespace, name, err)
	}
	return u, nil
}

// Delete deletes an object if it exists.
func (c *Cluster) Delete(ctx context.Context, kind, namespace, name string) error {
	err := c.Dynamic.Resource(kinds[kind]).Namespace(namespace).Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !errors.IsNotFound(err) {
		return fmt.Errorf("cannot delete %s %s/%s: %w", kind, namespace, name, err)
	}
	return nil
}

// Orphan deletes a claim and keeps what it composed, as docs/operations.md describes: the claim has
// to be paused first, and the API server refuses the deletion until it is.
func (c *Cluster) Orphan(ctx context.Context, w *World, kind, namespace, name string) error {
	claims := c.Dynamic.Resource(kinds[kind]).Namespace(namespace)
	alone := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationOrphan)}
	if err := claims.Delete(ctx, name, alone); err == nil || !strings.Contains(err.Error(), "pause the claim first") {
		return fmt.Errorf("want the API server to refuse to delete %s %s/%s alone while Crossplane is at work on it, got: %v", kind, namespace, name, err) //nolint:errorlint // it may be nil
	}
	pause := func(value string) error {
		_, err := claims.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"annotations":{"crossplane.io/paused":`+value+`}}}`), metav1.PatchOptions{})
		if err != nil && !errors.IsNotFound(err) {
			return fmt.Errorf("cannot pause %s %s/%s: %w", kind, namespace, name, err)
		}
		return nil
	}
	if err := pause(`"true"`); err != nil {
		return err
	}
	// If Crossplane's circuit breaker is open for the claim, the pause takes effect with the next
	// poll.
	err := w.Await(ctx, 2*time.Minute, "Crossplane to leave "+kind+" "+name+" alone", func() (bool, string) {
		claim := w.Claim(kind, name)
		return claim.Condition("Synced").Reason == "ReconcilePaused", claim.String()
	})
	if err != nil {
		return err
	}
	if err := claims.Delete(ctx, name, alone); err != nil {
		return fmt.Errorf("cannot delete %s %s/%s alone: %w", kind, namespace, name, err)
	}
	return pause("null")
}

// List returns the objects of a kind that match a label selector.
func (c *Cluster) List(ctx context.Context, kind, namespace, selector string) ([]unstructured.Unstructured, error) {
	l, err := c.Dynamic.Resource(kinds[kind]).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("cannot list %s: %w", kind, err)
	}
	return l.Items, nil
}
