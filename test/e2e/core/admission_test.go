//go:build e2e

package core

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/e2e-framework/pkg/features"
	"sigs.k8s.io/e2e-framework/pkg/types"

	"github.com/storeplane/storeplane/test/e2e/harness"
	"github.com/storeplane/storeplane/test/e2e/manifests"
)

func badInput() types.Feature {
	ns := dev.namespace
	return features.New("bad input").
		Assess("the API server rejects bad claims and says why", assess(rejectsClaims, ns)).
		Assess("the API server rejects bad changes and says why", assess(rejectsChanges, ns)).
		Assess("a schedule that only a parser refuses is refused by the claim, and the shop goes on", assess(refusesSchedule, ns)).
		Assess("a database version that goes back is refused by the claim, and the shop goes on", assess(refusesVersion, ns)).
		Assess("settings with nonsense are refused by the claims, and the shop goes on", assess(refusesSettings, ns)).
		Assess("settings that are taken away are kept by the claims that had them", assess(keepsSettings, ns)).
		Feature()
}

// validShop returns a valid EcommercePlatform. Each case adds one mistake to a valid claim.
func validShop() *unstructured.Unstructured {
	u, err := manifests.Read("shop/store.yaml", map[string]string{"NAMESPACE": dev.namespace, "REGISTRY": cluster.Registry})
	if err != nil {
		panic(err) // the file is embedded in this program
	}
	u.SetName("rejected")
	return u
}

func validDatabase() *unstructured.Unstructured {
	return newClaim("DatabaseCluster", map[string]any{"size": int64(1), "version": "17"})
}

func validWebApp() *unstructured.Unstructured {
	return newClaim("WebApp", map[string]any{"image": image("backend", "v1")})
}

func newClaim(kind string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps.example.com/v1", "kind": kind, "spec": spec}}
	u.SetName("rejected")
	u.SetNamespace(dev.namespace)
	return u
}

// badClaim is a valid claim with one value replaced by an invalid one. For metadata.name the value
// is the name.
type badClaim struct {
	base  func() *unstructured.Unstructured
	path  string
	value any
	want  string
}

func badClaims() map[string]badClaim {
	return map[string]badClaim{
		"NoMistake":              {validShop, "spec.environment", "development", ""},
		"NoMistakeDatabase":      {validDatabase, "spec.engine", "postgresql", ""},
		"NoMistakeWebApp":        {validWebApp, "spec.replicas", int64(2), ""},
		"UnknownField":           {validShop, "spec.backend.replcas", int64(2), `unknown field "spec.backend.replcas"`},
		"WrongEnum":              {validShop, "spec.environment", "prod", `spec.environment: Unsupported value: "prod": supported values: "development", "staging", "production"`},
		"WrongEngine":            {validDatabase, "spec.engine", "oracle", `spec.engine: Unsupported value: "oracle": supported values: "postgresql", "mysql"`},
		"NoReplicas":             {validShop, "spec.backend.replicas", int64(0), "spec.backend.replicas in body should be greater than or equal to 1"},
		"NoWebAppReplicas":       {validWebApp, "spec.replicas", int64(0), "spec.replicas in body should be greater than or equal to 1"},
		"ElevenInProduction":     {productionOf(validShop), "spec.backend.replicas", int64(11), "backend.replicas may be at most 10 in production"},
		"ElevenFrontends":        {productionOf(validShop), "spec.frontend.replicas", int64(11), "frontend.replicas may be at most 10 in production"},
		"ElevenWebApps":          {validWebApp, "spec.replicas", int64(11), "replicas may be at most 10"},
		"ElevenAutoscaled":       {productionOf(validShop), "spec.backend.autoscaling", map[string]any{"maxReplicas": int64(11)}, "backend.autoscaling.maxReplicas may be at most 10 in production"},
		"AutoscalingUpsideDown":  {validWebApp, "spec.autoscaling", map[string]any{"minReplicas": int64(4), "maxReplicas": int64(2)}, "autoscaling.minReplicas must not be more than autoscaling.maxReplicas"},
		"NoServers":              {validDatabase, "spec.size", int64(0), "spec.size in body should be greater than or equal to 1"},
		"TooManyServers":         {validDatabase, "spec.size", int64(11), "spec.size in body should be less than or equal to 10"},
		"BadQuantity":            {validShop, "spec.database.storage", "20 GB", "database.storage must be a quantity above zero, like 20Gi"},
		"NoQuantity":             {validDatabase, "spec.storageSize", "0", "storageSize must be a quantity above zero, like 20Gi"},
		"NegativeQuantity":       {validDatabase, "spec.storageSize", "-1Gi", "storageSize must be a quantity above zero, like 20Gi"},
		"TooLittleMemory":        {validShop, "spec.cache.memory", "1Mi", "cache.memory must be a quantity of at least 16Mi"},
		"BadVersion":             {validDatabase, "spec.version", "seventeen", "spec.version in body should match"},
		"BadCron":                {validShop, "spec.backend.cronJobs", []any{map[string]any{"name": "prune", "schedule": "every day", "args": []any{"prune"}}}, "schedule in body should match"},
		"BadBackupCron":          {validDatabase, "spec.backup", map[string]any{"schedule": "02:00"}, "spec.backup.schedule in body should match"},
		"BadRetention":           {validDatabase, "spec.backup", map[string]any{"retention": "a month"}, "spec.backup.retention in body should match"},
		"EmptyMigration":         {validShop, "spec.backend.migration", map[string]any{}, "migration needs a command or args"},
		"ImageWithSpace":         {validShop, "spec.backend.image", "shop backend:v1", "spec.backend.image in body should match"},
		"NoImage":                {validWebApp, "spec.image", "", "spec.image in body should be at least 1 chars long"},
		"BadHost":                {validShop, "spec.ingress.host", "Shop_1", "spec.ingress.host in body should match"},
		"BadPort":                {validWebApp, "spec.port", int64(65536), "spec.port in body should be less than or equal to 65535"},
		"NameTooLong":            {validShop, "metadata.name", strings.Repeat("a", 32), "metadata.name may have at most 31 characters"},
		"DatabaseNameTooLong":    {validDatabase, "metadata.name", strings.Repeat("a", 41), "metadata.name may have at most 40 characters"},
		"WebAppNameTooLong":      {validWebApp, "metadata.name", strings.Repeat("a", 41), "metadata.name may have at most 40 characters"},
		"NameStartsWithDigit":    {validShop, "metadata.name", "1store", "metadata.name must start with a letter"},
		"BackupWithoutBucket":    {validDatabase, "spec.backup", map[string]any{"destination": map[string]any{"type": "s3"}}, "destination.bucket is needed for type s3, gcs and azure"},
		"RestoreFromNothing":     {validDatabase, "spec.restoreFrom", map[string]any{}, "restoreFrom needs either a backupRef or a destination"},
		"CertificateFromNowhere": {validShop, "spec.ingress.tls", map[string]any{}, "ingress.tls needs a secretName or an issuer"},
	}
}

