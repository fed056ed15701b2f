package plan_test

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/storeplane/storeplane/internal/plan"
	"github.com/storeplane/storeplane/internal/plan/state"
	"github.com/storeplane/storeplane/test/pages"
)

// TestPlan compares plans of edits, as text, with golden files. To write them again:
//
//	go test ./internal/plan -update
func TestPlan(t *testing.T) {
	cases := map[string]struct {
		example string
		// before are edits of the claim before it converges, and edits are those that are planned.
		before, edits []edit
		delete        bool
	}{
		"database-memory":              {example: "databasecluster/production.yaml", edits: []edit{set("4Gi", "resources", "requests", "memory"), set("4Gi", "resources", "limits", "memory")}},
		"database-one-more":            {example: "databasecluster/production.yaml", edits: []edit{set(int64(5), "size")}},
		"database-fewer":               {example: "databasecluster/production.yaml", edits: []edit{set(int64(2), "size")}},
		"database-parameter-reloaded":  {example: "databasecluster/production.yaml", edits: []edit{set("32MB", "parameters", "work_mem")}},
		"database-parameter-restarted": {example: "databasecluster/production.yaml", edits: []edit{set("300", "parameters", "max_connections")}},
		"database-storage":             {example: "databasecluster/production.yaml", edits: []edit{set("200Gi", "storageSize")}},
		"database-storage-shrinks":     {example: "databasecluster/production.yaml", edits: []edit{set("1Gi", "storageSize")}},
		"database-hibernates":          {example: "databasecluster/production.yaml", edits: []edit{set(true, "hibernated")}},
		"database-protected":           {example: "databasecluster/production.yaml", delete: true},
		"database-engine":              {example: "databasecluster/production.yaml", edits: []edit{set("mysql", "engine")}},
		"database-one-server-memory":   {example: "databasecluster/minimal.yaml", edits: []edit{set("1Gi", "resources", "requests", "memory")}},
		"database-deleted":             {example: "databasecluster/minimal.yaml", delete: true},
		"webapp-image":                 {example: "webapp/production.yaml", edits: []edit{set("registry.example.com/shop/web:v2", "image")}},
		"webapp-replicas":              {example: "webapp/minimal.yaml", edits: []edit{set(int64(4), "replicas")}},
		"webapp-port":                  {example: "webapp/minimal.yaml", edits: []edit{set(int64(9090), "port")}},
		"webapp-deleted":               {example: "webapp/minimal.yaml", delete: true},
		"database-clients":             {example: "databasecluster/production.yaml", edits: []edit{set(map[string]any{"app": "other"}, "clients")}},
		"database-grows-and-memory":    {example: "databasecluster/minimal.yaml", edits: []edit{set(int64(3), "size"), set("1Gi", "resources", "requests", "memory")}},
		"database-to-one-server":       {example: "databasecluster/minimal.yaml", before: []edit{set(int64(2), "size")}, edits: []edit{set(int64(1), "size")}},
		"database-to-development":      {example: "databasecluster/production.yaml", edits: []edit{set("development", "environment")}},
		"database-backup-volume":       {example: "databasecluster/production.yaml", before: []edit{set(map[string]any{"type": "volume", "bucket": "mine"}, "backup", "destination")}, edits: []edit{set("other", "backup", "destination", "bucket")}},
		"database-wakes-otherwise":     {example: "databasecluster/production.yaml", before: []edit{set(true, "hibernated")}, edits: []edit{set(false, "hibernated"), set("300", "parameters", "max_connections")}},
		"database-sleeps-and-grows":    {example: "databasecluster/production.yaml", before: []edit{set(true, "hibernated")}, edits: []edit{set("200Gi", "storageSize")}},
		"database-refuses-plain":       {example: "databasecluster/minimal.yaml", before: []edit{set(map[string]any{"required": false}, "tls")}, edits: []edit{set(map[string]any{"required": true}, "tls")}},
		"mysql-memory":                 {example: "databasecluster/mysql.yaml", edits: []edit{set("4Gi", "resources", "requests", "memory"), set("4Gi", "resources", "limits", "memory")}},
		"mysql-more":                   {example: "databasecluster/mysql.yaml", edits: []edit{set(int64(5), "size")}},
		"mysql-fewer":                  {example: "databasecluster/mysql.yaml", edits: []edit{set(int64(1), "size")}},
		"mysql-parameter":              {example: "databasecluster/mysql.yaml", edits: []edit{set("300", "parameters", "max_connections")}},
		"mysql-storage":                {example: "databasecluster/mysql.yaml", edits: []edit{set("200Gi", "storageSize")}},
		"mysql-hibernates":             {example: "databasecluster/mysql.yaml", edits: []edit{set(true, "hibernated")}},
		"mysql-deleted":                {example: "databasecluster/mysql.yaml", delete: true},
		"mysql-parameter-start":        {example: "databasecluster/mysql.yaml", edits: []edit{set("1M", "parameters", "thread_stack")}},
		"mysql-wakes":                  {example: "databasecluster/mysql.yaml", before: []edit{set(true, "hibernated")}, edits: []edit{set(false, "hibernated")}},
		"mysql-user":                   {example: "databasecluster/mysql.yaml", edits: []edit{set(nil, "users"), set(nil, "databases")}},
		"mysql-version":                {example: "databasecluster/mysql.yaml", edits: []edit{set("9.7.4", "version")}},
		"shop-mysql":                   {example: "shop/mysql.yaml", edits: []edit{set("2Gi", "database", "resources", "limits", "memory"), set("2Gi", "database", "resources", "requests", "memory")}},
		"mysql-archiver":               {example: "databasecluster/backup.yaml", before: mysqlArchived, edits: []edit{set([]any{map[string]any{"key": "example.com/spot", "operator": "Exists"}}, "tolerations")}},
		"mysql-archive-ends":           {example: "databasecluster/backup.yaml", before: mysqlArchived, edits: []edit{set(nil, "backup")}},
		"mysql-archived":               {example: "databasecluster/backup.yaml", before: mysqlArchived, edits: []edit{set("4Gi", "resources", "requests", "memory"), set("4Gi", "resources", "limits", "memory")}},
		"webapp-env-like-a-quantity":   {example: "webapp/minimal.yaml", before: []edit{set([]any{map[string]any{"name": "A", "value": "1.1"}}, "env")}, edits: []edit{set([]any{map[string]any{"name": "A", "value": "1.10"}}, "env")}},
		"webapp-autoscaling":           {example: "webapp/production.yaml", edits: []edit{set(int64(5), "autoscaling", "minReplicas")}},
		"webapp-ingress-class":         {example: "webapp/production.yaml", edits: []edit{set("other", "ingress", "className")}},
		"shop-database-refused":        {example: "shop/store.yaml", edits: []edit{set("registry.example.com/shop/frontend:v9", "frontend", "image"), set(map[string]any{"enabled": true, "destination": map[string]any{"type": "s3", "bucket": "b", "secretRef": map[string]any{"name": "no-such-secret"}}}, "database", "backup")}},
		"webapp-ingress-removed":       {example: "webapp/production.yaml", edits: []edit{set(nil, "ingress")}},
		"shop-config":                  {example: "shop/store.yaml", before: []edit{set(map[string]any{"LOG_LEVEL": "info"}, "config")}, edits: []edit{set(map[string]any{"LOG_LEVEL": "debug"}, "config")}},
		"shop-cache":                   {example: "shop/store.yaml", edits: []edit{set("128Mi", "cache", "memory")}},
		"shop-without-cache":           {example: "shop/store.yaml", edits: []edit{set(false, "cache", "enabled")}},
		"shop-backend":                 {example: "shop/store.yaml", edits: []edit{set("registry.example.com/shop/backend:v2", "backend", "image")}},
		"shop-unchanged":               {example: "shop/store.yaml"},
		"shop-production":              {example: "shop/store.yaml", edits: []edit{set("production", "environment")}},
		"shop-deleted":                 {example: "shop/store.yaml", delete: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			claim, beside := example(t, tc.example)
			for _, e := range tc.before {
				e.apply(t, claim)
			}
			p := planner(t, state.NewSaved(cluster(t, claim, beside)))
			for _, e := range tc.edits {
				e.apply(t, claim)
			}
			planned := p.Plan
			if tc.delete {
				planned = p.Deletion
			}
			got, err := planned(t.Context(), claim)
			if err != nil {
				t.Fatal(err)
			}
			b := &bytes.Buffer{}
			if err := plan.NewReport([]plan.Claim{*got}).Text(b, true); err != nil {
				t.Fatal(err)
			}
			// Certificates, and so the digests of them, differ each time.
			golden(t, name+".txt", digests.ReplaceAll(b.Bytes(), []byte(`"value":"DIGEST"`)))
		})
	}
}

