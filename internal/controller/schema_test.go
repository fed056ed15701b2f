package controller_test

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	extv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	configv1 "github.com/storeplane/storeplane/apis/config/v1"
	storeplanev1 "github.com/storeplane/storeplane/apis/storeplane/v1"
	"github.com/storeplane/storeplane/internal/xrd"
)

const (
	backupYAML = `
apiVersion: backup.example.com/v1
kind: Backup
metadata: {name: orders, namespace: shop}
spec:
  forProvider:
    source: {type: postgresql, connection: {secretRef: {name: db}}}
    destination: {type: s3, bucket: b}
    schedule: 0 2 * * *
`
	restoreYAML = `
apiVersion: backup.example.com/v1
kind: Restore
metadata: {name: back, namespace: shop}
spec:
  forProvider:
    source: {backupRef: {name: orders}}
    target: {type: postgresql, connection: {databaseClusterRef: {name: db}}}
`
	configYAML = `
apiVersion: storeplane.example.com/v1
kind: ProviderConfig
metadata: {name: a, namespace: shop}
spec: {endpoint: "https://s3.example.com"}
`
	globalYAML = `
apiVersion: storeplane.example.com/v1
kind: ClusterProviderConfig
metadata: {name: a}
spec: {endpoint: "https://s3.example.com"}
`
	appConfigYAML = `
apiVersion: config.example.com/v1
kind: AppConfig
metadata: {name: vote, namespace: shop}
spec:
  forProvider:
    application: vote
    config: {TITLE: Lunch}
`
)

func definitions(t testing.TB) map[string]*extv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob("../../package/provider/crds/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("cannot find the definitions: %v", err)
	}
	out := map[string]*extv1.CustomResourceDefinition{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		crd := &extv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(b, crd); err != nil {
			t.Fatalf("cannot read %s: %v", f, err)
		}
		out[crd.Spec.Names.Kind] = crd
	}
	return out
}

func schemas(t testing.TB) xrd.Schemas {
	t.Helper()
	out := xrd.Schemas{}
	for kind, crd := range definitions(t) {
		s, err := xrd.NewSchema(crd)
		if err != nil {
			t.Fatalf("cannot use the definition of %s: %v", kind, err)
		}
		out[s.GroupVersionKind()] = s
	}
	return out
}

// edit changes a manifest at a path such as spec.forProvider.schedule to a value in YAML, or
// removes it if the value is empty.
type edit struct{ path, value string }

func edited(t testing.TB, manifest string, edits ...edit) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	parse(t, manifest, &u.Object)
	for _, e := range edits {
		at := strings.Split(e.path, ".")
		if e.value == "" {
			unstructured.RemoveNestedField(u.Object, at...)
			continue
		}
		var v any
		parse(t, e.value, &v)
		if err := unstructured.SetNestedField(u.Object, v, at...); err != nil {
			t.Fatal(err)
		}
	}
	return u
}

// parse reads YAML with integers, as the API server does.
func parse(t testing.TB, text string, into any) {
	t.Helper()
	b, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	wrapped := &unstructured.Unstructured{}
	if err := wrapped.UnmarshalJSON([]byte(`{"apiVersion":"v1","kind":"X","x":` + string(b) + `}`)); err != nil {
		t.Fatal(err)
	}
	switch out := into.(type) {
	case *map[string]any:
		*out = wrapped.Object["x"].(map[string]any)
	case *any:
		*out = wrapped.Object["x"]
	}
}

