package xrd_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/storeplane/storeplane/apis"
	"github.com/storeplane/storeplane/internal/xrd"
)

// Manifests as users have them.
const (
	productionStore = `
apiVersion: platform.example.com/v1
kind: EcommercePlatform
metadata:
  name: production-store
spec:
  environment: production
  frontend:
    replicas: 5
    image: registry.company.com/ecommerce-frontend:v2.1.0
  backend:
    replicas: 3
    image: registry.company.com/ecommerce-backend:v2.1.0
  database:
    type: postgresql
    version: "14"
    storage: 500Gi
  cache:
    enabled: true
  monitoring:
    enabled: true
`
	databaseCluster = `
apiVersion: apps.example.com/v1
kind: DatabaseCluster
metadata:
  name: my-db
spec:
  size: 3
  version: "14.5.0"
  storageSize: 20Gi
`
	webApp = `
apiVersion: apps.example.com/v1
kind: WebApp
metadata:
  name: my-webapp
spec:
  image: nginx:1.25
  replicas: 3
  port: 80
`
)

// schemas are compiled only once, since that is the slowest part of these tests.
var schemas = func() xrd.Schemas {
	s, err := xrd.Load(apis.Definitions)
	if err != nil {
		panic(err)
	}
	return s
}()

func parse(t testing.TB, manifest string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &u.Object); err != nil {
		t.Fatalf("cannot parse manifest: %v", err)
	}
	// YAML has no integers, and the decoder of the API server does.
	b, err := u.MarshalJSON()
	if err != nil {
		t.Fatalf("cannot encode manifest: %v", err)
	}
	if err := u.UnmarshalJSON(b); err != nil {
		t.Fatalf("cannot decode manifest: %v", err)
	}
	return u
}

// change is a change of a claim. The path is like spec.cronJobs, and a nil value removes the field.
type change struct {
	path  string
	value any
}

func set(path string, value any) change { return change{path: path, value: value} }

func remove(path string) change { return change{path: path} }

