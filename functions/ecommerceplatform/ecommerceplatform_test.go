package ecommerceplatform_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	k8sappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/functions"
	"github.com/storeplane/storeplane/functions/functionstest"
)

// simulate simulates Crossplane for an EcommercePlatform with this spec.
func simulate(t testing.TB, spec string, opts ...functions.Option) *functionstest.Crossplane {
	t.Helper()
	return functionstest.New(t, functionstest.EcommercePlatform(spec), opts...)
}

// TestOrder: database and cache are created first, then the backend, then the frontend, then the
// ingress.
func TestOrder(t *testing.T) {
	cache := []string{"cache-account", "cache-networkpolicy", "cache-secret", "cache-server", "cache-service", "cache-tls"}
	cases := map[string]struct {
		reason string
		spec   string
		want   [][]string
	}{
		"Small":   {reason: "Without an ingress the frontend is last.", spec: functionstest.SmallShop, want: [][]string{append(slices.Clone(cache), "database"), {"backend"}, {"frontend"}}},
		"Big":     {reason: "The ingress opens once there is something behind it, and a config is there before the backend.", spec: functionstest.BigShop, want: [][]string{slices.Concat([]string{"appconfig"}, cache, []string{"database", "protection"}), {"backend"}, {"frontend"}, {"ingress", "ingress-networkpolicy"}}},
		"NoCache": {reason: "Without a cache no component waits for one.", spec: "{frontend: {image: front:1}, backend: {image: back:1}, cache: {enabled: false}}", want: [][]string{{"database"}, {"backend"}, {"frontend"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, simulate(t, tc.spec).Settle()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestWaits: each component waits for the health of those before it, however many rounds that
// takes.
func TestWaits(t *testing.T) {
	c := simulate(t, functionstest.BigShop)
	has := func(what string, want ...string) {
		t.Helper()
		c.Reconcile()
		var got []string
		for _, n := range []string{"database", "cache-server", "backend", "frontend", "ingress"} {
			if c.Observed[n] != nil {
				got = append(got, n)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", what, diff)
		}
	}
	for range 4 {
		has("Nothing is healthy", "database", "cache-server")
	}
	if c.Phase() != "Deploying" || !strings.Contains(c.Message(), "database") || !strings.Contains(c.Message(), "cache") || strings.Contains(c.Message(), "frontend") {
		t.Errorf("The message names what is waited for and nothing that waits itself: got %s, %q", c.Phase(), c.Message())
	}
	if status, _ := c.Condition("BackendReady"); status != "False" {
		t.Errorf("The backend is not ready before it exists: got %s", status)
	}
	c.Heal("cache-server")
	has("The cache is up", "database", "cache-server")
	c.Heal("database")
	has("The database is up", "database", "cache-server")
	has("The config has no bundle yet", "database", "cache-server")
	c.Heal("appconfig")
	has("The config has its bundle", "database", "cache-server", "backend")
	has("The backend starts", "database", "cache-server", "backend")
	c.Heal("backend")
	has("The backend is up", "database", "cache-server", "backend", "frontend")

	// What exists stays, even if the component that it waited for becomes unhealthy.
	c.SetStatus("database", `{phase: Scaling, message: "Waiting for postgresql", conditions: [{type: Ready, status: "False"}]}`)
	c.SetStatus("backend", `{phase: Degraded, message: "Waiting for web (Not all pods are ready)", conditions: [{type: Ready, status: "False"}]}`)
	has("The database is down", "database", "cache-server", "backend", "frontend")
	if got := c.Message(); !strings.Contains(got, "database (Not ready yet: see DatabaseCluster store-database)") || strings.Contains(got, "postgresql") {
		t.Errorf("The message says where to look, and does not follow what a nested claim says while it changes: got %q", got)
	}
	if got := c.Message(); !strings.Contains(got, "backend (web (Not all pods are ready))") {
		t.Errorf("One that was well and is not any more is explained in its own words: got %q", got)
	}
	c.Heal()
	has("All is well", "database", "cache-server", "backend", "frontend", "ingress")
	c.Heal()
	c.Reconcile()
	if c.Phase() != "Running" || c.Message() != "" {
		t.Errorf("got %s, %q", c.Phase(), c.Message())
	}
	for _, typ := range []string{"DatabaseReady", "CacheReady", "BackendReady", "FrontendReady", "IngressReady"} {
		if status, _ := c.Condition(typ); status != "True" {
			t.Errorf("%s: want True, got %s", typ, status)
		}
	}
	want := map[string]any{
		"url": "https://store.example.com", "frontend": "http://store-frontend-web.team.svc:8080", "backend": "http://store-backend-web.team.svc:9000",
		"database": "store-database-primary.team.svc:5432", "cache": "store-cache.team.svc:6379",
	}
	if diff := cmp.Diff(want, functionstest.Get(c.Claim, "status", "endpoints").GetStructValue().AsMap()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
	c.SetStatus("frontend", `{phase: Failed, message: "image is missing", conditions: [{type: Ready, status: "False"}]}`)
	c.Reconcile()
	if c.Phase() != "Failed" || !strings.Contains(c.Message(), "frontend (image is missing)") {
		t.Errorf("A nested claim that failed fails the shop, in its words: got %s, %q", c.Phase(), c.Message())
	}
}

// TestNeedsBoth: the backend waits for the database and for the cache, whichever is healthy first.
func TestNeedsBoth(t *testing.T) {
	component := map[string]string{"database": "database", "cache": "cache-server"}
	for first, second := range map[string]string{"database": "cache", "cache": "database"} {
		t.Run(first, func(t *testing.T) {
			c := simulate(t, functionstest.SmallShop)
			c.Reconcile()
			c.Heal(component[first])
			c.Reconcile()
			if c.Observed["backend"] != nil {
				t.Errorf("only the %s is up, yet the backend starts", first)
			}
			if got := c.Message(); !strings.Contains(got, second) || strings.Contains(got, first) {
				t.Errorf("want a message that names the %s alone, got %q", second, got)
			}
			c.Heal(component[second])
			c.Reconcile()
			if c.Observed["backend"] == nil {
				t.Errorf("both are up, yet the backend does not start")
			}
		})
	}
}

func TestWiring(t *testing.T) {
	c := simulate(t, functionstest.BigShop)
	c.Settle()
	env := func(component string) map[string]string {
		out := map[string]string{}
		for _, e := range functionstest.As[appsv1.WebApp](t, c.Observed[component]).Spec.Env {
			out[e.Name] = e.Value
			if e.ValueFrom != nil {
				out[e.Name] = e.ValueFrom.SecretKeyRef.Name + "/" + e.ValueFrom.SecretKeyRef.Key
			}
		}
		return out
	}
	got := env("backend")
	delete(got, "REDIS_URL_VERSION")
	if diff := cmp.Diff(map[string]string{"DATABASE_URL": "store-database-connection/verified-uri", "REDIS_URL": "store-cache/uri", "REDIS_CA_FILE": "/etc/storeplane/store-cache/ca.crt", "LOG": "debug"}, got); diff != "" {
		t.Errorf("backend: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"BACKEND_URL": "http://store-backend-web.team.svc:9000"}, env("frontend")); diff != "" {
		t.Errorf("frontend: -want, +got:\n%s", diff)
	}

	back, front := functionstest.As[appsv1.WebApp](t, c.Observed["backend"]), functionstest.As[appsv1.WebApp](t, c.Observed["frontend"])
	if back.Spec.Migration == nil || len(back.Spec.CronJobs) != 1 || *back.Spec.Replicas != 2 || back.Spec.Environment != "production" || len(back.Spec.Config) != 0 {
		t.Errorf("backend: got %+v", back.Spec)
	}
	if front.Spec.Probe.Path != "/healthz" || *front.Spec.Autoscaling.MinReplicas != 3 || len(front.Spec.Config) != 0 || len(front.Spec.Clients) != 0 {
		t.Errorf("frontend: got %+v", front.Spec)
	}
	authority := func(name, path, secret string) appsv1.Volume {
		return appsv1.Volume{Name: name, MountPath: path, Secret: &corev1.SecretVolumeSource{SecretName: secret, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}}
	}
	authorities := []appsv1.Volume{
		authority("database-authority", "/etc/storeplane/store-database", "store-database-connection"),
		authority("cache-authority", "/etc/storeplane/store-cache", "store-cache"),
	}
	if diff := cmp.Diff(authorities, back.Spec.Volumes[len(back.Spec.Volumes)-2:]); diff != "" {
		t.Errorf("the backend verifies its database and its cache: -want, +got:\n%s", diff)
	}
	for _, v := range front.Spec.Volumes {
		if v.Name == authorities[0].Name || v.Name == authorities[1].Name {
			t.Error("the frontend knows nothing of a database, or of a cache")
		}
	}
	db := functionstest.As[appsv1.DatabaseCluster](t, c.Observed["database"])
	if db.Spec.Size != 2 || db.Spec.Version != "17.2" || db.Spec.StorageSize != "20Gi" || db.Spec.Environment != "production" || db.Spec.Engine != "postgresql" || db.Spec.DeletionProtection == nil || !*db.Spec.DeletionProtection {
		t.Errorf("database: got %+v", db.Spec)
	}
}

func TestDefaults(t *testing.T) {
	type want struct {
		size, frontend, backend int32
		environment             appsv1.Environment
		memory                  string
	}
	cases := map[string]struct {
		reason string
		env    string
		want   want
	}{
		"None":        {reason: "Without one it is development.", want: want{1, 1, 1, "development", "64Mi"}},
		"Development": {reason: "The most frugal.", env: "development", want: want{1, 1, 1, "development", "64Mi"}},
		"Staging":     {reason: "Two of each.", env: "staging", want: want{2, 2, 2, "staging", "256Mi"}},
		"Production":  {reason: "Three databases.", env: "production", want: want{3, 2, 2, "production", "512Mi"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, functionstest.SmallShop)
			if tc.env != "" {
				c.Edit(tc.env, "environment")
			}
			c.Settle()
			db := functionstest.As[appsv1.DatabaseCluster](t, c.Observed["database"])
			got := want{
				db.Spec.Size, *functionstest.As[appsv1.WebApp](t, c.Observed["frontend"]).Spec.Replicas, *functionstest.As[appsv1.WebApp](t, c.Observed["backend"]).Spec.Replicas,
				db.Spec.Environment, functionstest.As[k8sappsv1.Deployment](t, c.Observed["cache-server"]).Spec.Template.Spec.Containers[0].Resources.Requests.Memory().String(),
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
			if db.Spec.Version != "17" || db.Spec.StorageSize != "" {
				t.Errorf("%s\nPostgreSQL 17, whose storage the environment decides: got %+v", tc.reason, db.Spec)
			}
		})
	}
}

// TestMySQL: a shop has a database of either engine, and its backend connects by the same Secret.
func TestMySQL(t *testing.T) {
	cases := map[string]struct {
		reason   string
		env      string
		database map[string]any
		want     appsv1.DatabaseClusterSpec
	}{
		"Development": {reason: "One server of the only series.", env: "development", database: map[string]any{}, want: appsv1.DatabaseClusterSpec{Size: 1, Version: "9.7"}},
		"Staging":     {reason: "A group has an odd size.", env: "staging", database: map[string]any{}, want: appsv1.DatabaseClusterSpec{Size: 3, Version: "9.7"}},
		"Production":  {reason: "Three servers.", env: "production", database: map[string]any{}, want: appsv1.DatabaseClusterSpec{Size: 3, Version: "9.7"}},
		"Named":       {reason: "What the claim names takes precedence.", env: "staging", database: map[string]any{"size": 1, "version": "9.7.4"}, want: appsv1.DatabaseClusterSpec{Size: 1, Version: "9.7.4"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, functionstest.SmallShop)
			c.Edit(tc.env, "environment")
			tc.database["type"] = "mysql"
			c.Edit(tc.database, "database")
			c.Settle()
			db := functionstest.As[appsv1.DatabaseCluster](t, c.Observed["database"])
			if db.Spec.Engine != appsv1.MySQL || db.Spec.Size != tc.want.Size || db.Spec.Version != tc.want.Version {
				t.Errorf("%s\ngot %+v", tc.reason, db.Spec)
			}
			env := functionstest.As[appsv1.WebApp](t, c.Observed["backend"]).Spec.Env
			if !slices.ContainsFunc(env, func(e corev1.EnvVar) bool {
				return e.Name == "DATABASE_URL" && e.ValueFrom.SecretKeyRef.Name == "store-database-connection" && e.ValueFrom.SecretKeyRef.Key == appsv1.ConnectionVerified
			}) {
				t.Errorf("%s\nthe backend does not connect: %v", tc.reason, env)
			}
		})
	}
}

// TestOwnEnvironment: variables that the claim sets take precedence, and none is set twice.
func TestOwnEnvironment(t *testing.T) {
	c := simulate(t, `{frontend: {image: f, env: [{name: BACKEND_URL, value: mine}]}, backend: {image: b, env: [{name: A, value: x}, {name: REDIS_URL, value: mine}]}}`)
	c.Settle()
	var got []string
	for _, n := range []string{"backend", "frontend"} {
		for _, e := range functionstest.As[appsv1.WebApp](t, c.Observed[n]).Spec.Env {
			got = append(got, e.Name+"="+e.Value)
		}
	}
	if diff := cmp.Diff([]string{"DATABASE_URL=", "A=x", "REDIS_URL=mine", "BACKEND_URL=mine"}, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestVerifies: the backend verifies its database unless the claim makes that impossible. Such a
// claim is still accepted, and the backend connects without verification.
func TestVerifies(t *testing.T) {
	cases := map[string]struct {
		reason, backend, database string
		want                      string
	}{
		"Verifies":    {reason: "By itself it does.", want: "verified-uri"},
		"Own":         {reason: "Whoever connects in another way mounts what that needs.", backend: "env: [{name: DATABASE_URL, value: mine}]"},
		"Brought":     {reason: "Of a certificate that is brought neither names nor authority are known.", database: "tls: {secretName: mine}", want: "uri"},
		"Many":        {reason: "There is no room for one more volume.", backend: "volumes: [" + strings.Join(volumes(20), ", ") + "]", want: "uri"},
		"VolumeName":  {reason: "Its name is taken.", backend: "volumes: [{name: database-authority, mountPath: /a, emptyDir: {}}]", want: "uri"},
		"VolumeMount": {reason: "So is its place.", backend: "volumes: [{name: a, mountPath: /etc/storeplane/store-database, emptyDir: {}}]", want: "uri"},
		"Parent":      {reason: "Nothing can be mounted in a volume that is read-only.", backend: "volumes: [{name: a, mountPath: /etc/storeplane, secret: {secretName: s}}]", want: "uri"},
		"Beside":      {reason: "A place beside it is free.", backend: "volumes: [{name: a, mountPath: /etc/storeplane/store-database-2, emptyDir: {}}]", want: "verified-uri"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, "{frontend: {image: f}, backend: {image: b, "+tc.backend+"}, database: {"+tc.database+"}, cache: {enabled: false}}")
			c.Settle()
			back := functionstest.As[appsv1.WebApp](t, c.Observed["backend"]).Spec
			got := ""
			for _, e := range back.Env {
				if e.Name == "DATABASE_URL" && e.ValueFrom != nil {
					got = e.ValueFrom.SecretKeyRef.Key
				}
			}
			if got != tc.want {
				t.Errorf("%s\nDATABASE_URL: want key %q, got %q", tc.reason, tc.want, got)
			}
			mounted := slices.ContainsFunc(back.Volumes, func(v appsv1.Volume) bool {
				return v.Name == "database-authority" && v.Secret != nil
			})
			if mounted != (tc.want == "verified-uri") {
				t.Errorf("%s\nthe authority is mounted: %t", tc.reason, mounted)
			}
		})
	}
}

// TestVerifiesLater: a backend that already runs verifies its database only once the connection
// Secret has the key for that, which a database that is paused or refused does not write.
func TestVerifiesLater(t *testing.T) {
	secret := func(keys string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: store-database-connection, namespace: team}\ndata: {" + keys + "}"
	}
	cases := map[string]struct{ secret, want string }{
		"Missing": {want: "uri"},
		"Old":     {secret: secret("uri: cG9zdGdyZXNxbDovLw=="), want: "uri"},
		"New":     {secret: secret("uri: cG9zdGdyZXNxbDovLw==, verified-uri: cG9zdGdyZXNxbDovLw=="), want: "verified-uri"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, functionstest.SmallShop)
			c.Settle()
			key := func() *structpb.Value {
				for _, e := range functionstest.Get(c.Observed["backend"], "spec", "env").GetListValue().GetValues() {
					if f := e.GetStructValue(); f.GetFields()["name"].GetStringValue() == "DATABASE_URL" {
						return functionstest.Get(f, "valueFrom", "secretKeyRef", "key")
					}
				}
				t.Fatal("the backend has no DATABASE_URL")
				return nil
			}
			key().Kind = &structpb.Value_StringValue{StringValue: "uri"}
			if tc.secret != "" {
				c.Add(tc.secret)
			}
			c.Settle()
			if got := key().GetStringValue(); got != tc.want {
				t.Errorf("DATABASE_URL: want key %q, got %q", tc.want, got)
			}
		})
	}
}

// TestDatabase: an EcommercePlatform passes the fields of a DatabaseCluster on to its database.
func TestDatabase(t *testing.T) {
	const options = `{
  storageClassName: fast, synchronous: false, synchronousMode: strict,
  resources: {requests: {cpu: "1"}}, parameters: {work_mem: 16MB}, tls: {required: false},
  databases: [{name: reports, owner: reader, extensions: [pg_trgm]}], users: [{name: reader}],
  backup: {enabled: true, schedule: "@daily", retention: 7d, destination: {type: s3, bucket: b}},
  restoreFrom: {backupRef: {name: old}},
}`
	c := simulate(t, "{frontend: {image: f}, backend: {image: b}, database: "+options+"}")
	c.Reconcile()
	want := functionstest.Parse(t, options).AsMap()
	got := functionstest.Get(c.Observed["database"], "spec").GetStructValue().AsMap()
	for k := range got {
		if _, ok := want[k]; !ok {
			delete(got, k)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestDegradedAndReady: a database that has lost a standby is still Ready, and the
// EcommercePlatform is Degraded.
func TestDegradedAndReady(t *testing.T) {
	c := simulate(t, functionstest.SmallShop)
	c.Settle()
	c.SetStatus("database", `{phase: Degraded, message: "Not following the primary: store-database-postgresql-1", conditions: [{type: Ready, status: "True"}]}`)
	rsp := c.Reconcile()
	if got := c.Message(); c.Phase() != "Degraded" || got != "Degraded: database (Not following the primary: store-database-postgresql-1)" {
		t.Errorf("got %s, %q", c.Phase(), got)
	}
	if w := functionstest.Waiting(rsp); len(w) > 0 {
		t.Errorf("It is Ready: got %v", w)
	}
	c.Heal("database")
	c.Reconcile()
	if c.Phase() != "Running" || c.Message() != "" {
		t.Errorf("got %s, %q", c.Phase(), c.Message())
	}
}

// TestTiers: an EcommercePlatform passes the fields of a WebApp on to its tiers.
func TestTiers(t *testing.T) {
	c := simulate(t, `
  frontend: {image: f, metrics: {port: 9100}, volumes: [{name: data, mountPath: /data, emptyDir: {}}], imagePullSecrets: [{name: pull}]}
  backend: {image: b, sidecars: [{name: proxy, image: p}], workers: [{name: mail, args: [mail]}]}
`)
	c.Settle()
	front, back := functionstest.As[appsv1.WebApp](t, c.Observed["frontend"]).Spec, functionstest.As[appsv1.WebApp](t, c.Observed["backend"]).Spec
	if front.Metrics == nil || *front.Metrics.Port != 9100 || len(front.Volumes) != 1 || len(front.ImagePullSecrets) != 1 {
		t.Errorf("frontend: got %+v", front)
	}
	if len(back.Sidecars) != 1 || len(back.Workers) != 1 || back.Workers[0].Name != "mail" {
		t.Errorf("backend: got %+v", back)
	}
	c.Edit(false, "monitoring", "enabled")
	c.Settle()
	if got := functionstest.As[appsv1.WebApp](t, c.Observed["frontend"]).Spec.Metrics; got != nil {
		t.Errorf("Without monitoring no Prometheus reads metrics: got %+v", got)
	}
}

// TestGateway: the ingress is an HTTPRoute if the claim names a Gateway and the cluster has the
// kind.
func TestGateway(t *testing.T) {
	c := simulate(t, functionstest.SmallShop)
	c.Serve("httproute")
	c.Settle()
	c.Edit(map[string]any{"host": "shop.example.com", "gateway": map[string]any{"name": "public", "sectionName": "https"}}, "ingress")
	c.Reconcile()
	c.Reconcile()
	if got := c.Message(); got != "Waiting for ingress (The Gateway has not taken the route yet)" {
		t.Errorf("got %q", got)
	}
	c.SetStatus("httproute", `{parents: [{parentRef: {group: gateway.networking.k8s.io, kind: Gateway, name: public, namespace: team, sectionName: https}, conditions: [{type: Accepted, status: "True", observedGeneration: 1}]}]}`)
	c.Reconcile()
	if c.Phase() != "Running" {
		t.Errorf("got %s, %q", c.Phase(), c.Message())
	}
	if c.Observed["ingress"] != nil || c.Observed["httproute"] == nil || functionstest.Get(c.Claim, "status", "endpoints", "url").GetStringValue() != "https://shop.example.com" {
		t.Errorf("want an HTTPRoute and no Ingress, got %v, %v", c.ComponentNames(), functionstest.Get(c.Claim, "status", "endpoints"))
	}
	if got := functionstest.Get(c.Observed["httproute"], "spec", "rules", 0, "backendRefs", 0, "name").GetStringValue(); got != "store-frontend-web" {
		t.Errorf("want it to lead to the frontend, got %s", got)
	}
	c.Schemas = nil
	c.Edit(map[string]any{"host": "other.example.com", "gateway": map[string]any{"name": "public"}}, "ingress")
	c.Reconcile()
	if status, message := c.Condition("Accepted"); status != "True" || c.Observed["httproute"] == nil {
		t.Errorf("what exists is of a kind that exists, whatever discovery finds now: got %s, %q", status, message)
	}
}

func TestIngress(t *testing.T) {
	c := simulate(t, functionstest.BigShop)
	c.InstallSettings("{ingress: {className: nginx, namespace: ingress-nginx}}")
	c.Settle()
	ing := functionstest.As[networkingv1.Ingress](t, c.Observed["ingress"])
	backend := ing.Spec.Rules[0].HTTP.Paths[0].Backend.Service
	if ing.Name != "store-ingress" || *ing.Spec.IngressClassName != "nginx" || backend.Name != "store-frontend-web" || backend.Port.Number != 8080 || ing.Spec.TLS[0].SecretName != "cert" {
		t.Errorf("got %+v", ing.Spec)
	}
	c.Edit(map[string]any{"host": "store.example.com", "tls": map[string]any{"issuer": "le"}}, "ingress")
	c.Settle()
	if got := functionstest.As[networkingv1.Ingress](t, c.Observed["ingress"]).Spec.TLS[0].SecretName; got != "store-tls" {
		t.Errorf("The certificate goes to store-tls, as the field says: got %s", got)
	}
	c.Edit(nil, "ingress")
	c.Settle()
	if c.Observed["ingress"] != nil || c.Observed["ingress-networkpolicy"] != nil || functionstest.Get(c.Claim, "status", "endpoints", "url") != nil {
		t.Errorf("without an ingress nothing of it stays: got %v", c.ComponentNames())
	}
}

// TestConnectionExists: the Secrets that the tiers read exist.
func TestConnectionExists(t *testing.T) {
	all := functionstest.Expand(t, functionstest.EcommercePlatform(functionstest.BigShop), "")
	secrets := map[string]*corev1.Secret{}
	for _, o := range all {
		if o.Kind() == "Secret" {
			s := functionstest.As[corev1.Secret](t, o.Object)
			secrets[s.Name] = s
		}
	}
	refs := 0
	for _, o := range all {
		for _, p := range o.Pods(t) {
			for _, c := range p.Spec.Containers {
				for _, e := range c.Env {
					if e.ValueFrom == nil || e.ValueFrom.SecretKeyRef == nil {
						continue
					}
					refs++
					ref := e.ValueFrom.SecretKeyRef
					if s := secrets[ref.Name]; s == nil || len(s.Data[ref.Key]) == 0 {
						t.Errorf("%s of %s reads key %s of Secret %s, which there is not", e.Name, o.Name(), ref.Key, ref.Name)
					}
				}
			}
		}
	}
	// The backend, the migration and the CronJob read two each, the cache's exporter reads one.
	if refs != 7 {
		t.Errorf("want 7 references to Secrets, got %d", refs)
	}
}