func TestDefinitionsRefuse(t *testing.T) {
	all := schemas(t)
	const (
		p    = "spec.forProvider."
		cron = "schedule must have five fields like '0 2 * * *', or be @hourly, @daily, @weekly or @monthly"
	)
	cases := map[string]struct {
		reason   string
		manifest string
		edits    []edit
		want     string // part of the message; "" if it is accepted
	}{
		"Backup":           {reason: "The smallest one.", manifest: backupYAML},
		"NoSchedule":       {reason: "Backups may be made only when asked for.", manifest: backupYAML, edits: []edit{{p + "schedule", ""}}},
		"Daily":            {reason: "Names of schedules.", manifest: backupYAML, edits: []edit{{p + "schedule", `"@daily"`}}},
		"Names":            {reason: "Names of days.", manifest: backupYAML, edits: []edit{{p + "schedule", `"*/5 9-17 * JAN-MAR mon,tue"`}}},
		"BadCron":          {reason: "Four fields.", manifest: backupYAML, edits: []edit{{p + "schedule", `"0 2 * *"`}}, want: cron},
		"SixFields":        {reason: "Seconds are not known.", manifest: backupYAML, edits: []edit{{p + "schedule", `"0 0 2 * * *"`}}, want: cron},
		"ZoneInCron":       {reason: "A zone in the schedule.", manifest: backupYAML, edits: []edit{{p + "schedule", `"TZ=Europe/Vienna 0 2 * * *"`}}, want: cron},
		"EmptyCron":        {reason: "Nothing is no schedule.", manifest: backupYAML, edits: []edit{{p + "schedule", `""`}}, want: "should be at least 1 chars long"},
		"BadVerification":  {reason: "The other schedule too.", manifest: backupYAML, edits: []edit{{p + "verification", `{schedule: nightly}`}}, want: "verification.schedule must have five fields"},
		"BadRetention":     {reason: "A number without a unit.", manifest: backupYAML, edits: []edit{{p + "retention", `"30"`}}, want: "spec.forProvider.retention"},
		"HourRetention":    {reason: "Hours are no age of backups.", manifest: backupYAML, edits: []edit{{p + "retention", `"30h"`}}, want: "spec.forProvider.retention"},
		"NoKeep":           {reason: "To keep nothing is to keep nothing.", manifest: backupYAML, edits: []edit{{p + "keep", `{}`}}, want: "spec.forProvider.keep"},
		"NegativeKeep":     {reason: "Nor less.", manifest: backupYAML, edits: []edit{{p + "keep", `{last: -1}`}}, want: "spec.forProvider.keep.last"},
		"Keep":             {reason: "Grandfather, father, son.", manifest: backupYAML, edits: []edit{{p + "keep", `{daily: 7, weekly: 4, monthly: 12}`}}},
		"UnknownType":      {reason: "An engine that there is none of.", manifest: backupYAML, edits: []edit{{p + "source.type", `oracle`}}, want: `supported values: "postgresql", "mysql", "mongodb"`},
		"UnknownStore":     {reason: "A store that there is none of.", manifest: backupYAML, edits: []edit{{p + "destination.type", `ftp`}}, want: `supported values: "s3", "gcs", "azure", "volume"`},
		"NoDestination":    {reason: "A schedule without a destination.", manifest: backupYAML, edits: []edit{{p + "destination", ""}}, want: "spec.forProvider.destination: Required value"},
		"NoBucket":         {reason: "A destination without a place.", manifest: backupYAML, edits: []edit{{p + "destination.bucket", ""}}, want: "spec.forProvider.destination.bucket: Required value"},
		"NoSource":         {reason: "Nothing to back up.", manifest: backupYAML, edits: []edit{{p + "source", ""}}, want: "spec.forProvider.source: Required value"},
		"VolumeEndpoint":   {reason: "A volume has no endpoint.", manifest: backupYAML, edits: []edit{{p + "destination", `{type: volume, bucket: c, endpoint: "http://x"}`}}, want: "are for object stores, not for type volume"},
		"AbsolutePrefix":   {reason: "A prefix is relative.", manifest: backupYAML, edits: []edit{{p + "destination.prefix", `/a`}}, want: "destination.prefix must be a relative path"},
		"ClimbingPrefix":   {reason: "And does not climb.", manifest: backupYAML, edits: []edit{{p + "destination.prefix", `a/../../b`}}, want: "destination.prefix must be a relative path"},
		"TwoLinePrefix":    {reason: "Nor is it more than a path.", manifest: backupYAML, edits: []edit{{p + "destination.prefix", "a\nrepo1-path=/b"}}, want: "destination.prefix may only have"},
		"TwoLineBucket":    {reason: "A bucket is one name.", manifest: backupYAML, edits: []edit{{p + "destination.bucket", "a\nrepo1-path=/b"}}, want: "destination.bucket may only have"},
		"TwoLineRegion":    {reason: "So is a region.", manifest: backupYAML, edits: []edit{{p + "destination.region", "a\nb"}}, want: "destination.region may only have"},
		"BadEndpoint":      {reason: "An endpoint is a URL.", manifest: backupYAML, edits: []edit{{p + "destination.endpoint", `s3.example.com`}}, want: "spec.forProvider.destination.endpoint"},
		"PlainEndpoint":    {reason: "Credentials do not go in plain text by mistake.", manifest: backupYAML, edits: []edit{{p + "destination.endpoint", `http://s3.example.com`}}, want: "destination.endpoint has no TLS, so that credentials and data go in plain text: use https, or set destination.insecure"},
		"InsecureEndpoint": {reason: "They do where that is meant.", manifest: backupYAML, edits: []edit{{p + "destination.endpoint", `http://s3.example.com`}, {p + "destination.insecure", `true`}}},
		"BothConnections":  {reason: "One way to connect.", manifest: backupYAML, edits: []edit{{p + "source.connection.databaseClusterRef", `{name: a}`}}, want: "connection needs either a databaseClusterRef or a secretRef"},
		"NoConnection":     {reason: "And at least one.", manifest: backupYAML, edits: []edit{{p + "source.connection", `{}`}}, want: "connection needs either a databaseClusterRef or a secretRef"},
		"MySQLCluster":     {reason: "Clusters are of two engines.", manifest: backupYAML, edits: []edit{{p + "source", `{type: mysql, connection: {databaseClusterRef: {name: a}}}`}}},
		"MongoDBCluster":   {reason: "And of no other.", manifest: backupYAML, edits: []edit{{p + "source", `{type: mongodb, connection: {databaseClusterRef: {name: a}}}`}}, want: "connection.databaseClusterRef needs type postgresql or mysql"},
		"PhysicalMySQL":    {reason: "Copies of MySQL have a schedule of their own.", manifest: backupYAML, edits: []edit{{p + "method", `physical`}, {p + "source", `{type: mysql, connection: {databaseClusterRef: {name: a}}}`}}},
		"PhysicalMySQLNow": {reason: "Or none.", manifest: backupYAML, edits: []edit{{p + "method", `physical`}, {p + "source", `{type: mysql, connection: {databaseClusterRef: {name: a}}}`}, {p + "schedule", ""}}},
		"PhysicalMariaDB":  {reason: "Of clusters alone.", manifest: backupYAML, edits: []edit{{p + "method", `physical`}, {p + "source", `{type: mysql, connection: {secretRef: {name: a}}}`}}, want: "method physical needs source.connection.databaseClusterRef"},
		"PhysicalMongoDB":  {reason: "MongoDB has no physical backups.", manifest: backupYAML, edits: []edit{{p + "method", `physical`}, {p + "source.type", `mongodb`}}, want: "method physical needs source.type postgresql or mysql"},
		"PhysicalSome":     {reason: "Files are of all databases.", manifest: backupYAML, edits: []edit{{p + "method", `physical`}, {p + "source", `{type: mysql, connection: {databaseClusterRef: {name: a}}, databases: [app]}`}}, want: "a physical backup has all databases"},
		"MySQLVersion":     {reason: "Versions choose PostgreSQL's tools.", manifest: backupYAML, edits: []edit{{p + "source.type", `mysql`}, {p + "source.version", `"8"`}}, want: "version is for type postgresql"},
		"PhysicalSecret":   {reason: "Physical backups are of clusters.", manifest: backupYAML, edits: []edit{{p + "method", `physical`}, {p + "schedule", ""}}, want: "method physical needs source.connection.databaseClusterRef"},
		"PhysicalSchedule": {reason: "Which have the schedule.", manifest: backupYAML, edits: []edit{{p + "method", `physical`}, {p + "source.connection", `{databaseClusterRef: {name: a}}`}}, want: "the schedule of physical backups is the DatabaseCluster's with source.type postgresql"},
		"Physical":         {reason: "As the function of DatabaseCluster makes them.", manifest: backupYAML, edits: []edit{{p + "method", `physical`}, {p + "source.connection", `{databaseClusterRef: {name: a}}`}, {p + "schedule", ""}}},
		"LongName":         {reason: "Names that are made of it must fit.", manifest: backupYAML, edits: []edit{{"metadata.name", strings.Repeat("a", 41)}}, want: "metadata.name may have at most 40 characters"},
		"UnknownField":     {reason: "A misspelt field.", manifest: backupYAML, edits: []edit{{p + "shedule", `a`}}, want: `unknown field "spec.forProvider.shedule"`},
		"Restore":          {reason: "The smallest one.", manifest: restoreYAML},
		"RestoreNothing":   {reason: "From somewhere.", manifest: restoreYAML, edits: []edit{{p + "source", `{}`}}, want: "source needs either a backupRef or a location"},
		"RestoreBoth":      {reason: "And from one place.", manifest: restoreYAML, edits: []edit{{p + "source.location", `{name: a, destination: {type: s3, bucket: b}}`}}, want: "source needs either a backupRef or a location"},
		"RestoreIDAndTime": {reason: "One backup.", manifest: restoreYAML, edits: []edit{{p + "source.id", `a`}, {p + "source.time", `"2026-01-01T00:00:00Z"`}}, want: "source takes an id or a time, not both"},
		"RestoreNoTarget":  {reason: "To somewhere.", manifest: restoreYAML, edits: []edit{{p + "target", ""}}, want: "spec.forProvider.target: Required value"},
		"RestoreLocation":  {reason: "What is left of a Backup that is gone.", manifest: restoreYAML, edits: []edit{{p + "source", `{location: {name: a, namespace: other, destination: {type: gcs, bucket: b}}}`}}},
		"AppConfig":        {reason: "The smallest one.", manifest: appConfigYAML},
		"AppConfigAll": {reason: "All of it.", manifest: appConfigYAML, edits: []edit{
			{p + "environment", `prod`}, {p + "values", `{a: b}`}, {p + "overlays", `{prod: {config: {A: b}}, dev: {values: {a: c}}}`}, {p + "templating", `None`},
			{p + "secretRefs", `[{name: db, keys: [{key: password, as: PASSWORD}]}, {name: cache}]`}, {p + "inject", `{env: false, mountPath: /etc/vote}`},
			{p + "targets", `[{kind: Deployment, name: web, containers: [app]}, {kind: CronJob, name: web}]`}, {p + "rollout", `{progressDeadline: 90s, autoRollback: false, pause: true, order: Sequential, by: Owner}`},
		}},
		"NoApplication":           {reason: "Of something.", manifest: appConfigYAML, edits: []edit{{p + "application", ""}}, want: "spec.forProvider.application: Required value"},
		"BadApplication":          {reason: "It begins names.", manifest: appConfigYAML, edits: []edit{{p + "application", `Vote`}}, want: "spec.forProvider.application"},
		"LongApplication":         {reason: "Which must fit.", manifest: appConfigYAML, edits: []edit{{p + "application", strings.Repeat("a", 41)}}, want: "spec.forProvider.application"},
		"LongAppConfig":           {reason: "The name is a label's value.", manifest: appConfigYAML, edits: []edit{{"metadata.name", strings.Repeat("a", 64)}}, want: "metadata.name may have at most 63 characters"},
		"BadEnvironment":          {reason: "There are three.", manifest: appConfigYAML, edits: []edit{{p + "environment", `test`}}, want: `supported values: "dev", "staging", "prod"`},
		"BadOverlay":              {reason: "Of overlays too.", manifest: appConfigYAML, edits: []edit{{p + "overlays", `{production: {}}`}}, want: "overlays are for the environments dev, staging and prod"},
		"TwoWays":                 {reason: "Targets are listed or chosen.", manifest: appConfigYAML, edits: []edit{{p + "targets", `[{kind: Deployment, name: web}]`}, {p + "selector", `{matchLabels: {a: b}}`}}, want: "give either targets or a selector, not both"},
		"TwiceTarget":             {reason: "Each once.", manifest: appConfigYAML, edits: []edit{{p + "targets", `[{kind: Deployment, name: web}, {kind: Deployment, name: web}]`}}, want: "Duplicate value"},
		"BadTarget":               {reason: "Of kinds that have pods.", manifest: appConfigYAML, edits: []edit{{p + "targets", `[{kind: Job, name: web}]`}}, want: `supported values: "Deployment", "StatefulSet", "DaemonSet", "CronJob"`},
		"ShortDeadline":           {reason: "Too little to start in.", manifest: appConfigYAML, edits: []edit{{p + "rollout", `{progressDeadline: 5s}`}}, want: "rollout.progressDeadline must be from 10s to 1h"},
		"LongDeadline":            {reason: "Too long to wait for.", manifest: appConfigYAML, edits: []edit{{p + "rollout", `{progressDeadline: 61m}`}}, want: "rollout.progressDeadline must be from 10s to 1h"},
		"BadDeadline":             {reason: "No duration.", manifest: appConfigYAML, edits: []edit{{p + "rollout", `{progressDeadline: soon}`}}, want: "rollout.progressDeadline"},
		"RelativePath":            {reason: "A path of a container.", manifest: appConfigYAML, edits: []edit{{p + "inject", `{mountPath: etc}`}}, want: "spec.forProvider.inject.mountPath"},
		"Config":                  {reason: "No credentials are credentials.", manifest: configYAML},
		"ConfigNoSecret":          {reason: "A Secret that is not named.", manifest: configYAML, edits: []edit{{"spec.credentials", `{source: Secret}`}}, want: "source Secret and credentials.secretRef require each other"},
		"ConfigExtraSecret":       {reason: "Or not used.", manifest: configYAML, edits: []edit{{"spec.credentials", `{source: Environment, secretRef: {name: a, namespace: b}}`}}, want: "source Secret and credentials.secretRef require each other"},
		"ConfigShared":            {reason: "Of one namespace there is no other to share with.", manifest: configYAML, edits: []edit{{"spec.credentials", `{source: Secret, secretRef: {name: a, namespace: shop}, shared: true}`}}, want: "credentials.perNamespace and shared are of a ClusterProviderConfig"},
		"ConfigEncryption":        {reason: "A namespace's own credentials are no other's to read with.", manifest: configYAML, edits: []edit{{"spec.encryption", `Generated`}}, want: "encryption is of a ClusterProviderConfig: with a ProviderConfig name a key in the Backup's spec.forProvider.encryption"},
		"GlobalPlain":             {reason: "Keys can be turned off,", manifest: globalYAML, edits: []edit{{"spec.encryption", `None`}}},
		"GlobalGenerated":         {reason: "or asked for by their name,", manifest: globalYAML, edits: []edit{{"spec.encryption", `Generated`}, {"spec.credentials", `{source: Environment, shared: true}`}}},
		"GlobalOwnGenerated":      {reason: "where the credentials are the platform's.", manifest: globalYAML, edits: []edit{{"spec.encryption", `Generated`}, {"spec.credentials", `{source: InjectedIdentity, serviceAccountName: a}`}}, want: "encryption: Generated goes with credentials of source Secret or Environment, which are the platform's"},
		"GlobalBadEncryption":     {reason: "There are two.", manifest: globalYAML, edits: []edit{{"spec.encryption", `age`}}, want: `supported values: "Generated", "None"`},
		"GlobalNone":              {reason: "Without credentials there is no owner to name.", manifest: globalYAML},
		"GlobalUnsaid":            {reason: "Whose credentials they are must be said,", manifest: globalYAML, edits: []edit{{"spec.credentials", `{source: Secret, secretRef: {name: a, namespace: b}}`}}, want: "credentials of source Secret need either perNamespace: true, for a Secret <name>-<namespace> for the Backups of each namespace, or shared: true"},
		"GlobalBoth":              {reason: "once.", manifest: globalYAML, edits: []edit{{"spec.credentials", `{source: Secret, secretRef: {name: a, namespace: b}, shared: true, perNamespace: true}`}}, want: "credentials of source Secret need either perNamespace"},
		"GlobalShared":            {reason: "They may be for all,", manifest: globalYAML, edits: []edit{{"spec.credentials", `{source: Secret, secretRef: {name: a, namespace: b}, shared: true}`}}},
		"GlobalEach":              {reason: "or for each namespace.", manifest: globalYAML, edits: []edit{{"spec.credentials", `{source: Secret, secretRef: {name: a, namespace: b}, perNamespace: true}`}}},
		"GlobalEnvironment":       {reason: "The provider's own are always for all.", manifest: globalYAML, edits: []edit{{"spec.credentials", `{source: Environment}`}}, want: "set shared: true"},
		"GlobalEnvironmentShared": {reason: "Which may be meant.", manifest: globalYAML, edits: []edit{{"spec.credentials", `{source: Environment, shared: true}`}}},
		"GlobalIdentities":        {reason: "An identity is each namespace's own anyway.", manifest: globalYAML, edits: []edit{{"spec.credentials", `{source: InjectedIdentity, serviceAccountName: a, perNamespace: true}`}}, want: "credentials.perNamespace requires source Secret"},
		"ConfigNoAccount":         {reason: "An identity that is not named.", manifest: configYAML, edits: []edit{{"spec.credentials", `{source: InjectedIdentity}`}}, want: "source InjectedIdentity and credentials.serviceAccountName require each other"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := all.Validate(edited(t, tc.manifest, tc.edits...))
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("%s\nwant it accepted, got: %v", tc.reason, err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("%s\nwant words with %q, got: %v", tc.reason, tc.want, err)
			}
		})
	}
}

