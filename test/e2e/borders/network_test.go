//go:build e2e

package borders

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/e2e-framework/klient/wait"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// reachesServers connects to the pods of a database's servers: another tenant reaches no port of
// them, and pods of the same namespace reach only PostgreSQL, not the traffic between the servers
// and not their metrics.
func reachesServers(ctx context.Context, n notes) error {
	if err := ready(ctx); err != nil {
		return err
	}
	if err := ground.world.AwaitReady(ctx, started, "DatabaseCluster", "own"); err != nil {
		return err
	}
	server := ground.world.Get("Pod", "own-postgresql-0")
	address, ports := harness.Field(server, "status", "podIP"), ports(server)
	if len(ports) < 3 {
		return fmt.Errorf("there are too few ports to attack: %v", ports)
	}
	victim, err := cluster.Watch(ctx, victimNamespace)
	if err != nil {
		return err
	}
	own, err := harness.StartClient(ctx, cluster, ground.world)
	if err != nil {
		return err
	}
	other, err := harness.StartClient(ctx, cluster, victim)
	if err != nil {
		return err
	}
	apiServer, err := cluster.APIServer(ctx)
	if err != nil {
		return err
	}
	// If policies took effect late, the legitimate clients could not connect yet either.
	errs := []error{
		reaches(ctx, "a pod of the database's own namespace", own, address, postgresql),
		reaches(ctx, "a pod of another namespace", other, apiServer, 443),
	}
	for _, port := range ports {
		errs = append(errs, reachesNot(ctx, "a pod of another namespace", other, address, port))
		if port != postgresql {
			errs = append(errs, reachesNot(ctx, "a pod that is no server", own, address, port))
		}
	}
	n.Addf("ports %v", ports)
	return errors.Join(append(errs, own.Stop(ctx), other.Stop(ctx))...)
}

// ports returns the ports of a pod's containers.
func ports(pod *unstructured.Unstructured) []int {
	var out []int
	for _, list := range []string{"initContainers", "containers"} {
		containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", list)
		for _, c := range containers {
			c, _ := c.(map[string]any)
			named, _ := c["ports"].([]any)
			for _, p := range named {
				p, _ := p.(map[string]any)
				if n, ok := p["containerPort"].(int64); ok {
					out = append(out, int(n))
				}
			}
		}
	}
	return out
}

// postgresql is the port that clients may use.
const postgresql = 5432

// reaches retries until a connection is accepted: a network may allow it only a moment after the
// pod has started.
func reaches(ctx context.Context, who string, from *harness.Client, host string, port int) error {
	err := wait.For(func(ctx context.Context) (bool, error) { return from.Reaches(ctx, host, port) },
		wait.WithContext(ctx), wait.WithTimeout(soon), wait.WithInterval(200*time.Millisecond), wait.WithImmediate())
	if err != nil {
		return fmt.Errorf("%s does not reach port %d of %s: %w", who, port, host, err)
	}
	return nil
}

// reachesNot returns an error if a connection is accepted.
func reachesNot(ctx context.Context, who string, from *harness.Client, host string, port int) error {
	ok, err := from.Reaches(ctx, host, port)
	if ok {
		return fmt.Errorf("%s reaches port %d: does this cluster's network enforce NetworkPolicies?", who, port)
	}
	return err
}

// opensConnections connects from pods that hold credentials. A database's server reaches the API
// server. The pod of a Backup's Job reaches its database. Neither reaches a neighbour's pod. A pod
// that verifies, in which programs of the backup may run, does not reach the database either.
func opensConnections(ctx context.Context, n notes) (err error) {
	if err := ready(ctx); err != nil {
		return err
	}
	err = errors.Join(
		ground.world.AwaitReady(ctx, started, "DatabaseCluster", "own"),
		create(ctx, ground.tenant, `{apiVersion: backup.example.com/v1, kind: Backup, metadata: {name: closed, namespace: '${NAMESPACE}'}, spec: {forProvider: {
			source: {type: postgresql, connection: {databaseClusterRef: {name: own}}}, destination: {type: s3, bucket: b, endpoint: 'https://store.example.com:9000', secretRef: {name: neighbour}}}}}`),
	)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Delete(ctx, "Backup", tenantNamespace, "closed")) }()
	for policy, port := range map[string]string{"closed-dump": "9000", "closed-dump-database": "5432"} {
		err := ground.world.Await(ctx, soon, "the policy "+policy+" of the Backup's pods", func() (bool, string) {
			egress := harness.Field(ground.world.Get("NetworkPolicy", policy), "spec", "egress")
			return strings.Contains(egress, port), egress
		})
		if err != nil {
			return err
		}
	}
	own, err := harness.StartClient(ctx, cluster, ground.world)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, own.Stop(ctx)) }()
	apiServer, err := cluster.APIServer(ctx)
	if err != nil {
		return err
	}
	neighbour, database := neighbourAddress(), harness.Field(ground.world.Get("Pod", "own-postgresql-0"), "status", "podIP")
	errs := []error{
		reaches(ctx, "a pod that no policy closes", own, neighbour, application),
		reaches(ctx, "a pod that no policy closes", own, database, postgresql),
	}
	for host, port := range map[string]int{neighbour: application, apiServer: 443} {
		ok, err := cluster.Reaches(ctx, tenantNamespace, "own-postgresql-0", "postgresql", host, port)
		if want := host == apiServer; err == nil && ok != want {
			err = fmt.Errorf("a database's server reaches port %d of %s: %t, want %t", port, host, ok, want)
		}
		errs = append(errs, err)
	}
	// The client stands for a pod of the Backup's Jobs, by its labels.
	for _, action := range []string{"verify", "backup"} {
		_, err := cluster.Patch(ctx, "Pod", tenantNamespace, harness.ClientPod, harness.Patch{"metadata": harness.Patch{"labels": harness.Patch{
			"backup.example.com/backup": "closed", "backup.example.com/action": action,
		}}})
		if err != nil {
			return err
		}
		who := "a pod of a Backup's Job that is to " + action
		if action == "verify" {
			errs = append(errs, closes(ctx, who, own, neighbour, application), closes(ctx, who, own, database, postgresql))
			continue
		}
		errs = append(errs, reaches(ctx, who, own, database, postgresql), reachesNot(ctx, who, own, neighbour, application))
	}
	n.Addf("port %d of a neighbour", application)
	return errors.Join(errs...)
}

