//go:build e2e

package backup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// nonsense is a list of valid Backups and Restores with one invalid value, and the words with which
// the API server refuses them.
var nonsense = map[string]struct {
	kind  string
	path  string // below spec.forProvider
	value any
	want  string
}{
	"BadCron":             {"Backup", "schedule", "every day", "schedule must have five fields"},
	"CronOfSixFields":     {"Backup", "schedule", "0 0 2 * * *", "schedule must have five fields"},
	"BadVerifyCron":       {"Backup", "verification.schedule", "weekly", "verification.schedule must have five fields"},
	"BadRetention":        {"Backup", "retention", "30 days", "spec.forProvider.retention"},
	"NoRetention":         {"Backup", "retention", "0d", "spec.forProvider.retention"},
	"EmptyKeep":           {"Backup", "keep", map[string]any{}, "spec.forProvider.keep"},
	"NegativeKeep":        {"Backup", "keep", map[string]any{"daily": int64(-1)}, "spec.forProvider.keep.daily"},
	"UnknownEngine":       {"Backup", "source.type", "oracle", "Unsupported value: \"oracle\""},
	"UnknownStore":        {"Backup", "destination.type", "ftp", "Unsupported value: \"ftp\""},
	"NoBucket":            {"Backup", "destination.bucket", nil, "spec.forProvider.destination.bucket: Required value"},
	"NoDestination":       {"Backup", "destination", nil, "spec.forProvider.destination: Required value"},
	"NoSource":            {"Backup", "source", nil, "spec.forProvider.source: Required value"},
	"NoConnection":        {"Backup", "source.connection", map[string]any{}, "connection needs either a databaseClusterRef or a secretRef"},
	"TwoConnections":      {"Backup", "source.connection.secretRef", map[string]any{"name": "it"}, "connection needs either a databaseClusterRef or a secretRef"},
	"ClusterOfMongoDB":    {"Backup", "source.type", "mongodb", "connection.databaseClusterRef needs type postgresql or mysql"},
	"PrefixThatClimbs":    {"Backup", "destination.prefix", "../others", "destination.prefix must be a relative path"},
	"BucketOfTwoLines":    {"Backup", "destination.bucket", "b\nrepo1-path=/other", "destination.bucket may only have letters"},
	"EndpointOfVolume":    {"Backup", "destination", map[string]any{"type": "volume", "bucket": "it", "endpoint": "http://there"}, "destination.endpoint, region and secretRef are for object stores"},
	"EndpointWithoutHTTP": {"Backup", "destination.endpoint", "there:9000", "spec.forProvider.destination.endpoint"},
	"EndpointWithoutTLS":  {"Backup", "destination.endpoint", "http://there:9000", "destination.endpoint has no TLS"},
	"PhysicalSchedule":    {"Backup", "method", "physical", "the schedule of physical backups is the DatabaseCluster's"},
	"UnknownCompression":  {"Backup", "compression", "gzip", "Unsupported value: \"gzip\""},
	"UnknownField":        {"Backup", "packing", "zstd", "unknown field \"spec.forProvider.packing\""},
	"NoRestoreSource":     {"Restore", "source", map[string]any{}, "source needs either a backupRef or a location"},
	"IDAndTime":           {"Restore", "source", map[string]any{"backupRef": map[string]any{"name": "it"}, "id": "x", "time": "2026-01-01T00:00:00Z"}, "source takes an id or a time, not both"},
	"NoTarget":            {"Restore", "target", nil, "spec.forProvider.target: Required value"},
	"LongName":            {"Backup", "", strings.Repeat("a", 41), "metadata.name may have at most 40 characters"},
}

// sensible returns a valid Backup or Restore.
func (g *ground) sensible(kind string) *unstructured.Unstructured {
	database := map[string]any{"type": "postgresql", "connection": map[string]any{"databaseClusterRef": map[string]any{"name": "orders"}}}
	forProvider := map[string]any{
		"source": database, "schedule": "0 2 * * *",
		"destination": map[string]any{"type": "s3", "bucket": "it"},
	}
	if kind == "Restore" {
		forProvider = map[string]any{"source": map[string]any{"backupRef": map[string]any{"name": "it"}}, "target": database}
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "backup.example.com/v1", "kind": kind, "spec": map[string]any{"forProvider": forProvider},
	}}
	u.SetName("refused")
	u.SetNamespace(g.namespace)
	return u
}

func (g *ground) refusesNonsense(ctx context.Context, n notes) error {
	if err := g.ready(ctx); err != nil {
		return err
	}
	var errs []error
	for _, kind := range []string{"Backup", "Restore"} {
		if _, err := cluster.Create(ctx, g.sensible(kind), metav1.DryRunAll); err != nil {
			errs = append(errs, fmt.Errorf("what is sensible is refused: %w", err))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(nonsense)) {
		tc := nonsense[name]
		u := g.sensible(tc.kind)
		path := append([]string{"spec", "forProvider"}, strings.Split(tc.path, ".")...)
		switch {
		case tc.path == "":
			u.SetName(fmt.Sprint(tc.value))
		case tc.value == nil:
			unstructured.RemoveNestedField(u.Object, path...)
		default:
			if err := unstructured.SetNestedField(u.Object, tc.value, path...); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		_, err := cluster.Create(ctx, u, metav1.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			errs = append(errs, fmt.Errorf("%s: was not refused with %q: %w", name, tc.want, err))
		}
	}
	n.Addf("%d kinds of nonsense", len(nonsense))
	return errors.Join(errs...)
}