func TestDefinitionsImmutable(t *testing.T) {
	all := schemas(t)
	const p = "spec.forProvider."
	cases := map[string]struct {
		reason   string
		manifest string // of a Backup unless given
		edits    []edit
		want     string
	}{
		"Application": {reason: "What pods refer to is named by it.", manifest: appConfigYAML, edits: []edit{{p + "application", `poll`}}, want: "application is immutable: make another AppConfig"},
		"AppConfig":   {reason: "The rest may change.", manifest: appConfigYAML, edits: []edit{{p + "config", `{TITLE: Dinner}`}, {p + "environment", `prod`}, {p + "rollout", `{by: Owner}`}}},
		"Schedule":    {reason: "Most may change at any time.", edits: []edit{{p + "schedule", `"@hourly"`}, {p + "destination.bucket", `other`}, {p + "suspend", `true`}}},
		"Method":      {reason: "One method's backups are nothing to the other.", edits: []edit{{p + "method", `physical`}, {p + "source.connection", `{databaseClusterRef: {name: a}}`}, {p + "schedule", ""}}, want: "method is immutable: make another Backup"},
		"Engine":      {reason: "Nor one engine's.", edits: []edit{{p + "source.type", `mysql`}}, want: "source.type is immutable: make another Backup"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			manifest := cmp.Or(tc.manifest, backupYAML)
			err := all.ValidateUpdate(edited(t, manifest), edited(t, manifest, tc.edits...))
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("%s\nwant it accepted, got: %v", tc.reason, err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("%s\nwant words with %q, got: %v", tc.reason, tc.want, err)
			}
		})
	}
}