func with(t testing.TB, manifest string, changes ...change) *unstructured.Unstructured {
	t.Helper()
	u := parse(t, manifest)
	for _, c := range changes {
		at := strings.Split(c.path, ".")
		if c.value == nil {
			unstructured.RemoveNestedField(u.Object, at...)
			continue
		}
		if err := unstructured.SetNestedField(u.Object, c.value, at...); err != nil {
			t.Fatalf("cannot set %s: %v", c.path, err)
		}
	}
	return u
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// volume returns a volume at a path, with empty sources.
func volume(path string, sources ...string) []any {
	v := map[string]any{"name": "data", "mountPath": path}
	for _, s := range sources {
		v[s] = map[string]any{}
		if s == "persistentVolumeClaim" {
			v[s] = map[string]any{"claimName": "data"}
		}
	}
	return []any{v}
}

// everyField returns the example that sets every field of a WebApp.
func everyField(t testing.TB) *unstructured.Unstructured {
	t.Helper()
	b, err := os.ReadFile("../../examples/webapp/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(b))
}

func TestValidate(t *testing.T) {
	cron := func(name, schedule string) []any {
		return []any{map[string]any{"name": name, "schedule": schedule, "args": []any{"run"}}}
	}
	cases := map[string]struct {
		reason string
		claim  *unstructured.Unstructured
		want   string
	}{
		"EcommercePlatform": {reason: "The shop that people bring along is accepted as it stands.", claim: with(t, productionStore)},
		"DatabaseCluster":   {reason: "The database that people bring along is accepted as it stands.", claim: with(t, databaseCluster)},
		"WebApp":            {reason: "The web app that people bring along is accepted as it stands.", claim: with(t, webApp)},
		"UnknownField":      {reason: "A misspelt field is an error and not silently dropped.", claim: with(t, webApp, set("spec.replica", int64(2))), want: `WebApp "my-webapp" is invalid: unknown field "spec.replica"`},
		"UnknownNestedField": {
			reason: "The path of an unknown field names the list item that it is in.",
			claim: with(t, webApp, set("spec.cronJobs", []any{map[string]any{
				"name": "sweep", "schedule": "@daily", "timezone": "UTC",
			}})),
			want: `WebApp "my-webapp" is invalid: unknown field "spec.cronJobs[0].timezone"`,
		},
		"UnknownMetadata": {reason: "Metadata is checked as strictly as the spec.", claim: with(t, webApp, set("metadata.label", map[string]any{"a": "b"})), want: `WebApp "my-webapp" is invalid: unknown field "metadata.label"`},
		"WrongEnum": {
			reason: "A wrong environment is answered with those there are.",
			claim:  with(t, productionStore, set("spec.environment", "prod")),
			want: `EcommercePlatform "production-store" is invalid:
  spec.environment: Unsupported value: "prod": supported values: "development", "staging", "production"
  some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`,
		},
		"NoReplicas": {reason: "A tier has at least one pod.", claim: with(t, webApp, set("spec.replicas", int64(0))), want: `WebApp "my-webapp" is invalid: spec.replicas: Invalid value: 0: should be greater than or equal to 1`},
		"NoFrontendReplicas": {
			reason: "A tier of a shop has at least one pod.",
			claim:  with(t, productionStore, set("spec.frontend.replicas", int64(0))),
			want:   `EcommercePlatform "production-store" is invalid: spec.frontend.replicas: Invalid value: 0: should be greater than or equal to 1`,
		},
		"TooManyFrontendReplicas": {
			reason: "Production has at most ten pods a tier.",
			claim:  with(t, productionStore, set("spec.frontend.replicas", int64(11))),
			want:   `EcommercePlatform "production-store" is invalid: spec: frontend.replicas may be at most 10 in production`,
		},
		"TooManyBackendReplicas": {
			reason: "Production has at most ten pods a tier.",
			claim:  with(t, productionStore, set("spec.backend.replicas", int64(11))),
			want:   `EcommercePlatform "production-store" is invalid: spec: backend.replicas may be at most 10 in production`,
		},
		"ManyReplicasInStaging": {reason: "The cap is production's only.", claim: with(t, productionStore, set("spec.environment", "staging"), set("spec.frontend.replicas", int64(11)))},
		"AutoscalingAboveTheCap": {
			reason: "Autoscaling is no way round the cap of production.",
			claim:  with(t, productionStore, set("spec.backend.autoscaling", map[string]any{"maxReplicas": int64(11)})),
			want:   `EcommercePlatform "production-store" is invalid: spec: backend.autoscaling.maxReplicas may be at most 10 in production`,
		},
		"TooManyWebAppReplicas": {
			reason: "A web app has at most ten pods unless it says that it is no production.",
			claim:  with(t, webApp, set("spec.replicas", int64(11))),
			want:   `WebApp "my-webapp" is invalid: spec: replicas may be at most 10 (more only where environment is development or staging)`,
		},
		"ManyWebAppReplicasInStaging": {reason: "A web app that says so may have more.", claim: with(t, webApp, set("spec.replicas", int64(11)), set("spec.environment", "staging"))},
		"BadQuantity": {
			reason: "What is no quantity is refused, with the value.",
			claim:  with(t, databaseCluster, set("spec.storageSize", "20 GB")),
			want:   `DatabaseCluster "my-db" is invalid: spec.storageSize: Invalid value: "20 GB": storageSize must be a quantity above zero, like 20Gi`,
		},
		"NoQuantity": {
			reason: "No storage at all is refused.",
			claim:  with(t, productionStore, set("spec.database.storage", "0")),
			want:   `EcommercePlatform "production-store" is invalid: spec.database.storage: Invalid value: "0": database.storage must be a quantity above zero, like 20Gi`,
		},
		"TooLittleCache": {
			reason: "A cache that Redis cannot even start with is refused.",
			claim:  with(t, productionStore, set("spec.cache.memory", "1Mi")),
			want:   `EcommercePlatform "production-store" is invalid: spec.cache.memory: Invalid value: "1Mi": cache.memory must be a quantity of at least 16Mi`,
		},
		"BadCron": {
			reason: "What is no cron expression is refused.",
			claim:  with(t, webApp, set("spec.cronJobs", cron("sweep", "every day"))),
			want:   `WebApp "my-webapp" is invalid: spec.cronJobs[0].schedule: Invalid value: "every day": should match '` + schedule(t) + `'`,
		},
		"BadBackupCron": {
			reason: "Six fields are no cron expression of Kubernetes.",
			claim:  with(t, databaseCluster, set("spec.backup", map[string]any{"schedule": "0 0 2 * * *"})),
			want:   `DatabaseCluster "my-db" is invalid: spec.backup.schedule: Invalid value: "0 0 2 * * *": should match '` + schedule(t) + `'`,
		},
		"SameCronJobTwice": {
			reason: "Two jobs of one name would be one CronJob.",
			claim:  with(t, webApp, set("spec.cronJobs", append(cron("sweep", "@daily"), cron("sweep", "@hourly")...))),
			want:   `WebApp "my-webapp" is invalid: spec.cronJobs[1]: Duplicate value: {"name":"sweep"}`,
		},
		"LongestEcommercePlatformName": {reason: "31 characters fit.", claim: with(t, productionStore, set("metadata.name", strings.Repeat("a", 31)))},
		"EcommercePlatformNameTooLong": {
			reason: "The names made from a shop's name must fit.",
			claim:  with(t, productionStore, set("metadata.name", strings.Repeat("a", 32))),
			want:   `EcommercePlatform "` + strings.Repeat("a", 32) + `" is invalid: metadata.name may have at most 31 characters, so that the names made from it fit`,
		},
		"DatabaseClusterNameTooLong": {
			reason: "The names made from a database's name must fit.",
			claim:  with(t, databaseCluster, set("metadata.name", strings.Repeat("a", 41))),
			want:   `DatabaseCluster "` + strings.Repeat("a", 41) + `" is invalid: metadata.name may have at most 40 characters, so that the names made from it fit`,
		},
		"WebAppNameTooLong": {
			reason: "The names made from a web app's name must fit.",
			claim:  with(t, webApp, set("metadata.name", strings.Repeat("a", 41))),
			want:   `WebApp "` + strings.Repeat("a", 41) + `" is invalid: metadata.name may have at most 40 characters, so that the names made from it fit`,
		},
		"NameAboveCrossplanesOwnCap": {
			reason: "Crossplane's own cap is 63, since the name is the value of a label.",
			claim:  with(t, webApp, set("metadata.name", strings.Repeat("a", 64))),
			want: `WebApp "` + strings.Repeat("a", 64) + `" is invalid:
  metadata.name: Too long: may not be more than 63 bytes
  some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`,
		},
		"EcommercePlatformNameStartsWithDigit": {
			reason: "A Service's name starts with a letter.",
			claim:  with(t, productionStore, set("metadata.name", "1shop")),
			want:   `EcommercePlatform "1shop" is invalid: metadata.name must start with a letter and hold only lower-case letters, digits and hyphens, since Services are named after it`,
		},
		"DatabaseClusterNameStartsWithDigit": {
			reason: "A Service's name starts with a letter.",
			claim:  with(t, databaseCluster, set("metadata.name", "1db")),
			want:   `DatabaseCluster "1db" is invalid: metadata.name must start with a letter and hold only lower-case letters, digits and hyphens, since Services are named after it`,
		},
		"WebAppNameWithDot": {
			reason: "A Service's name has no dots.",
			claim:  with(t, webApp, set("metadata.name", "my.app")),
			want:   `WebApp "my.app" is invalid: metadata.name must start with a letter and hold only lower-case letters, digits and hyphens, since Services are named after it`,
		},
		"NoName": {
			reason: "A claim without a name is refused as the API server does.",
			claim:  with(t, webApp, remove("metadata.name")),
			want: `WebApp "" is invalid:
  metadata.name: Required value: name or generateName is required
  some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`,
		},
		"ImageWithSpace": {
			reason: "An image reference has no spaces.",
			claim:  with(t, webApp, set("spec.image", "nginx: 1.25")),
			want:   `WebApp "my-webapp" is invalid: spec.image: Invalid value: "nginx: 1.25": should match '^[a-zA-Z0-9]([a-zA-Z0-9._:/@-]*[a-zA-Z0-9])?$'`,
		},
		"AutoscalingUpsideDown": {
			reason: "The lower bound is not above the upper one.",
			claim:  with(t, webApp, set("spec.autoscaling", map[string]any{"minReplicas": int64(4), "maxReplicas": int64(3)})),
			want:   `WebApp "my-webapp" is invalid: spec.autoscaling: autoscaling.minReplicas must not be more than autoscaling.maxReplicas`,
		},
		"NoServers":      {reason: "A database has at least one server.", claim: with(t, databaseCluster, set("spec.size", int64(0))), want: `DatabaseCluster "my-db" is invalid: spec.size: Invalid value: 0: should be greater than or equal to 1`},
		"TooManyServers": {reason: "A database has at most ten servers.", claim: with(t, databaseCluster, set("spec.size", int64(11))), want: `DatabaseCluster "my-db" is invalid: spec.size: Invalid value: 11: should be less than or equal to 10`},
		"NoImage": {
			reason: "A web app cannot do without an image.",
			claim:  with(t, webApp, remove("spec.image")),
			want: `WebApp "my-webapp" is invalid:
  spec.image: Required value
  some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`,
		},
		"NoSizeNoVersion": {
			reason: "All that is missing is listed at once.",
			claim:  with(t, databaseCluster, remove("spec.size"), remove("spec.version")),
			want: `DatabaseCluster "my-db" is invalid:
  spec.size: Required value
  spec.version: Required value
  some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`,
		},
		"BadVersion": {
			reason: "A version is a number of one to three parts.",
			claim:  with(t, databaseCluster, set("spec.version", "latest")),
			want:   `DatabaseCluster "my-db" is invalid: spec.version: Invalid value: "latest": should match '^[0-9]+(\.[0-9]+){0,2}$'`,
		},
		"VersionIsANumber": {
			reason: "YAML makes a number of an unquoted version, and the answer shows which.",
			claim:  with(t, databaseCluster, set("spec.version", 14.5)),
			want: `DatabaseCluster "my-db" is invalid:
  spec.version: Invalid value: 14.5: must be of type string: "number"
  some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`,
		},
		"EveryDatabaseField": {
			reason: "A database that says all there is to say.",
			claim: with(t, databaseCluster, set("spec.synchronous", true), set("spec.synchronousMode", "strict"), set("spec.hibernated", true), set("spec.deletionProtection", false),
				set("spec.tls", map[string]any{"required": false, "secretName": "certs"}),
				set("spec.users", []any{map[string]any{"name": "order_writer", "passwordSecretRef": map[string]any{"name": "mine"}}, map[string]any{"name": "_r2"}}),
				set("spec.databases", []any{map[string]any{"name": "shop", "owner": "order_writer", "extensions": []any{"pg_trgm", "uuid-ossp"}}})),
		},
		"UnknownSynchronousMode": {
			reason: "Writes wait or they do not.",
			claim:  with(t, databaseCluster, set("spec.synchronousMode", "maybe")),
			want: `DatabaseCluster "my-db" is invalid:
  spec.synchronousMode: Unsupported value: "maybe": supported values: "quorum", "strict"
  some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`,
		},
		"EmptyTLSSecret": {
			reason: "An empty name names no Secret.",
			claim:  with(t, databaseCluster, set("spec.tls", map[string]any{"secretName": ""})),
			want:   `DatabaseCluster "my-db" is invalid: spec.tls.secretName: Invalid value: "": should be at least 1 chars long`,
		},
		"UnknownTLSField": {reason: "A field that no program reads is refused.", claim: with(t, databaseCluster, set("spec.tls", map[string]any{"secret": "certs"})), want: `DatabaseCluster "my-db" is invalid: unknown field "spec.tls.secret"`},
		"UserWithHyphen": {
			reason: "A user's name needs no quotes in SQL.",
			claim:  with(t, databaseCluster, set("spec.users", []any{map[string]any{"name": "order-writer"}})),
			want:   `DatabaseCluster "my-db" is invalid: spec.users[0].name: Invalid value: "order-writer": should match '^[a-z_][a-z0-9_]*$'`,
		},
		"UserTwice": {reason: "One name is one user.", claim: with(t, databaseCluster, set("spec.users", []any{map[string]any{"name": "a"}, map[string]any{"name": "a"}})), want: `DatabaseCluster "my-db" is invalid: spec.users[1]: Duplicate value: {"name":"a"}`},
		"DatabaseTwice": {
			reason: "One name is one database.",
			claim:  with(t, databaseCluster, set("spec.databases", []any{map[string]any{"name": "a"}, map[string]any{"name": "a"}})),
			want:   `DatabaseCluster "my-db" is invalid: spec.databases[1]: Duplicate value: {"name":"a"}`,
		},
		"ExtensionWithQuote": {
			reason: "An extension's name is no SQL.",
			claim:  with(t, databaseCluster, set("spec.databases", []any{map[string]any{"name": "a", "extensions": []any{`x"; DROP`}}})),
			want:   `DatabaseCluster "my-db" is invalid: spec.databases[0].extensions[0]: Invalid value: "x\"; DROP": should match '^[a-z][a-z0-9_-]*$'`,
		},
		"TransactionAndTime": {
			reason: "A restore has one end.",
			claim:  with(t, databaseCluster, set("spec.restoreFrom", map[string]any{"backupRef": map[string]any{"name": "old"}, "time": "2026-01-01T00:00:00Z", "beforeTransaction": "3e11fa47-71ca-11e1-9e33-c80aa9429562:23"})),
			want:   `DatabaseCluster "my-db" is invalid: spec.restoreFrom: restoreFrom takes a time or beforeTransaction, not both`,
		},
		"TaggedTransaction": {reason: "A transaction may have a tag.", claim: with(t, databaseCluster, set("spec.restoreFrom", map[string]any{"backupRef": map[string]any{"name": "old"}, "beforeTransaction": "3e11fa47-71ca-11e1-9e33-c80aa9429562:nightly:23"}))},
		"Transactions": {
			reason: "It is one transaction.",
			claim:  with(t, databaseCluster, set("spec.restoreFrom", map[string]any{"backupRef": map[string]any{"name": "old"}, "beforeTransaction": "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-23"})),
			want:   `DatabaseCluster "my-db" is invalid: spec.restoreFrom.beforeTransaction: Invalid value: "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-23": should match '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(:[a-z_][a-z0-9_]{0,31})?:[1-9][0-9]{0,18}$'`,
		},
		"ProtectedShop": {reason: "A shop may be protected, in whichever environment.", claim: with(t, productionStore, set("spec.deletionProtection", false))},
		"ShopWithADatabaseOfItsOwnMind": {
			reason: "What a DatabaseCluster offers, a shop's database does too.",
			claim: with(t, productionStore, set("spec.database.parameters", map[string]any{"work_mem": "16MB"}), set("spec.database.synchronous", false), set("spec.database.users", []any{map[string]any{"name": "reader"}}),
				set("spec.database.backup", map[string]any{"retention": "7d"}), set("spec.database.resources", map[string]any{"requests": map[string]any{"cpu": "1"}}), set("spec.database.restoreFrom", map[string]any{"backupRef": map[string]any{"name": "old"}})),
		},
		"EvictionOfItsOwn": {
			reason: "Redis knows no other policies.",
			claim:  with(t, productionStore, set("spec.cache.evictionPolicy", "lru")),
			want: "EcommercePlatform \"production-store\" is invalid:\n" +
				"  spec.cache.evictionPolicy: Unsupported value: \"lru\": supported values: \"noeviction\", \"allkeys-lru\", \"allkeys-lfu\", \"allkeys-random\", \"volatile-lru\", \"volatile-lfu\", \"volatile-random\", \"volatile-ttl\"\n" +
				"  some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
		},
		"WorkersOfAShop": {
			reason: "Workers are counted like any pods in production.",
			claim:  with(t, productionStore, set("spec.backend.workers", []any{map[string]any{"name": "mail", "replicas": int64(11)}})),
			want:   `EcommercePlatform "production-store" is invalid: spec: backend.workers: replicas and autoscaling.maxReplicas may be at most 10 in production`,
		},
		"MigrationOfNothing":     {reason: "A migration that runs the image as it is would never end.", claim: with(t, webApp, set("spec.migration", map[string]any{})), want: `WebApp "my-webapp" is invalid: spec.migration: migration needs a command or args`},
		"MigrationOfAnEmptyList": {reason: "An empty list is no command either.", claim: with(t, webApp, set("spec.migration", map[string]any{"args": []any{}})), want: `WebApp "my-webapp" is invalid: spec.migration: migration needs a command or args`},
		"EmptyBucket": {
			reason: "An empty name is no bucket.",
			claim:  with(t, databaseCluster, set("spec.backup", map[string]any{"destination": map[string]any{"type": "s3", "bucket": ""}})),
			want:   `DatabaseCluster "my-db" is invalid: spec.backup.destination.bucket: Invalid value: "": should be at least 1 chars long`,
		},
		"BackendMigrationOfNothing": {
			reason: "The same rule holds for a shop's backend.",
			claim:  with(t, productionStore, set("spec.backend.migration", map[string]any{})),
			want:   `EcommercePlatform "production-store" is invalid: spec.backend.migration: migration needs a command or args`,
		},
		"EveryWebAppField": {reason: "A web app that says all there is to say.", claim: everyField(t)},
		"VolumeOfTwoSources": {
			reason: "A folder comes from one place.",
			claim:  with(t, webApp, set("spec.volumes", volume("/data", "emptyDir", "persistentVolumeClaim"))),
			want:   `WebApp "my-webapp" is invalid: spec.volumes[0]: a volume needs exactly one of configMap, secret, emptyDir and persistentVolumeClaim`,
		},
		"VolumeOfNothing": {
			reason: "And it comes from somewhere.",
			claim:  with(t, webApp, set("spec.volumes", volume("/data"))),
			want:   `WebApp "my-webapp" is invalid: spec.volumes[0]: a volume needs exactly one of configMap, secret, emptyDir and persistentVolumeClaim`,
		},
		"VolumeAtTmp": {
			reason: "/tmp is there, and can be written to.",
			claim:  with(t, webApp, set("spec.volumes", volume("/tmp", "emptyDir"))),
			want:   `WebApp "my-webapp" is invalid: spec.volumes[0].mountPath: Invalid value: "/tmp": mountPath may not be /tmp, which is there already and can be written to`,
		},
		"VolumeAtRelativePath": {
			reason: "A folder is somewhere whatever the image's working directory is.",
			claim:  with(t, webApp, set("spec.volumes", volume("data", "emptyDir"))),
			want:   `WebApp "my-webapp" is invalid: spec.volumes[0].mountPath: Invalid value: "data": should match '^(/[A-Za-z0-9._-]*[A-Za-z0-9_-][A-Za-z0-9._-]*)+$'`,
		},
		"VolumeWithDots": {
			reason: "A path has no way back.",
			claim:  with(t, webApp, set("spec.volumes", volume("/data/../etc", "emptyDir"))),
			want:   `WebApp "my-webapp" is invalid: spec.volumes[0].mountPath: Invalid value: "/data/../etc": should match '^(/[A-Za-z0-9._-]*[A-Za-z0-9_-][A-Za-z0-9._-]*)+$'`,
		},
		"VolumesAtOnePath": {
			reason: "Two folders cannot be in one place.",
			claim: with(t, webApp, set("spec.volumes", []any{
				map[string]any{"name": "a", "mountPath": "/data", "emptyDir": map[string]any{}}, map[string]any{"name": "b", "mountPath": "/data", "emptyDir": map[string]any{}},
			})),
			want: `WebApp "my-webapp" is invalid: spec: volumes: each mountPath may be there only once`,
		},
		"BackendVolumesAtOnePath": {
			reason: "The same holds for a shop's tiers.",
			claim: with(t, productionStore, set("spec.backend.volumes", []any{
				map[string]any{"name": "a", "mountPath": "/data", "emptyDir": map[string]any{}}, map[string]any{"name": "b", "mountPath": "/data", "emptyDir": map[string]any{}},
			})),
			want: `EcommercePlatform "production-store" is invalid: spec.backend: volumes: each mountPath may be there only once`,
		},
		"SidecarNamedApp": {
			reason: "The application's container has its name already.",
			claim:  with(t, webApp, set("spec.sidecars", []any{map[string]any{"name": "app", "image": "x"}})),
			want:   `WebApp "my-webapp" is invalid: spec.sidecars[0].name: Invalid value: "app": app, cron, http, metrics, migration and worker are names of the application's own: choose another one`,
		},
		"SidecarNamedAsInitContainer": {
			reason: "Both are in one pod.",
			claim:  with(t, webApp, set("spec.sidecars", []any{map[string]any{"name": "a", "image": "x"}}), set("spec.initContainers", []any{map[string]any{"name": "a"}})),
			want:   `WebApp "my-webapp" is invalid: spec: initContainers and sidecars may not share a name`,
		},
		"InitContainerWithPort": {
			reason: "What runs to its end takes no requests.",
			claim:  with(t, webApp, set("spec.initContainers", []any{map[string]any{"name": "a", "port": int64(80)}})),
			want:   `WebApp "my-webapp" is invalid: unknown field "spec.initContainers[0].port"`,
		},
		"GatewayWithClass": {
			reason: "A class is an Ingress's.",
			claim:  with(t, webApp, set("spec.ingress", map[string]any{"host": "a.b", "className": "nginx", "gateway": map[string]any{"name": "g"}})),
			want:   `WebApp "my-webapp" is invalid: spec.ingress: ingress.className is of an Ingress: leave it out with ingress.gateway`,
		},
		"GatewayWithTLS": {
			reason: "The certificate is the listener's.",
			claim:  with(t, webApp, set("spec.ingress", map[string]any{"host": "a.b", "tls": map[string]any{"secretName": "c"}, "gateway": map[string]any{"name": "g"}})),
			want:   `WebApp "my-webapp" is invalid: spec.ingress: ingress.tls is of an Ingress: with ingress.gateway the Gateway's listener has the certificate`,
		},
		"MetricWithoutQuantity": {
			reason: "An autoscaler aims at a number.",
			claim:  with(t, webApp, set("spec.autoscaling", map[string]any{"maxReplicas": int64(3), "metrics": []any{map[string]any{"type": "Pods", "name": "rps", "averageValue": "many"}}})),
			want:   `WebApp "my-webapp" is invalid: spec.autoscaling.metrics[0].averageValue: Invalid value: "many": averageValue must be a quantity above zero, like 100 or 500m`,
		},
		"TooManyWorkers": {
			reason: "Workers are capped as the application is.",
			claim:  with(t, webApp, set("spec.workers", []any{map[string]any{"name": "w", "replicas": int64(11)}})),
			want:   `WebApp "my-webapp" is invalid: spec: workers: replicas and autoscaling.maxReplicas may be at most 10 (more only where environment is development or staging)`,
		},
		"ManyWorkersInStaging": {reason: "More are fine where there are no customers.", claim: with(t, webApp, set("spec.environment", "staging"), set("spec.workers", []any{map[string]any{"name": "w", "replicas": int64(11)}}))},
		"WorkerNameTooLong": {
			reason: "A worker's name fits behind the longest claim's.",
			claim:  with(t, webApp, set("spec.workers", []any{map[string]any{"name": strings.Repeat("w", 16)}})),
			want: `WebApp "my-webapp" is invalid:
  spec.workers[0].name: Too long: may not be more than 15 bytes
  some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`,
		},
		"ConcurrencyPolicy": {
			reason: "A wrong policy is answered with those there are.",
			claim:  with(t, webApp, set("spec.cronJobs", []any{map[string]any{"name": "a", "schedule": "@daily", "concurrencyPolicy": "Never"}})),
			want: `WebApp "my-webapp" is invalid:
  spec.cronJobs[0].concurrencyPolicy: Unsupported value: "Never": supported values: "Allow", "Forbid", "Replace"
  some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`,
		},
		"LongestCronJobName": {reason: "Claim and job together may have 46 characters.", claim: with(t, webApp, set("metadata.name", strings.Repeat("a", 40)), set("spec.cronJobs", cron("nights", "@daily")))},
		"CronJobNameTooLong": {
			reason: "Each name fits, but not the two together.",
			claim:  with(t, webApp, set("metadata.name", strings.Repeat("a", 40)), set("spec.cronJobs", cron("nightly", "@daily"))),
			want:   `WebApp "` + strings.Repeat("a", 40) + `" is invalid: metadata.name and a cronJobs name together may have at most 46 characters, so that <claim>-cron-<name> fits a CronJob`,
		},
		"BackendCronJobNameTooLong": {
			reason: "A shop's backend takes eight characters more.",
			claim:  with(t, productionStore, set("metadata.name", strings.Repeat("a", 31)), set("spec.backend.cronJobs", cron("nightlys", "@daily"))),
			want:   `EcommercePlatform "` + strings.Repeat("a", 31) + `" is invalid: metadata.name and a backend.cronJobs name together may have at most 38 characters, so that <claim>-backend-cron-<name> fits a CronJob`,
		},
		"BucketMissing": {
			reason: "An object store needs a bucket.",
			claim:  with(t, databaseCluster, set("spec.backup", map[string]any{"destination": map[string]any{"type": "s3"}})),
			want:   `DatabaseCluster "my-db" is invalid: spec.backup.destination: destination.bucket is needed for type s3, gcs and azure`,
		},
		"UnknownKind": {
			reason: "The answer names the kinds that there are.",
			claim:  with(t, webApp, set("kind", "WebSite")),
			want:   `cannot find a definition of kind "WebSite" in "apps.example.com/v1": there are DatabaseCluster (apps.example.com/v1), EcommercePlatform (platform.example.com/v1), WebApp (apps.example.com/v1)`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := tc.claim.DeepCopy()
			if diff := cmp.Diff(tc.want, text(schemas.Validate(tc.claim))); diff != "" {
				t.Errorf("\n%s\nValidate(...): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before, tc.claim); diff != "" {
				t.Errorf("\nThe claim is never changed.\nValidate(...): -want, +got:\n%s", diff)
			}
		})
	}
}

func TestValidateStatus(t *testing.T) {
	cases := map[string]struct {
		reason string
		claim  *unstructured.Unstructured
		want   string
	}{
		"Conditions": {
			reason: "Conditions are Crossplane's own and always there.",
			claim: with(t, webApp, set("status", map[string]any{"phase": "Running", "conditions": []any{map[string]any{
				"type": "Ready", "status": "True", "reason": "Available", "lastTransitionTime": "2024-01-01T00:00:00Z",
			}}})),
		},
		"UnknownField": {
			reason: "A status field that the definition lacks would make the server refuse the whole status.",
			claim:  with(t, webApp, set("status", map[string]any{"phases": "Running"})),
			want:   `WebApp "my-webapp" is invalid: unknown field "status.phases"`,
		},
		"DatabaseStatus": {
			reason: "All that a database's status says has a place.",
			claim: with(t, databaseCluster, set("status", map[string]any{
				"phase": "Hibernated", "primary": "my-db-postgresql-0", "timeline": int64(7), "readyReplicas": int64(3), "version": "14.5", "endpoint": "a:5432", "readOnlyEndpoint": "b:5432",
				"connectionSecret": "my-db-connection", "message": "x", "readyGeneration": int64(2), "components": []any{map[string]any{"name": "postgresql", "ready": true}},
			})),
		},
		"UnknownPhase": {
			reason: "A phase is one of those that the definition names.",
			claim:  with(t, webApp, set("status", map[string]any{"phase": "Fine"})),
			want: `WebApp "my-webapp" is invalid:
  status.phase: Unsupported value: "Fine": supported values: "Pending", "Deploying", "Running", "Degraded", "Failed"
  some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, text(schemas.ValidateStatus(tc.claim))); diff != "" {
				t.Errorf("\n%s\nValidateStatus(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
