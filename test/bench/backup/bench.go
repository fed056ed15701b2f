package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/test/e2e/harness"
	"github.com/storeplane/storeplane/test/e2e/manifests"
)

// claimName is the DatabaseCluster that is measured.
const (
	claimName = "measured"
)

// target is the smallest allowed ratio of our speed to the plain pipe's, and most is the memory
// limit of our pod in MiB.
const (
	target = 0.9
	most   = 128
)

// memory is the memory limit of each side's pod. The plain pipe would be killed with our limit,
// so it is measured with enough memory.
var memory = map[string]string{ours: strconv.Itoa(most) + "Mi", pipe: "1Gi"}

// The timeouts for a start and for a measurement.
const (
	started  = 5 * time.Minute
	measured = 15 * time.Minute
)

// endpoint is the address of the S3 server.
const endpoint = "https://s3." + namespace + ".svc:7070"

// bench is what the measurements share.
type bench struct {
	*cli

	cluster *harness.Cluster
	world   *harness.World

	taken int // number of measurements so far
}

// start creates the S3 server and the database, and fills it.
func (b *bench) start(ctx context.Context) error {
	if err := b.cluster.CreateNamespace(ctx, namespace); err != nil {
		return err
	}
	var err error
	if b.world, err = b.cluster.Watch(ctx, namespace); err != nil {
		return err
	}
	if err := b.startStore(ctx); err != nil {
		return err
	}
	if err := b.create(ctx, "bench/archived.yaml", nil); err != nil {
		return err
	}
	if err := b.world.AwaitReady(ctx, started, "DatabaseCluster", claimName); err != nil {
		return err
	}
	if err := b.object(ctx, "ConfigMap", "bench", "data", scripts); err != nil {
		return err
	}
	// The pod is the one that fills and compares databases in the end-to-end tests.
	if err := b.create(ctx, "backup/volume.yaml", map[string]string{"NAME": "backups-postgresql"}); err != nil {
		return err
	}
	if err := b.create(ctx, "backup/data.yaml", nil); err != nil {
		return err
	}
	err = b.world.Await(ctx, started, "the data's pod to run", func() (bool, string) {
		phase := harness.Field(b.world.Get("Pod", "e2e-data"), "status", "phase")
		return phase == "Running", "it is " + phase
	})
	if err != nil {
		return err
	}
	_, err = b.data(ctx, "load", "postgresql", "--rows", strconv.Itoa(b.Rows), "--bulk", strconv.Itoa(b.Bulk))
	return err
}

func (b *bench) startStore(ctx context.Context) error {
	ca, cert, key, err := harness.Certificate("s3." + namespace + ".svc")
	if err != nil {
		return err
	}
	if err := b.object(ctx, "Secret", "s3-tls", "stringData", map[string]string{"tls.crt": cert, "tls.key": key}); err != nil {
		return err
	}
	keys := map[string]string{"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench secret", "ca.crt": ca}
	if err := b.object(ctx, "Secret", "s3", "stringData", keys); err != nil {
		return err
	}
	for _, f := range []string{"backup/volume.yaml", "backup/service.yaml", "backup/s3.yaml"} {
		if err := b.create(ctx, f, map[string]string{"NAME": "s3", "PORT": "7070"}); err != nil {
			return err
		}
	}
	return b.world.Await(ctx, started, "the store to be available", func() (bool, string) {
		n := harness.Number(b.world.Get("Deployment", "s3"), "status", "availableReplicas")
		return n == 1, fmt.Sprintf("%d pods are", n)
	})
}

// create creates the object of a manifest file, in which it replaces the values.
func (b *bench) create(ctx context.Context, file string, values map[string]string) error {
	all := map[string]string{"NAMESPACE": namespace, "REGISTRY": b.cluster.Registry, "ENDPOINT": endpoint}
	maps.Copy(all, values)
	u, err := manifests.Read(file, all)
	if err != nil {
		return err
	}
	_, err = b.cluster.Create(ctx, u)
	return err
}

// object creates an object of kind whose field holds texts.
func (b *bench) object(ctx context.Context, kind, name, field string, texts map[string]string) error {
	data := map[string]any{}
	for k, v := range texts {
		data[k] = v
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, field: data}}
	u.SetName(name)
	u.SetNamespace(namespace)
	_, err := b.cluster.Create(ctx, u)
	return err
}