// TestRestoreImmutable: a Restore can be changed until it has started. This rule reads the status,
// which is not part of what internal/xrd compares.
func TestRestoreImmutable(t *testing.T) {
	started := edit{"status.atProvider", `{phase: Running, startTime: "2026-01-01T00:00:00Z"}`}
	changed := edit{"spec.forProvider.overwrite", `true`}
	testUpdates(t, "Restore", restoreYAML, map[string]update{
		"Before":    {reason: "Nothing has been written yet.", new: []edit{changed}},
		"Waiting":   {reason: "A status alone is no start.", old: []edit{{"status.atProvider", `{phase: Pending}`}}, new: []edit{changed}},
		"After":     {reason: "What runs cannot be changed.", old: []edit{started}, new: []edit{started, changed}, want: "a Restore that has started cannot be changed: make another one"},
		"Unchanged": {reason: "Its annotations can.", old: []edit{started}, new: []edit{started, {"metadata.annotations", `{a: b}`}}},
	})
}

// TestClusterProviderConfigOfBefore: an object from before its credentials had to be declared
// shared can still be written, so that its users can be counted and its finalizer removed.
func TestClusterProviderConfigOfBefore(t *testing.T) {
	const needs = "credentials of source Secret need either perNamespace: true, for a Secret <name>-<namespace> for the Backups of each namespace, or shared: true, for one that lets a user who may read Secrets in one of them read and delete the backups of all"
	credentials := func(more string) edit {
		return edit{"spec.credentials", "{source: Secret, secretRef: {name: a, namespace: b}" + more + "}"}
	}
	unsaid, environment := credentials(""), edit{"spec.credentials", "{source: Environment}"}
	users := edit{"status.users", "1"}
	testUpdates(t, "ClusterProviderConfig", globalYAML, map[string]update{
		"Secret":      {reason: "It goes on as shared.", old: []edit{unsaid}, new: []edit{unsaid, users, {"metadata.finalizers", "[]"}}},
		"Bucket":      {reason: "All else of it can change.", old: []edit{unsaid}, new: []edit{unsaid, {"spec.bucket", "c"}}},
		"Environment": {reason: "So does the provider's own environment.", old: []edit{environment}, new: []edit{environment, users}},
		"Both":        {reason: "What is said must make sense.", old: []edit{unsaid}, new: []edit{credentials(", shared: true, perNamespace: true")}, want: needs},
		"TakenBack":   {reason: "What was said is not taken back.", old: []edit{credentials(", perNamespace: true")}, new: []edit{unsaid}, want: needs},
		"Begun":       {reason: "One that had none says whose they are.", new: []edit{unsaid}, want: needs},
	})
}

