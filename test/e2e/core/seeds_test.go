//go:build e2e

package core

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/e2e-framework/pkg/features"
	"sigs.k8s.io/e2e-framework/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// seedsNamespace is the namespace of new users' claims. It enforces no pod security standard above
// baseline.
const seedsNamespace = "e2e-core-seeds"

// seedsUser is a user with Kubernetes' own role edit in that namespace.
const seedsUser = "e2e-core-newcomer"

func firstHour() types.Feature {
	return features.New("the first hour").
		Assess("every cause for which pods do not come up is named soon", assess(namesCauses, causesNamespace)).
		Assess("newcomers' web applications run, or say what to edit", assess(seedsRun, seedsNamespace)).
		Assess("a newcomer's database says which versions there are, and runs with one of them", assess(seedDatabase, seedsNamespace)).
		Assess("kubectl scale scales a web application, which shows its replicas", assess(scalesByKubectl, seedsNamespace)).
		Feature()
}

// seed returns a claim of examples/seeds in the namespace of the tests. Docker's image nginx, which
// a cluster may be unable to pull, is replaced by one that behaves the same.
func seed(name string) (*unstructured.Unstructured, error) {
	file := filepath.Join("..", "..", "..", "examples", "seeds", name+".yaml")
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the claim: %w", err)
	}
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(b, &u.Object); err != nil {
		return nil, fmt.Errorf("cannot parse %s: %w", file, err)
	}
	u.SetNamespace(seedsNamespace)
	if image, _, _ := unstructured.NestedString(u.Object, "spec", "image"); strings.HasPrefix(image, "nginx:") {
		err = unstructured.SetNestedField(u.Object, imageOf("e2e-nginx:root"), "spec", "image")
	}
	return u, err
}

// watchSeeds watches the namespace, and creates it if it does not exist.
func watchSeeds(ctx context.Context) (*harness.World, error) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: seedsNamespace, Labels: map[string]string{harness.Label: "true", "pod-security.kubernetes.io/enforce": "baseline"}}}
	if _, err := cluster.Kube.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("cannot create namespace %s: %w", seedsNamespace, err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: seedsUser},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: seedsUser}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
	}
	if _, err := cluster.Kube.RbacV1().RoleBindings(seedsNamespace).Create(ctx, binding, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("cannot let %s edit namespace %s: %w", seedsUser, seedsNamespace, err)
	}
	return cluster.Watch(ctx, seedsNamespace)
}

// seedsRun applies each web application first without the edit that it needs, and then with it.
func seedsRun(ctx context.Context, n notes) error {
	w, err := watchSeeds(ctx)
	if err != nil {
		return err
	}
	defer w.Stop()
	const says = "its image runs as root, which is not allowed: set runAsUser to the number of another user, or podSecurity to baseline outside production"
	names := []string{"my-webapp", "test-app", "test-webapp", "my-app", "demo-app"}
	for _, name := range names {
		u, err := seed(name)
		if err != nil {
			return err
		}
		unstructured.RemoveNestedField(u.Object, "spec", "podSecurity")
		if _, err := cluster.Create(ctx, u); err != nil {
			return err
		}
	}
	for _, name := range names {
		err := w.Await(ctx, settled, fmt.Sprintf("%s to say %q", name, says), func() (bool, string) {
			c := w.Claim("WebApp", name)
			return strings.Contains(c.Status.Message, says), c.String()
		})
		if err != nil {
			return err
		}
	}
	start := time.Now()
	for _, name := range names {
		if _, err := cluster.Patch(ctx, "WebApp", seedsNamespace, name, harness.Patch{"spec": harness.Patch{"podSecurity": "baseline"}}); err != nil {
			return err
		}
	}
	var errs []error
	for _, name := range names {
		errs = append(errs, w.AwaitReady(ctx, settled, "WebApp", name))
	}
	n.Addf("%d ran %.1fs after their edit", len(names), time.Since(start).Seconds())
	// Delete them, because they use CPU.
	for _, name := range names {
		errs = append(errs, cluster.Delete(ctx, "WebApp", seedsNamespace, name))
	}
	return errors.Join(append(errs, w.AwaitGone(ctx, settled, "WebApp", "demo-app"))...)
}

