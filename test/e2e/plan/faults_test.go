//go:build e2e

package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/e2e-framework/pkg/types"

	"github.com/storeplane/storeplane/internal/explain"
	"github.com/storeplane/storeplane/internal/plan"
	"github.com/storeplane/storeplane/internal/plan/state"
	"github.com/storeplane/storeplane/test/e2e/causes"
	"github.com/storeplane/storeplane/test/e2e/harness"
	"github.com/storeplane/storeplane/test/e2e/manifests"
)

// Namespaces of the faults.
const (
	faultsNamespace  = "e2e-plan-faults"
	quotaNamespace   = "e2e-plan-quota"
	limitedNamespace = "e2e-plan-limited"
)

// explained is how long an explanation may take.
const explained = time.Second

// explainedAfter is how long the cluster itself may take until a fault shows.
const explainedAfter = 3 * time.Minute

// fault is an object that something keeps from being ready, and what the explanation must contain.
type fault struct {
	kind, namespace, name string
	// object is the prefix of the object that the explanation must name as the cause, and says a
	// text of its message.
	object, says string
}

func (f fault) String() string { return f.kind + " " + f.name }

// faults are the faults in faults.yaml.
var faults = []fault{
	{"WebApp", faultsNamespace, "taken", "WebApp taken", "ServiceAccount taken-web exists already and is not part of this claim"},
	{"WebApp", quotaNamespace, "services", "WebApp services", "exceeded quota: services"},
	{"WebApp", limitedNamespace, "limited", "Deployment limited-web", "cannot create pods: maximum memory usage per Container is 100Mi"},
	{"WebApp", faultsNamespace, "restricted", "WebApp restricted", "is refused: "},
	{"WebApp", faultsNamespace, "paused", "WebApp paused", "is paused by annotation crossplane.io/paused"},
	{"WebApp", faultsNamespace, "deleted", "WebApp deleted", "example.com/kept"},
	{"AppConfig", faultsNamespace, "template", "AppConfig template", "GREETING"},
	{"DatabaseCluster", faultsNamespace, "volume", "Pod volume-postgresql-0", `storageclass.storage.k8s.io "absent" not found`},
	{"DatabaseCluster", faultsNamespace, "nowhere", "Pod nowhere-postgresql-0", "cannot be scheduled: node(s) didn't match Pod's node affinity/selector"},
	{"DatabaseCluster", faultsNamespace, "keyless", "DatabaseCluster keyless", "backups need Secret absent"},
	{"EcommercePlatform", faultsNamespace, "store", "Pod store-backend-", "cannot pull image"},
	{"AppConfig", faultsNamespace, "secretless", "AppConfig secretless", "absent"},
	{"Restore", faultsNamespace, "restore", "Restore restore", "absent"},
}

func explains() types.Feature {
	return tests.Feature("explanations", faultsNamespace, quotaNamespace, limitedNamespace).
		Full("every fault is explained within 1 s", explainsFaults).
		Full("a Crossplane and a provider that do not run are named", explainsOutage).
		Cleared().
		Feature()
}

// explainsFaults creates all faults at once.
func explainsFaults(ctx context.Context, n notes) error {
	all := slices.Clone(faults)
	for _, namespace := range []string{quotaNamespace, limitedNamespace} {
		if err := cluster.CreateNamespace(ctx, namespace); err != nil {
			return err
		}
	}
	if err := roomForFaults(ctx); err != nil {
		return err
	}
	if _, err := cluster.Kube.CoreV1().ResourceQuotas(faultsNamespace).Create(ctx, causes.Devices(), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("cannot create a quota: %w", err)
	}
	objects, err := manifests.ReadAll("plan/faults.yaml", map[string]string{"NAMESPACE": faultsNamespace, "QUOTA": quotaNamespace, "LIMITED": limitedNamespace, "REGISTRY": cluster.Registry})
	if err != nil {
		return err
	}
	for _, c := range causes.All(cluster.Registry) {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps.example.com/v1", "kind": "WebApp", "spec": c.Spec}}
		u.SetNamespace(faultsNamespace)
		u.SetName(c.Name)
		objects = append(objects, u)
		object := "Pod " + c.Name + "-"
		if c.Kind == "" {
			object = "Deployment " + c.Name + "-web"
		}
		all = append(all, fault{"WebApp", faultsNamespace, c.Name, object, c.Says})
	}
	// Objects that the API server refuses are retried, which must not open a circuit breaker.
	refused, err := cluster.Watch(ctx, quotaNamespace)
	if err != nil {
		return err
	}
	defer refused.Stop()
	defer func() {
		_, _ = cluster.Patch(context.WithoutCancel(ctx), "WebApp", faultsNamespace, "deleted", harness.Patch{"metadata": map[string]any{"finalizers": nil}})
	}()
	for _, u := range objects {
		if _, err := cluster.Create(ctx, u); err != nil {
			return err
		}
	}
	if err := cluster.Delete(ctx, "WebApp", faultsNamespace, "deleted"); err != nil {
		return err
	}
	var errs []error
	named, slowest := 0, time.Duration(0)
	for _, f := range all {
		if err := f.isExplained(ctx); err != nil {
			errs = append(errs, err)
			continue
		}
		named++
	}
	// Measure once the cluster is no longer busy with the creation of the faults.
	for _, f := range all {
		took, err := f.took(ctx)
		slowest = max(slowest, took)
		errs = append(errs, err)
	}
	errs = append(errs, refused.NeverFalse("Responsive"))
	n.Addf("%d of %d faults, the slowest explanation took %.2f s", named, len(all), slowest.Seconds())
	for _, u := range objects {
		if u.GetKind() == "WebApp" || u.GetKind() == "DatabaseCluster" || u.GetKind() == "EcommercePlatform" {
			errs = append(errs, cluster.Delete(ctx, u.GetKind(), u.GetNamespace(), u.GetName()))
		}
	}
	return errors.Join(errs...)
}

