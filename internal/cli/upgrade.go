package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/plan/state"
	"github.com/storeplane/storeplane/internal/waves"
)

type upgradeCmd struct {
	clusterFlags
	namespaceFlags

	Objects []string `arg:"" help:"Claims as KIND/NAME or KIND NAME, as kubectl takes them: dbc/orders. Without any, those that wait are listed, and nothing is changed." name:"claim" optional:"" predictor:"claim"`

	All bool `help:"Upgrade all claims that wait."`
}

// Help returns the help of the command beside its flags.
func (*upgradeCmd) Help() string {
	return `Pods of the claims, and of those that they compose, are replaced at once by those of the release
that waits for their maintenance window or their wave. It needs the right to patch the claims.`
}

// Run runs the command.
func (c *upgradeCmd) Run(ctx context.Context, s streams) error {
	config, namespace, err := c.config()
	if err != nil {
		return err
	}
	if len(c.Objects) > 0 && (c.All || c.AllNamespaces) {
		return errors.New("cannot upgrade: name claims, or use --all for those that wait")
	}
	namespace = c.of(namespace)
	live, err := state.NewLive(config)
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("cannot create a client: %w", err)
	}
	claims, err := c.claims(ctx, live, namespace)
	if err != nil {
		return err
	}
	waiting := 0
	for _, u := range claims {
		release, _, _ := unstructured.NestedString(u.Object, "status", appsv1.FieldPendingRelease)
		if release == "" {
			continue
		}
		waiting++
		name := fmt.Sprintf("%s %s in namespace %s", u.GetKind(), u.GetName(), u.GetNamespace())
		if len(c.Objects) == 0 && !c.All {
			fmt.Fprintf(s.out, "%s waits: %s\n", name, waitsFor(u))
			continue
		}
		if err := upgradeTo(ctx, client, u, release); err != nil {
			return err
		}
		fmt.Fprintf(s.out, "%s is to be upgraded to %s\n", name, release)
	}
	if waiting == 0 {
		fmt.Fprintln(s.out, "No claim waits for a release.")
	}
	if len(c.Objects) == 0 && !c.All {
		return printWaves(ctx, live, s.out)
	}
	return nil
}

// claims returns the named claims and those that they compose, or without names all claims of a
// namespace.
func (c *upgradeCmd) claims(ctx context.Context, live *state.Live, namespace string) ([]*unstructured.Unstructured, error) {
	objects, err := parseObjects("upgrade", c.Objects, namespace)
	if err != nil {
		return nil, err
	}
	all, err := allClaims(ctx, live, namespace)
	if err != nil || len(objects) == 0 {
		return all, err
	}
	byUID := map[types.UID]*unstructured.Unstructured{}
	for _, u := range all {
		byUID[u.GetUID()] = u
	}
	var out []*unstructured.Unstructured
	for _, o := range objects {
		is := func(u *unstructured.Unstructured) bool { return u.GetKind() == o.Kind && u.GetName() == o.Name }
		if !slices.ContainsFunc(all, is) {
			return nil, fmt.Errorf("cannot upgrade %s in namespace %s: it does not exist", o, o.Namespace)
		}
		for _, u := range all {
			for at := u; at != nil; at = byUID[waves.Read(at).Owner] {
				if is(at) && !slices.Contains(out, u) {
					out = append(out, u)
				}
			}
		}
	}
	return out, nil
}

// allClaims returns the claims of a namespace, or of all where it is empty, by namespace, kind and
// name.
func allClaims(ctx context.Context, live *state.Live, namespace string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, k := range claimKinds() {
		list, err := live.List(ctx, k.GroupVersion().String(), k.Kind, namespace, "")
		if err != nil {
			return nil, fmt.Errorf("cannot list claims of kind %s: %w", k.Kind, err)
		}
		out = append(out, list...)
	}
	slices.SortStableFunc(out, func(a, b *unstructured.Unstructured) int { return cmp.Compare(a.GetNamespace(), b.GetNamespace()) })
	return out, nil
}

func claimKinds() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, k := range kindNames {
		if k.claim {
			kinds = append(kinds, schema.FromAPIVersionAndKind(k.String(), k.kind))
		}
	}
	return kinds
}

// waitsFor returns what a claim waits for, from the message of its condition Upgraded.
func waitsFor(u *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == appsv1.TypeUpgraded {
			text, _ := m["message"].(string)
			return text
		}
	}
	return ""
}

func upgradeTo(ctx context.Context, client dynamic.Interface, u *unstructured.Unstructured, release string) error {
	for _, k := range kindNames {
		if k.kind != u.GetKind() {
			continue
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{compose.UpgradeAnnotation: release}}})
		if err != nil {
			return fmt.Errorf("cannot upgrade %s %s: %w", u.GetKind(), u.GetName(), err)
		}
		resource := k.WithResource(k.plural)
		if _, err := client.Resource(resource).Namespace(u.GetNamespace()).Patch(ctx, u.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("cannot upgrade %s %s in namespace %s: %w", u.GetKind(), u.GetName(), u.GetNamespace(), err)
		}
		return nil
	}
	return fmt.Errorf("cannot upgrade %s %s: it is no claim", u.GetKind(), u.GetName())
}