func productionOf(base func() *unstructured.Unstructured) func() *unstructured.Unstructured {
	return func() *unstructured.Unstructured {
		u := base()
		_ = unstructured.SetNestedField(u.Object, "production", "spec", "environment")
		return u
	}
}

func rejectsClaims(ctx context.Context, n notes) error {
	if err := dev.ready(ctx, settled); err != nil {
		return err
	}
	cases := badClaims()
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		tc := cases[name]
		u := tc.base()
		if err := unstructured.SetNestedField(u.Object, tc.value, strings.Split(tc.path, ".")...); err != nil {
			return fmt.Errorf("%s: cannot set %s: %w", name, tc.path, err)
		}
		_, err := cluster.Create(ctx, u, metav1.DryRunAll)
		errs = append(errs, compare(name, err, tc.want))
	}
	n.Addf("%d claims", len(cases))
	return errors.Join(errs...)
}

// compare compares the API server's answer with a part of it that is wanted, or "" if the claim is
// accepted.
func compare(name string, err error, want string) error {
	switch {
	case want == "" && err != nil:
		return fmt.Errorf("%s: what is right was rejected: %w", name, err)
	case want != "" && err == nil:
		return fmt.Errorf("%s: it was accepted, want: %s", name, want)
	case want != "" && !strings.Contains(err.Error(), want):
		return fmt.Errorf("%s: want: %s\n  got: %w", name, want, err)
	default:
		return nil
	}
}

// badChange is a change of a running claim.
type badChange struct {
	kind, name string
	spec       harness.Patch
	want       string
}

func rejectsChanges(ctx context.Context, n notes) error {
	if err := dev.ready(ctx, settled); err != nil {
		return err
	}
	cases := map[string]badChange{
		"NoMistake":            {"EcommercePlatform", claimName, harness.Patch{"backend": harness.Patch{"replicas": 2}}, ""},
		"Grow":                 {"EcommercePlatform", claimName, harness.Patch{"database": harness.Patch{"storage": "2Gi"}}, ""},
		"Shrink":               {"EcommercePlatform", claimName, harness.Patch{"database": harness.Patch{"storage": "512Mi"}}, "database.storage may not shrink: 1Gi to 512Mi"},
		"RemoveStorage":        {"EcommercePlatform", claimName, harness.Patch{"database": harness.Patch{"storage": nil}}, "database.storage may not be removed once it is set"},
		"ChangeType":           {"EcommercePlatform", claimName, harness.Patch{"database": harness.Patch{"type": "mysql"}}, "database.type is immutable: claim a new EcommercePlatform and move the data"},
		"ShrinkDatabase":       {"DatabaseCluster", databaseClaim, harness.Patch{"storageSize": "512Mi"}, "storageSize may not shrink: 1Gi to 512Mi"},
		"RemoveStorageSize":    {"DatabaseCluster", databaseClaim, harness.Patch{"storageSize": nil}, "storageSize may not be removed once it is set"},
		"ChangeEngine":         {"DatabaseCluster", databaseClaim, harness.Patch{"engine": "mysql"}, "engine is immutable: claim a new DatabaseCluster and move the data"},
		"NoReplicas":           {"EcommercePlatform", claimName, harness.Patch{"frontend": harness.Patch{"replicas": 0}}, "spec.frontend.replicas in body should be greater than or equal to 1"},
		"UnknownField":         {"WebApp", backendClaim, harness.Patch{"imagee": "x"}, `unknown field "spec.imagee"`},
		"ProductionWithEleven": {"EcommercePlatform", claimName, harness.Patch{"environment": "production", "backend": harness.Patch{"replicas": 11}}, "backend.replicas may be at most 10 in production"},
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		tc := cases[name]
		_, err := cluster.Patch(ctx, tc.kind, dev.namespace, tc.name, harness.Patch{"spec": tc.spec}, metav1.DryRunAll)
		errs = append(errs, compare(name, err, tc.want))
	}
	n.Addf("%d changes", len(cases))
	return errors.Join(errs...)
}
