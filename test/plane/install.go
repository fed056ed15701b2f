package plane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// account is the provider's user name when Crossplane runs it.
const account = "system:serviceaccount:crossplane-system:storeplane-provider"

// Install applies the provider's definitions, ClusterRole and admission policies of the
// repository at root, and grants the user Provider the rights that package/install declares and
// those that Crossplane grants each provider.
func Install(ctx context.Context, c client.Client, root string) error {
	files, err := filepath.Glob(filepath.Join(root, "package/provider/crds/*.yaml"))
	if err != nil {
		return fmt.Errorf("cannot find the definitions in %s: %w", root, err)
	}
	if len(files) == 0 {
		return fmt.Errorf("cannot find the definitions in %s: there are none", root)
	}
	for _, f := range append(files, filepath.Join(root, "package/install/provider-clusterrole.yaml")) {
		if err := Apply(ctx, c, f); err != nil {
			return err
		}
	}
	if err := limit(ctx, c, filepath.Join(root, "package/install/provider-admission.yaml")); err != nil {
		return err
	}
	definitions := &extv1.CustomResourceDefinitionList{}
	if err := c.List(ctx, definitions); err != nil {
		return fmt.Errorf("cannot list definitions: %w", err)
	}
	for i := range definitions.Items {
		if err := AwaitServed(ctx, c, &definitions.Items[i]); err != nil {
			return err
		}
	}
	all := []string{"*"}
	granted := &rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"", "coordination.k8s.io"}, Resources: []string{"secrets", "configmaps", "events", "leases"}, Verbs: all},
		{APIGroups: []string{"backup.example.com", "config.example.com", "storeplane.example.com"}, Resources: all, Verbs: all},
		{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"get", "list", "watch"}},
	}}
	granted.Name = "granted"
	if err := Create(ctx, c, granted); err != nil {
		return err
	}
	for _, role := range []string{granted.Name, "storeplane-provider"} {
		b := &rbacv1.ClusterRoleBinding{
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: Provider}},
		}
		b.Name = "plane-" + role
		if err := Create(ctx, c, b); err != nil {
			return err
		}
	}
	return nil
}

// limit applies the provider's admission policies from a file, for the user Provider instead of
// the service account.
func limit(ctx context.Context, c client.Client, file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", file, err)
	}
	return apply(ctx, c, file, bytes.ReplaceAll(b, []byte(account), []byte(Provider)))
}

// Create creates an object unless it exists. It retries while it is forbidden, because the API
// server creates its default roles shortly after it is ready.
func Create(ctx context.Context, c client.Client, o client.Object) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		last = client.IgnoreAlreadyExists(c.Create(ctx, o))
		return !kerrors.IsForbidden(last), nil
	})
	if err := errors.Join(last, err); err != nil {
		return fmt.Errorf("cannot create %T %s: %w", o, o.GetName(), err)
	}
	return nil
}

// AwaitServed waits until the kind of a definition is served, which is some time after the
// definition is established.
func AwaitServed(ctx context.Context, c client.Client, crd *extv1.CustomResourceDefinition) error {
	kind := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		_, last = c.RESTMapper().RESTMapping(kind, crd.Spec.Versions[0].Name)
		return last == nil, nil
	})
	if err := errors.Join(last, err); err != nil {
		return fmt.Errorf("waited in vain until %s is served: %w", kind, err)
	}
	return nil
}

// Apply creates each object of a file unless it exists.
func Apply(ctx context.Context, c client.Client, file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", file, err)
	}
	return apply(ctx, c, file, b)
}

// apply creates each object in the content of a file unless it exists.
func apply(ctx context.Context, c client.Client, file string, content []byte) error {
	for d := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096); ; {
		u := &unstructured.Unstructured{}
		switch err := d.Decode(u); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("cannot decode %s: %w", file, err)
		}
		if err := Create(ctx, c, u); err != nil {
			return err
		}
	}
}