// reachesJobs connects to the pods of a WebApp's Jobs, in which sidecars may listen: no pod reaches
// them, not even one of the same namespace. The neighbour's pod stands for the pod of a Job, by its
// labels.
func reachesJobs(ctx context.Context, n notes) (err error) {
	if err := ready(ctx); err != nil {
		return err
	}
	err = create(ctx, ground.tenant, "{apiVersion: apps.example.com/v1, kind: WebApp, metadata: {name: closed, namespace: ${NAMESPACE}}, spec: {image: '${REGISTRY}/shop-frontend:v1', cronJobs: [{name: clean, schedule: '@yearly', args: [clean]}]}}")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Delete(ctx, "WebApp", tenantNamespace, "closed")) }()
	err = ground.world.Await(ctx, soon, "the policy of its Jobs", func() (bool, string) {
		return ground.world.Get("NetworkPolicy", "closed-jobs") != nil, "there is none"
	})
	if err != nil {
		return err
	}
	pod, address := "", neighbourAddress()
	for _, p := range ground.world.List("Pod") {
		if harness.Field(p, "status", "podIP") == address {
			pod = p.GetName()
		}
	}
	label := func(name, instance, job any) error {
		_, err := cluster.Patch(ctx, "Pod", tenantNamespace, pod, harness.Patch{"metadata": harness.Patch{"labels": harness.Patch{
			"app.kubernetes.io/name": name, "app.kubernetes.io/instance": instance, "batch.kubernetes.io/job-name": job,
		}}})
		return err
	}
	own, err := harness.StartClient(ctx, cluster, ground.world)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, own.Stop(ctx), label(nil, nil, nil)) }()
	if err := reaches(ctx, "a pod of the same namespace", own, address, application); err != nil {
		return err
	}
	if err := label("webapp", "closed", "closed-cron-clean-1"); err != nil {
		return err
	}
	n.Addf("port %d of a run", application)
	return closes(ctx, "a pod of the same namespace", own, address, application)
}

// neighbourAddress returns the address of the pod of a workload that does not belong to the
// database.
func neighbourAddress() string {
	for _, p := range ground.world.List("Pod") {
		if p.GetLabels()["app"] == "neighbour" && p.GetDeletionTimestamp() == nil {
			return harness.Field(p, "status", "podIP")
		}
	}
	return ""
}

// closes waits until the network has learned of a pod's labels and refuses the connection.
func closes(ctx context.Context, who string, from *harness.Client, host string, port int) error {
	err := wait.For(func(ctx context.Context) (bool, error) {
		ok, err := from.Reaches(ctx, host, port)
		return !ok, err
	}, wait.WithContext(ctx), wait.WithTimeout(soon), wait.WithInterval(200*time.Millisecond), wait.WithImmediate())
	if err != nil {
		return fmt.Errorf("%s reaches port %d of %s: %w", who, port, host, err)
	}
	return nil
}

// reachesPrograms connects to the pods of the function and the provider: no tenant reaches them,
// neither for calls nor for metrics.
func reachesPrograms(ctx context.Context, n notes) error {
	if err := ready(ctx); err != nil {
		return err
	}
	own, err := harness.StartClient(ctx, cluster, ground.world)
	if err != nil {
		return err
	}
	apiServer, err := cluster.APIServer(ctx)
	if err != nil {
		return err
	}
	errs := []error{reaches(ctx, "a tenant's pod", own, apiServer, 443)}
	for label, ports := range map[string][]int{"pkg.crossplane.io/function": {9443, 8080}, "pkg.crossplane.io/provider": {8080, 8081}} {
		pods, err := cluster.Kube.CoreV1().Pods("crossplane-system").List(ctx, metav1.ListOptions{LabelSelector: label})
		if err != nil || len(pods.Items) == 0 {
			return errors.Join(err, fmt.Errorf("there are %d pods with label %s to attack", len(pods.Items), label))
		}
		for _, port := range ports {
			errs = append(errs, reachesNot(ctx, "a tenant's pod", own, pods.Items[0].Status.PodIP, port))
		}
		n.Addf("ports %v of %s", ports, pods.Items[0].Name)
	}
	return errors.Join(append(errs, own.Stop(ctx))...)
}

// application is the port on which the neighbour listens.
const application = 8080