// roomForFaults creates the namespace of the faults unless an earlier check has.
func roomForFaults(ctx context.Context) error {
	if ns, err := cluster.Get(ctx, "Namespace", "", faultsNamespace); err != nil || ns != nil {
		return err
	}
	return cluster.CreateNamespace(ctx, faultsNamespace)
}

// isExplained waits until the fault is explained.
func (f fault) isExplained(ctx context.Context) error {
	return harness.Await(ctx, explainedAfter, "an explanation of "+f.String()+" that says "+f.says, func(ctx context.Context) (bool, error) {
		e, err := explanation(ctx, f)
		if err != nil {
			return false, err
		}
		if e.Cause == nil {
			return false, fmt.Errorf("it is %s", e.State)
		}
		last := e.Cause.Object.String() + ": " + e.Cause.Message
		return strings.HasPrefix(e.Cause.Object.String(), f.object) && f.isNamedBy(e.Cause), errors.New(last)
	})
}

// took returns how long an explanation of the fault takes.
func (f fault) took(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	_, err := explanation(ctx, f)
	took := time.Since(began)
	if err == nil && took > explained {
		err = fmt.Errorf("an explanation of %s took %.2f s, and %s is the target", f, took.Seconds(), explained)
	}
	return took, err
}

// isNamedBy reports whether a cause contains the text of the fault. What to set, if the text names
// it, may be among the proposals of the cause instead of in its message.
func (f fault) isNamedBy(c *explain.Cause) bool {
	text := c.Message + "\n" + strings.Join(c.Do, "\n")
	for part := range strings.SplitSeq(f.says, ": set ") {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// explanation explains a fault as the command does.
func explanation(ctx context.Context, f fault) (*explain.Explanation, error) {
	live, err := state.NewLive(cluster.Config)
	if err != nil {
		return nil, err
	}
	o := plan.Object{APIVersion: harness.APIVersion(f.kind), Kind: f.kind, Namespace: f.namespace, Name: f.name}
	live.WithoutSecrets = true
	facts, err := explain.NewReader(live, time.Now()).Read(ctx, o)
	if err != nil {
		return nil, err
	}
	if len(facts.Tree) == 0 {
		return nil, fmt.Errorf("%s does not exist", f)
	}
	e := explain.Explain(facts)
	return &e, nil
}

// explainsOutage scales Crossplane and its packages to zero, and creates objects that depend on
// them.
func explainsOutage(ctx context.Context, n notes) error {
	if err := roomForFaults(ctx); err != nil {
		return err
	}
	app := map[string]any{"image": cluster.Registry + "/postgresql:17", "command": []any{"sleep", "3600"}}
	config := map[string]any{"forProvider": map[string]any{"application": "untaken", "environment": "dev", "config": map[string]any{"A": "b"}}}
	err := cluster.WithoutCrossplane(ctx, explainedAfter, func([]appsv1.Deployment) error {
		for _, c := range []struct {
			spec  map[string]any
			fault fault
		}{
			{config, fault{"AppConfig", faultsNamespace, "unobserved", "AppConfig unobserved", "Storeplane's provider has not observed it"}},
			{app, fault{"WebApp", faultsNamespace, "unobserved", "WebApp unobserved", "Crossplane has not observed it"}},
		} {
			u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": harness.APIVersion(c.fault.kind), "kind": c.fault.kind, "spec": c.spec}}
			u.SetNamespace(c.fault.namespace)
			u.SetName(c.fault.name)
			if _, err := cluster.Create(ctx, u); err != nil {
				return err
			}
			if err := c.fault.isExplained(ctx); err != nil {
				return err
			}
			took, err := c.fault.took(ctx)
			if err != nil {
				return err
			}
			n.Addf("%s in %.2f s", c.fault, took.Seconds())
		}
		return nil
	})
	return errors.Join(err, cluster.AwaitCrossplane(context.WithoutCancel(ctx), explainedAfter))
}