// mysqlArchived makes a DatabaseCluster one of engine mysql whose binary logs are archived.
var mysqlArchived = []edit{set("mysql", "engine"), set("9.7", "version"), set(int64(3), "size"), set(physicalBackups(), "backup")}

// physicalBackups returns the backups of a DatabaseCluster whose binary logs are archived.
func physicalBackups() map[string]any {
	return map[string]any{
		"enabled": true, "method": "physical",
		"destination": map[string]any{"type": "s3", "bucket": "backups", "endpoint": "https://store.example.com", "secretRef": map[string]any{"name": "backup-store"}},
	}
}

var digests = regexp.MustCompile(`"value":"[0-9a-f]{10}"`)

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// allExamples returns the files of examples that contain a claim.
func allExamples(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, folder := range []string{"shop", "databasecluster", "webapp", "seeds"} {
		files, err := filepath.Glob(filepath.Join(examples, folder, "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			rel, err := filepath.Rel(examples, f)
			if err != nil {
				t.Fatal(err)
			}
			if claim, _ := example(t, rel); claim != nil {
				out = append(out, rel)
			}
		}
	}
	return out
}

// TestPlanUnchanged: the plan of each example as it is has no changes and no drift, also if Secrets
// cannot be read.
func TestPlanUnchanged(t *testing.T) {
	for _, path := range allExamples(t) {
		for _, secrets := range []bool{true, false} {
			t.Run(path+map[bool]string{true: "", false: " without Secrets"}[secrets], func(t *testing.T) {
				claim, beside := example(t, path)
				objects := cluster(t, claim, beside)
				p := planner(t, state.NewSaved(objects))
				if !secrets {
					p.State = withoutSecrets(objects)
				}
				got, err := p.Plan(t.Context(), claim)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(plan.NoChange, got.Verdict); diff != "" {
					t.Errorf("-want verdict, +got:\n%s\n%v", diff, got.Changes)
				}
				if diff := cmp.Diff([]plan.Change(nil), got.Drift, cmp.Transformer("none", func(c []plan.Change) []plan.Change {
					if len(c) == 0 {
						return nil
					}
					return c
				})); diff != "" {
					t.Errorf("-want drift, +got:\n%s", diff)
				}
			})
		}
	}
}

// hidden is a state without its Secrets.
type hidden struct{ *state.Saved }

func (hidden) Hides(o plan.Object) bool { return o.Kind == "Secret" }

func (hidden) HidesSecrets() bool { return true }

func withoutSecrets(objects []*unstructured.Unstructured) plan.State {
	var rest []*unstructured.Unstructured
	for _, u := range objects {
		if u.GetKind() != "Secret" {
			rest = append(rest, u)
		}
	}
	return hidden{state.NewSaved(rest)}
}

// TestPlanDoubts: a refusal that depends on a Secret which cannot be read is reported as an error,
// and any other one as a refusal.
func TestPlanDoubts(t *testing.T) {
	cases := map[string]struct {
		reason  string
		edit    edit
		err     string
		refused string
	}{
		"Secret": {reason: "A certificate is needed to say whether it can be used.", edit: set("own-tls", "tls", "secretName"), err: "it needs what is in Secret own-tls, which may not be read or was not saved: plan with the right to get it"},
		"Size":   {reason: "No Secret changes what a size allows.", edit: set(int64(1), "size"), refused: "synchronous"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			claim, beside := example(t, "databasecluster/backup.yaml")
			set(int64(2), "size").apply(t, claim)
			set(true, "synchronous").apply(t, claim)
			objects := cluster(t, claim, beside)
			tc.edit.apply(t, claim)
			got, err := planner(t, withoutSecrets(objects)).Plan(t.Context(), claim)
			switch {
			case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)):
				t.Errorf("\n%s\nwant error %q, got %v, %+v", tc.reason, tc.err, err, got)
			case tc.err == "" && (err != nil || !strings.Contains(got.Refusal, tc.refused)):
				t.Errorf("\n%s\nwant refusal %q, got %v, %+v", tc.reason, tc.refused, err, got)
			}
		})
	}
}