// seedDatabase applies a database with version 14 and, if the installation does not have it,
// expects a refusal that lists the versions and changes to the version of the example.
func seedDatabase(ctx context.Context, n notes) error {
	w, err := watchSeeds(ctx)
	if err != nil {
		return err
	}
	defer w.Stop()
	u, err := seed("test-db")
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedField(u.Object, "14", "spec", "version"); err != nil {
		return err
	}
	if _, err := cluster.Create(ctx, u); err != nil {
		return err
	}
	says := regexp.MustCompile(`version 14 is not in this installation, which has .*\b17, 17\.\d+\b.*: choose one of these`)
	start := time.Now()
	has14 := false
	err = w.Await(ctx, soon, fmt.Sprintf("the database to say %q", says), func() (bool, string) {
		c := w.Claim("DatabaseCluster", "test-db")
		has14 = w.Get("StatefulSet", "test-db-postgresql") != nil
		return has14 || says.MatchString(c.Status.Message), c.String()
	})
	if err != nil {
		return err
	}
	if has14 {
		n.Addf("the installation has 14")
		return w.AwaitReady(ctx, started, "DatabaseCluster", "test-db")
	}
	n.Addf("refused after %.1fs", time.Since(start).Seconds())
	if err := seedMinor(ctx, w); err != nil {
		return err
	}
	start = time.Now()
	if _, err := cluster.Patch(ctx, "DatabaseCluster", seedsNamespace, "test-db", harness.Patch{"spec": harness.Patch{"version": "17"}}); err != nil {
		return err
	}
	err = w.AwaitReady(ctx, started, "DatabaseCluster", "test-db")
	n.Addf("ready %.1fs after its edit", time.Since(start).Seconds())
	return errors.Join(err, cluster.Delete(ctx, "DatabaseCluster", seedsNamespace, "test-db"))
}

// seedMinor applies a database with a minor version that the installation does not have, and expects
// a refusal.
func seedMinor(ctx context.Context, w *harness.World) error {
	u, err := seed("databasecluster")
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedField(u.Object, "17.2.0", "spec", "version"); err != nil {
		return err
	}
	if _, err := cluster.Create(ctx, u); err != nil {
		return err
	}
	err = w.Await(ctx, soon, "the database with a minor version to be refused", func() (bool, string) {
		c := w.Claim("DatabaseCluster", u.GetName())
		return strings.Contains(c.Status.Message, "version 17.2.0 is not in this installation, which has "), c.String()
	})
	return errors.Join(err, cluster.Delete(ctx, "DatabaseCluster", seedsNamespace, u.GetName()))
}

// scalesByKubectl scales the claim with kubectl scale, like a Deployment.
func scalesByKubectl(ctx context.Context, n notes) error {
	w, err := watchSeeds(ctx)
	if err != nil {
		return err
	}
	defer w.Stop()
	u, err := seed("demo-app")
	if err != nil {
		return err
	}
	if _, err := cluster.Create(ctx, u); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err := w.AwaitReady(ctx, settled, "WebApp", "demo-app"); err != nil {
		return err
	}
	for _, replicas := range []string{"4", "2"} {
		start := time.Now()
		if _, err := harness.Kubectl(ctx, "scale", "--as="+seedsUser, "webapp", "demo-app", "--namespace", seedsNamespace, "--replicas="+replicas); err != nil {
			return err
		}
		err := w.Await(ctx, settled, "demo-app to have "+replicas+" replicas", func() (bool, string) {
			c := w.Claim("WebApp", "demo-app")
			have, _, _ := unstructured.NestedInt64(w.Get("WebApp", "demo-app").Object, "status", "availableReplicas")
			return c.Ready() && strconv.FormatInt(have, 10) == replicas, fmt.Sprintf("%d available, %s", have, c)
		})
		if err != nil {
			return err
		}
		n.Addf("to %s in %.1fs", replicas, time.Since(start).Seconds())
	}
	out, err := harness.Kubectl(ctx, "get", "wa", "demo-app", "--namespace", seedsNamespace)
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "REPLICAS") || !strings.Contains(lines[0], "AVAILABLE") {
		return fmt.Errorf("kubectl get wa has no REPLICAS and AVAILABLE:\n%s", out)
	}
	return cluster.Delete(ctx, "WebApp", seedsNamespace, "demo-app")
}