// update is the update of an object.
type update struct {
	reason   string
	old, new []edit
	want     string
}

// testUpdates validates updates against all rules of a definition.
func testUpdates(t *testing.T, kind, manifest string, cases map[string]update) {
	t.Helper()
	props := definitions(t)[kind].Spec.Versions[0].Schema.OpenAPIV3Schema
	in := &apiextensions.JSONSchemaProps{}
	if err := extv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, in, nil); err != nil {
		t.Fatal(err)
	}
	structural, err := structuralschema.NewStructural(in)
	if err != nil {
		t.Fatal(err)
	}
	rules := cel.NewValidator(structural, true, celconfig.PerCallLimit)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			was, is := edited(t, manifest, tc.old...), edited(t, manifest, tc.new...)
			errs, _ := rules.Validate(context.Background(), nil, structural, is.Object, was.Object, celconfig.RuntimeCELCostBudget)
			words := make([]error, 0, len(errs))
			for _, e := range errs {
				words = append(words, errors.New(e.Detail))
			}
			got := ""
			if err := errors.Join(words...); err != nil {
				got = err.Error()
			}
			if diff := gocmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDefaultsAreCanonical: an object that a controller reads and writes has the spec that it had. Otherwise the
// first update, of the finalizer, would be another generation.
func TestDefaultsAreCanonical(t *testing.T) {
	cases := map[string]struct {
		manifest string
		typed    any
	}{
		"Backup":                {manifest: backupYAML, typed: &backupv1.Backup{}},
		"Restore":               {manifest: restoreYAML, typed: &backupv1.Restore{}},
		"AppConfig":             {manifest: appConfigYAML, typed: &configv1.AppConfig{}},
		"ProviderConfig":        {manifest: configYAML, typed: &storeplanev1.ProviderConfig{}},
		"ClusterProviderConfig": {manifest: globalYAML, typed: &storeplanev1.ClusterProviderConfig{}},
	}
	for kind, tc := range cases {
		t.Run(kind, func(t *testing.T) {
			in := &apiextensions.JSONSchemaProps{}
			if err := extv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(definitions(t)[kind].Spec.Versions[0].Schema.OpenAPIV3Schema, in, nil); err != nil {
				t.Fatal(err)
			}
			structural, err := structuralschema.NewStructural(in)
			if err != nil {
				t.Fatal(err)
			}
			u := edited(t, tc.manifest)
			defaulting.Default(u.Object, structural)
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, tc.typed); err != nil {
				t.Fatal(err)
			}
			again, err := runtime.DefaultUnstructuredConverter.ToUnstructured(tc.typed)
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(u.Object["spec"], again["spec"]); diff != "" {
				t.Errorf("-read, +written:\n%s", diff)
			}
		})
	}
}
