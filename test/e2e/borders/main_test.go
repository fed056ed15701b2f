//go:build e2e

// Package borders tests what separates tenants. Each check is an attack by a client with no more
// rights than a tenant has: it is refused with a message that gives the reason, and the legitimate
// use beside it works.
package borders

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/e2e-framework/klient/wait"
	"sigs.k8s.io/e2e-framework/pkg/features"
	"sigs.k8s.io/e2e-framework/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/storeplane/storeplane/test/e2e/harness"
	"github.com/storeplane/storeplane/test/e2e/manifests"
	"github.com/storeplane/storeplane/test/e2e/suite"
)

const suiteName = "e2e-borders"

var (
	tests   = suite.New(suiteName)
	cluster = tests.Cluster
)

type notes = suite.Notes

// Timeouts.
const (
	// soon is for what takes one or two reconciles.
	soon = 45 * time.Second
	// started is for a database that starts while the machine is busy.
	started = 4 * time.Minute
)

// Namespaces of the tests.
const (
	// tenantNamespace belongs to the attacker, and other users work in it too.
	tenantNamespace = suiteName + "-tenant"
	// victimNamespace belongs to another tenant.
	victimNamespace = suiteName + "-victim"
	// platformNamespace contains the platform's credentials.
	platformNamespace = suiteName + "-platform"
)

func TestMain(m *testing.M) { tests.Main(m) }

// TestBorders: the attacks are refused, in their order.
func TestBorders(t *testing.T) { tests.Test(t, attacks()) }

func attacks() types.Feature {
	f := features.New("borders")
	all := []struct {
		name  string
		check suite.Check
	}{
		{"a tenant does not leave production by another word, nor take the word off", leavesProduction},
		{"a tenant does not have Crossplane watch kinds that its claims are not composed of", namesKinds},
		{"a tenant does not change a workload by an AppConfig that it does not name", changesWorkload},
		{"a tenant does not read another namespace's backups with the platform's credentials", readsBackups},
		{"a tenant does not send the platform's credentials elsewhere, nor borrow them", borrowsCredentials},
		{"a tenant does not write settings of pgBackRest into a field", injectsSettings},
		{"another tenant's pod reaches no port of a database, and one of its own namespace PostgreSQL's alone", reachesServers},
		{"the password of a database's servers commands none of them without their certificate", commandsServers},
		{"the exporter of a database's server reads statistics, and is no superuser", exports},
		{"a database's server, or the pod of a Backup's Job, opens no connection to a neighbour", opensConnections},
		{"no pod reaches the pods of a WebApp's Jobs", reachesJobs},
		{"a pod with a store's credentials reaches no neighbour, and not the cloud's metadata service", reachesMetadata},
		{"ten AppConfigs of hostile templates do not hold up a Backup", burnsTemplates},
		{"a tenant's pod reaches neither the function nor the provider", reachesPrograms},
		{"a database's token reads and changes nothing of its neighbours", usesDatabaseToken},
		{"the provider's token changes nothing but what AppConfigs change, and nothing of the system's", usesProviderToken},
	}
	for _, a := range all {
		f.Assess(a.name, tests.Assess(a.check, tenantNamespace, victimNamespace, platformNamespace))
	}
	return f.Feature()
}

// ground is what all attacks have in common.
var ground struct {
	ready bool
	world *harness.World

	// tenant has the role storeplane-edit in one namespace, and no other rights.
	tenant *harness.Cluster
}

func ready(ctx context.Context) error {
	if ground.ready {
		return nil
	}
	for _, ns := range []string{tenantNamespace, victimNamespace, platformNamespace} {
		if err := cluster.CreateNamespaceOf(ctx, suiteName, ns); err != nil {
			return err
		}
	}
	var err error
	if ground.world, err = cluster.Watch(ctx, tenantNamespace); err != nil {
		return err
	}
	if err := join(ctx); err != nil {
		return err
	}
	if ground.tenant, err = cluster.As(tenant); err != nil {
		return err
	}
	for file, ns := range map[string]string{"borders/tenant.yaml": tenantNamespace, "borders/store.yaml": platformNamespace} {
		all, err := manifests.ReadAll(file, map[string]string{"NAMESPACE": ns, "REGISTRY": cluster.Registry})
		if err != nil {
			return err
		}
		for _, u := range all {
			if _, err := cluster.Create(ctx, u); err != nil {
				return err
			}
		}
	}
	ground.ready = true
	return nil
}

// object parses an object, with the tenant's namespace and the registry filled in.
func object(text string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(strings.NewReplacer("${NAMESPACE}", tenantNamespace, "${REGISTRY}", cluster.Registry).Replace(text)), &u.Object); err != nil {
		return nil, fmt.Errorf("cannot parse %s: %w", text, err)
	}
	return u, nil
}

// create creates an object from its text with the rights of the given client.
func create(ctx context.Context, as *harness.Cluster, text string, dryRun ...string) error {
	u, err := object(text)
	if err != nil {
		return err
	}
	_, err = as.Create(ctx, u, dryRun...)
	return err
}

// refused returns an error unless err contains these words.
func refused(what string, err error, words string) error {
	switch {
	case err == nil:
		return fmt.Errorf("%s: it was let through, want: %s", what, words)
	case !strings.Contains(err.Error(), words):
		return fmt.Errorf("%s: want: %s\n  got: %w", what, words, err)
	}
	return nil
}

// eventually retries until the attempt is refused: the API server applies new policies and rights a
// moment later.
func eventually(ctx context.Context, what, words string, try func(context.Context) error) error {
	var last error
	err := wait.For(func(ctx context.Context) (bool, error) {
		last = refused(what, try(ctx), words)
		return last == nil, nil
	}, wait.WithContext(ctx), wait.WithTimeout(soon), wait.WithInterval(200*time.Millisecond), wait.WithImmediate())
	if err != nil {
		return errors.Join(last, err)
	}
	return nil
}