// data runs the command data against the database, in a pod of the cluster.
func (b *bench) data(ctx context.Context, args ...string) (string, error) {
	raw, err := base64.StdEncoding.DecodeString(harness.Field(b.world.Get("Secret", claimName+"-connection"), "data", "uri"))
	if err != nil {
		return "", fmt.Errorf("cannot read Secret %s-connection: %w", claimName, err)
	}
	uri := strings.NewReplacer("sslmode=verify-full", "sslmode=require", "sslmode=verify-ca", "sslmode=require").Replace(string(raw))
	return b.cluster.Exec(ctx, namespace, "e2e-data", "data", strings.NewReader(uri), append([]string{"data"}, args...)...)
}

// task returns the task of our backup program in JSON.
func task() (string, error) {
	raw, err := json.Marshal(backup.Task{
		Action: backup.Backup, Method: backupv1.Logical, Namespace: namespace, Name: claimName,
		Database:    backup.Database{Engine: backupv1.PostgreSQL},
		Destination: backupv1.Destination{Type: backupv1.S3, Bucket: "backups", Prefix: "logical", Endpoint: endpoint},
		Keep:        &backupv1.Keep{Last: 1}, Compression: "zstd",
	})
	if err != nil {
		return "", fmt.Errorf("cannot encode a task: %w", err)
	}
	return string(raw), nil
}

// measure runs a script in its own pod and returns its time and memory.
func (b *bench) measure(ctx context.Context, script string) (sample, error) {
	t, err := task()
	if err != nil {
		return sample{}, err
	}
	b.taken++
	name := fmt.Sprintf("measurement-%d", b.taken)
	if err := b.create(ctx, "bench/backup.yaml", map[string]string{"NAME": name, "SCRIPT": script, "TASK": t, "MEMORY": memory[script]}); err != nil {
		return sample{}, err
	}
	phase := ""
	err = b.world.Await(ctx, measured, "pod "+name+" to be done", func() (bool, string) {
		phase = harness.Field(b.world.Get("Pod", name), "status", "phase")
		return phase == "Succeeded" || phase == "Failed", "it is " + phase
	})
	if err != nil {
		return sample{}, err
	}
	logs, err := b.cluster.Logs(ctx, namespace)
	if err != nil {
		return sample{}, err
	}
	log := logs[name+"/backup"]
	if phase == "Failed" {
		return sample{}, fmt.Errorf("pod %s failed: %s", name, log)
	}
	s, err := sampleOf(log)
	return s, errors.Join(err, b.cluster.Delete(ctx, "Pod", namespace, name))
}

// all runs all measurements and prints them. It returns an error if a target is missed.
func (b *bench) all(ctx context.Context) error {
	size, err := b.data(ctx, "exec", "postgresql", "SELECT pg_size_pretty(pg_database_size(current_database()))")
	if err != nil {
		return err
	}
	fmt.Printf("a database of %s, %d measurements of each in turns, medians\n", strings.TrimSpace(size), b.Rounds)
	samples := map[string][]sample{}
	for range b.Rounds {
		for _, script := range []string{pipe, ours} {
			s, err := b.measure(ctx, script)
			if err != nil {
				return err
			}
			samples[script] = append(samples[script], s)
		}
	}
	o, p := median(samples[ours]), median(samples[pipe])
	fmt.Println(line("backup (ours)", o))
	fmt.Println(line("pg_dump | zstd | uploader", p))
	r, err := b.pgBackRest(ctx)
	if err != nil {
		return err
	}
	fmt.Println(line("pgBackRest, full", r))
	ratio := p.seconds / o.seconds
	fmt.Printf("ours has %.2f of the plain pipe's speed, and takes %.0f MiB of memory\n", ratio, o.mebibytes)
	var missed []error
	if ratio < target {
		missed = append(missed, fmt.Errorf("ours has %.2f of the plain pipe's speed, the target is %.2f", ratio, target))
	}
	if o.mebibytes > most {
		missed = append(missed, fmt.Errorf("ours takes %.0f MiB of memory, the target is %d", o.mebibytes, most))
	}
	return errors.Join(missed...)
}