// TestPlanDrift: fields that were edited by hand are listed apart from the changes of the edit.
func TestPlanDrift(t *testing.T) {
	claim, beside := example(t, "webapp/minimal.yaml")
	objects := cluster(t, claim, beside)
	for _, u := range objects {
		if u.GetKind() == "Deployment" {
			_ = unstructured.SetNestedField(u.Object, int64(7), "spec", "replicas")
		}
	}
	set(int64(9090), "port").apply(t, claim)
	got, err := planner(t, state.NewSaved(objects)).Plan(t.Context(), claim)
	if err != nil {
		t.Fatal(err)
	}
	want := []plan.Field{{Path: "spec.replicas", Before: int64(7), After: int64(1)}}
	if len(got.Drift) != 1 || !cmp.Equal(want, got.Drift[0].Fields) {
		t.Errorf("-want, +got drift:\n%s", cmp.Diff(want, got.Drift))
	}
	for _, c := range got.Changes {
		for _, f := range c.Fields {
			if f.Path == "spec.replicas" {
				t.Errorf("the edit does not change replicas: %v", c)
			}
		}
	}
}

// TestPlanApplies: a file is planned as kubectl apply would apply it: fields that others have set
// stay, and fields that were removed from the file are removed.
func TestPlanApplies(t *testing.T) {
	const last = `{"apiVersion":"apps.example.com/v1","kind":"WebApp","metadata":{"name":"hello","namespace":"default","annotations":{"crossplane.io/paused":"true"}},"spec":{"image":"a","args":["x"]}}`
	cases := map[string]struct {
		reason string
		live   map[string]string
		want   []plan.Field
	}{
		"NobodyApplied": {
			reason: "Replicas that kubectl scale set stay, and so do arguments that no file is known to have had.",
			want:   nil,
		},
		"Applied": {
			reason: "Arguments and an annotation that the file had go; the replicas were never its own.",
			live:   map[string]string{"kubectl.kubernetes.io/last-applied-configuration": last, "crossplane.io/paused": "true"},
			want: []plan.Field{
				{Path: "spec.args", Before: []any{"x"}},
				{Path: "metadata.annotations[crossplane.io/paused]", Before: "true"},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			claim, beside := example(t, "webapp/minimal.yaml")
			objects := cluster(t, claim, beside)
			for _, u := range objects {
				if u.GetKind() == "WebApp" {
					set(int64(4), "replicas").apply(t, u)
					set([]any{"x"}, "args").apply(t, u)
					u.SetAnnotations(tc.live)
				}
			}
			p := planner(t, state.NewSaved(objects))
			p.Replace = false
			got, err := p.Plan(t.Context(), claim)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Edits); diff != "" {
				t.Errorf("\n%s\n-want, +got edits:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPlanCost: the cost of the pods' requests and of the volumes, before and after.
func TestPlanCost(t *testing.T) {
	cases := map[string]struct {
		reason string
		edit   edit
		want   plan.Cost
	}{
		// 3 servers with 0.5 CPUs and 1 GiB each, with sidecars, and volumes of 3 x 20 GiB and of
		// the backups.
		"Memory":  {reason: "A GiB more for each of three servers.", edit: set("2Gi", "resources", "requests", "memory"), want: plan.Cost{Currency: "EUR", After: 3 * 4}},
		"CPU":     {reason: "Half a CPU more for each.", edit: set("1", "resources", "requests", "cpu"), want: plan.Cost{Currency: "EUR", After: 3 * 0.5 * 10}},
		"Storage": {reason: "Volumes grow, though their templates stay.", edit: set("30Gi", "storageSize"), want: plan.Cost{Currency: "EUR", After: 3 * 10 * 0.1}},
		"Nothing": {reason: "What runs costs what it did.", edit: set("production", "environment"), want: plan.Cost{Currency: "EUR"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			claim, beside := example(t, "databasecluster/production.yaml")
			p := planner(t, state.NewSaved(cluster(t, claim, beside)))
			p.Prices = &plan.Prices{Currency: "EUR", CPU: 10, Memory: 4, Storage: 0.1}
			tc.edit.apply(t, claim)
			got, err := p.Plan(t.Context(), claim)
			if err != nil {
				t.Fatal(err)
			}
			if got.Cost.Before < 3*(0.5*10+4+20*0.1) {
				t.Errorf("want a cost before of at least what the servers request, got %v", got.Cost)
			}
			// The test compares the cost that the edit adds.
			added := plan.Cost{Currency: got.Cost.Currency, After: math.Round((got.Cost.After-got.Cost.Before)*100) / 100}
			if diff := cmp.Diff(tc.want, added); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPlanNotes: the plan notes what keeps an edit from taking effect.
func TestPlanNotes(t *testing.T) {
	claim, beside := example(t, "webapp/minimal.yaml")
	objects := cluster(t, claim, beside)
	now := metav1.NewTime(now)
	for _, u := range objects {
		if u.GetKind() == "WebApp" {
			u.SetDeletionTimestamp(&now)
			if err := unstructured.SetNestedField(u.Object, "v0.2.0-a1b2c3", "status", "pendingRelease"); err != nil {
				t.Fatal(err)
			}
			u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "platform.example.com/v1", Kind: "EcommercePlatform", Name: "store", UID: "1", Controller: new(true)}})
		}
	}
	claim.SetAnnotations(map[string]string{"crossplane.io/paused": "true"})
	got, err := planner(t, state.NewSaved(objects)).Plan(t.Context(), claim)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"the claim is being deleted: an edit has no effect any more",
		"the claim is paused: nothing of this happens until annotation crossplane.io/paused is removed",
		"the claim is composed by EcommercePlatform store, which reverts the edit: edit that one",
		"release v0.2.0-a1b2c3 waits for the maintenance window of WebApp hello: an edit of what that one runs brings it at once",
	}
	if diff := cmp.Diff(want, got.Notes); diff != "" {
		t.Errorf("-want, +got notes:\n%s", diff)
	}
}

// TestPlanNotesPending: a release that waits is brought by an edit of what the claim runs, and not
// by one of its window or its number of pods.
func TestPlanNotesPending(t *testing.T) {
	claim, beside := example(t, "webapp/minimal.yaml")
	objects := cluster(t, claim, beside)
	for _, u := range objects {
		if u.GetKind() == "WebApp" {
			if err := unstructured.SetNestedField(u.Object, "v0.2.0-a1b2c3", "status", "pendingRelease"); err != nil {
				t.Fatal(err)
			}
		}
	}
	const (
		brings = "release v0.2.0-a1b2c3 waits for the maintenance window of WebApp hello: an edit of what that one runs brings it at once"
		waits  = "release v0.2.0-a1b2c3 waits for the maintenance window of WebApp hello: this edit does not bring it outside of the window, and what of it is listed as drift waits as well"
	)
	cases := map[string]struct {
		reason string
		edits  []edit
		want   string
	}{
		"None":        {reason: "Nothing is edited.", want: brings},
		"Image":       {reason: "Its pods are edited.", edits: []edit{set("registry.example.com/web:v2", "image")}, want: brings},
		"Replicas":    {reason: "It is scaled.", edits: []edit{set(int64(3), "replicas")}, want: waits},
		"Maintenance": {reason: "Its window is another one.", edits: []edit{set(map[string]any{"start": "03:00"}, "maintenance")}, want: waits},
		"Both":        {reason: "What runs is edited as well.", edits: []edit{set(int64(3), "replicas"), set(int64(9000), "port")}, want: brings},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			edited := claim.DeepCopy()
			for _, e := range tc.edits {
				e.apply(t, edited)
			}
			got, err := planner(t, state.NewSaved(objects)).Plan(t.Context(), edited)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{tc.want}, got.Notes); diff != "" {
				t.Errorf("%s\n-want, +got notes:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPlanForeignObject: a new claim one of whose objects belongs to another owner is refused
// before it is applied.
func TestPlanForeignObject(t *testing.T) {
	claim, _ := example(t, "webapp/minimal.yaml")
	service := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": claim.GetName() + "-web", "namespace": claim.GetNamespace(), "uid": "1"},
	}}
	got, err := planner(t, state.NewSaved([]*unstructured.Unstructured{service})).Plan(t.Context(), claim)
	if err != nil {
		t.Fatal(err)
	}
	if got.Verdict != plan.Refused || !strings.Contains(got.Refusal, "Service") {
		t.Errorf("-want Refused, +got: %s: %s", got.Verdict, got.Refusal)
	}
}

// TestReportHidesSecrets: no form of a report contains a value of a Secret.
func TestReportHidesSecrets(t *testing.T) {
	claim, beside := example(t, "shop/store.yaml")
	objects := cluster(t, claim, beside)
	for _, u := range objects {
		if u.GetKind() == "Secret" {
			data, _, _ := unstructured.NestedStringMap(u.Object, "data")
			for k := range data {
				data[k] = "dG9wLXNlY3JldA=="
			}
			_ = unstructured.SetNestedStringMap(u.Object, data, "data")
		}
	}
	p := planner(t, state.NewSaved(objects))
	got, err := p.Plan(context.Background(), claim)
	if err != nil {
		t.Fatal(err)
	}
	r := plan.NewReport([]plan.Claim{*got})
	b := &bytes.Buffer{}
	for _, write := range []func() error{
		func() error { return r.Text(b, true) },
		func() error { return r.Markdown(b) },
		func() error { return json.NewEncoder(b).Encode(r) },
	} {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	for _, secret := range []string{"dG9wLXNlY3JldA==", "top-secret", "not-a-secret"} {
		if bytes.Contains(b.Bytes(), []byte(secret)) {
			t.Errorf("the report tells %q", secret)
		}
	}
}

// BenchmarkPlan plans an edit of a claim of each kind.
func BenchmarkPlan(b *testing.B) {
	for _, path := range []string{"webapp/production.yaml", "databasecluster/production.yaml", "shop/production.yaml"} {
		b.Run(path, func(b *testing.B) {
			claim, beside := example(b, path)
			p := planner(b, state.NewSaved(cluster(b, claim, beside)))
			claim.SetLabels(map[string]string{"team": "b"})
			for b.Loop() {
				if _, err := p.Plan(b.Context(), claim); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestDocs: the outputs in docs/plan.md are those of the golden files.
func TestDocs(t *testing.T) { pages.Recordings(t, "docs/plan.md", *update) }
