package webapp_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"
	k8sappsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/storeplane/storeplane/functions/functionstest"
)

// crossplane simulates Crossplane for a claim.
type crossplane = functionstest.Crossplane

// simulate simulates Crossplane for a WebApp with this spec.
func simulate(t testing.TB, spec string) *crossplane {
	t.Helper()
	return functionstest.New(t, functionstest.WebApp(spec))
}

func TestOrder(t *testing.T) {
	cases := map[string]struct {
		reason string
		claim  string
		want   [][]string
	}{
		"Small": {
			reason: "All is created at once.",
			claim:  functionstest.SmallApp,
			want:   [][]string{{"account", "networkpolicy", "service", "web"}},
		},
		"Migrated": {
			reason: "The bundle comes before the migration, for which the pods wait.",
			claim:  functionstest.MigratedApp,
			want:   [][]string{{"account", "appconfig", "networkpolicy", "networkpolicy-jobs", "service", "web"}, {"migration"}},
		},
		"Big": {
			reason: "What needs running pods comes last. CronJobs exist from the beginning, suspended.",
			claim:  functionstest.BigApp,
			want: [][]string{
				{"account", "appconfig", "cron-clean", "cron-report", "disruptionbudget", "ingress", "networkpolicy", "networkpolicy-jobs", "service", "web"}, {"migration"},
				{"autoscaler"},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := functionstest.New(t, tc.claim)
			got := c.Settle()
			// The name of a migration ends with a digest.
			for _, round := range got {
				for i, n := range round {
					if strings.HasPrefix(n, "migration-") {
						round[i] = "migration"
					}
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPausedForAccount: a Deployment creates no pods before their account exists, and one that
// has pods is not paused again.
func TestPausedForAccount(t *testing.T) {
	c := functionstest.New(t, functionstest.SmallApp)
	isPaused := func() bool {
		return functionstest.Get(c.Observed["web"], "spec", "paused").GetBoolValue()
	}
	if c.Reconcile(); c.Observed["account"] == nil || !isPaused() {
		t.Errorf("the first pass: want an account, and a paused Deployment, got %v", c.Observed["web"])
	}
	if c.Reconcile(); isPaused() {
		t.Errorf("the second pass: want pods, got %v", c.Observed["web"])
	}

	migrated := functionstest.New(t, functionstest.MigratedApp)
	for range 3 {
		migrated.Reconcile()
		migrated.Heal("appconfig")
	}
	if got := migrated.ComponentStatus("web"); got != "Waits for migration" || !functionstest.Get(migrated.Observed["web"], "spec", "paused").GetBoolValue() {
		t.Errorf("a migration that is at work: want a paused Deployment that waits for it, got %q, %v", got, migrated.Observed["web"])
	}
	migrated.Heal()
	if migrated.Reconcile(); functionstest.Get(migrated.Observed["web"], "spec", "paused").GetBoolValue() {
		t.Errorf("a migration that is complete: want pods, got %v", migrated.Observed["web"])
	}
	c.Settle()
	delete(c.Observed, "account")
	if c.Reconcile(); isPaused() {
		t.Errorf("an account that was deleted: want the Deployment as it is, got %v", c.Observed["web"])
	}
}

// TestStatus: the status of a claim while it starts.
func TestStatus(t *testing.T) {
	c := functionstest.New(t, functionstest.SmallApp)
	type said struct {
		phase, endpoint, image string
		silent                 bool
		// refused means that the function reports the claim as not ready, whatever readiness
		// Crossplane derives from its objects.
		refused bool
	}
	step := func(what string, want said) {
		t.Helper()
		rsp := c.Reconcile()
		got := said{
			c.Phase(), functionstest.Get(c.Claim, "status", "endpoint").GetStringValue(), functionstest.Get(c.Claim, "status", "image").GetStringValue(),
			c.Message() == "", rsp.GetDesired().GetComposite().GetReady() == fnv1.Ready_READY_FALSE,
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(said{})); diff != "" {
			t.Errorf("%s: -want, +got:\n%s", what, diff)
		}
	}
	const endpoint, image = "http://hello-web.team.svc:8080", "registry.example.com/hello:1"
	step("Nothing exists yet, and the status is left to the next pass", said{silent: true, refused: true})
	step("There is an account", said{phase: "Deploying", endpoint: endpoint, image: image, refused: true})
	step("The pods start", said{phase: "Deploying", endpoint: endpoint, image: image, refused: true})
	c.Heal()
	step("All is well", said{phase: "Running", endpoint: endpoint, image: image, silent: true, refused: true})
	step("It says so", said{phase: "Running", endpoint: endpoint, image: image, silent: true})
	c.SetStatus("web", `{observedGeneration: 2, replicas: 1, updatedReplicas: 1}`)
	step("The pod crashed", said{phase: "Degraded", endpoint: endpoint, image: image, refused: true})
	c.Heal()
	step("It is back", said{phase: "Running", endpoint: endpoint, image: image, silent: true, refused: true})
	c.Edit("registry.example.com/hello:2", "image")
	step("The claim changed", said{phase: "Deploying", endpoint: endpoint, image: image, refused: true})
	step("The change rolls", said{phase: "Deploying", endpoint: endpoint, image: "registry.example.com/hello:2", refused: true})
	c.Heal()
	step("It is there", said{phase: "Running", endpoint: endpoint, image: "registry.example.com/hello:2", silent: true, refused: true})
	step("It says so again", said{phase: "Running", endpoint: endpoint, image: "registry.example.com/hello:2", silent: true})
	c.SetStatus("web", `{observedGeneration: 3, replicas: 1, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded}]}`)
	step("It makes no progress", said{phase: "Failed", endpoint: endpoint, image: "registry.example.com/hello:2", refused: true})
}

// TestMigrates: a new image is rolled out only after its own migration has completed.
func TestMigrates(t *testing.T) {
	migration := func(c *crossplane) string {
		i := slices.IndexFunc(c.ComponentNames(), func(n string) bool { return strings.HasPrefix(n, "migration-") })
		if i < 0 {
			t.Fatal("there is no migration")
		}
		return c.ComponentNames()[i]
	}
	image := func(c *crossplane, component string) string {
		return functionstest.Get(c.Observed[component], "spec", "template", "spec", "containers", 0, "image").GetStringValue()
	}

	c := functionstest.New(t, functionstest.MigratedApp)
	c.Settle()
	first := migration(c)
	before := proto.CloneOf(c.Observed["web"])

	c.Edit("registry.example.com/hello:2", "image")
	rsp := c.Reconcile()
	second := migration(c)
	if second == first || image(c, second) != "registry.example.com/hello:2" {
		t.Fatalf("A new image has a migration of its own that runs it: got %s with %s", second, image(c, second))
	}
	if slices.Contains(c.ComponentNames(), first) {
		t.Errorf("The old migration is done and goes: got %v", c.ComponentNames())
	}

	untouched := func(when string) {
		t.Helper()
		if diff := cmp.Diff(applicable(before), rsp.GetDesired().GetResources()["web"].GetResource(), protocmp.Transform()); diff != "" {
			t.Errorf("%s: the Deployment stays exactly as it was: -want, +got:\n%s", when, diff)
		}
		if got := functionstest.Get(c.Claim, "status", "image").GetStringValue(); got != "registry.example.com/hello:1" {
			t.Errorf("%s: the status says which image runs, got %s", when, got)
		}
	}
	untouched("The migration is not there")
	rsp = c.Reconcile()
	untouched("The migration starts")
	if c.Phase() != "Deploying" || !strings.Contains(c.Message(), "migration") {
		t.Errorf("The claim waits for its migration: got %s, %q", c.Phase(), c.Message())
	}

	c.SetStatus(second, `{failed: 1, active: 1}`)
	rsp = c.Reconcile()
	untouched("The migration is tried again")
	if c.Phase() != "Deploying" {
		t.Errorf("A try that failed is not the end: got %s", c.Phase())
	}

	c.SetStatus(second, `{failed: 5, conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded}]}`)
	rsp = c.Reconcile()
	untouched("The migration failed")
	if c.Phase() != "Failed" || !strings.Contains(c.Message(), "The Job failed (BackoffLimitExceeded)") {
		t.Errorf("A migration that failed fails the claim, in words: got %s, %q", c.Phase(), c.Message())
	}
	for range 3 {
		rsp = c.Reconcile()
	}
	untouched("However often it is looked at")

	// A third image fixes it.
	c.Edit("registry.example.com/hello:3", "image")
	rsp = c.Reconcile()
	third := migration(c)
	untouched("The next migration is not there")
	if third == second {
		t.Fatalf("The third image has a migration of its own")
	}
	c.Heal(third)
	c.Reconcile()
	if got := image(c, "web"); got != "registry.example.com/hello:3" {
		t.Errorf("Once its migration completed the new image rolls: got %s", got)
	}
	c.Heal()
	c.Reconcile()
	if c.Phase() != "Running" || c.Message() != "" {
		t.Errorf("And all is well: got %s, %q", c.Phase(), c.Message())
	}

	// No migration runs twice.
	uid := functionstest.Get(c.Observed[third], "metadata", "uid").GetStringValue()
	c.Edit(3, "replicas")
	c.Settle()
	if migration(c) != third || functionstest.Get(c.Observed[third], "metadata", "uid").GetStringValue() != uid {
		t.Errorf("A change that is not the image's needs no migration: got %v", c.ComponentNames())
	}
	if got := functionstest.As[k8sappsv1.Deployment](t, c.Observed["web"]).Spec.Replicas; *got != 3 {
		t.Errorf("It is applied at once: got %d replicas", *got)
	}
}

// TestMigrationHoldsAllChanges: while a migration is in progress the Deployment does not change at
// all, also not in other fields.
func TestMigrationHoldsAllChanges(t *testing.T) {
	c := functionstest.New(t, functionstest.MigratedApp)
	c.Settle()
	before := proto.CloneOf(c.Observed["web"])
	c.Edit("registry.example.com/hello:2", "image")
	c.Edit("hello", "config", "GREETING")
	c.Edit(4, "replicas")
	rsp := c.Reconcile()
	if diff := cmp.Diff(applicable(before), rsp.GetDesired().GetResources()["web"].GetResource(), protocmp.Transform()); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// applicable returns an observed object without the fields that only the API server sets, as it may
// be applied again.
func applicable(obj *structpb.Struct) *structpb.Struct {
	s := proto.CloneOf(obj)
	delete(s.Fields, "status")
	for _, f := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"} {
		delete(functionstest.Fields(s, "metadata"), f)
	}
	return s
}

func TestEnvironment(t *testing.T) {
	bundle := functionstest.BundleName("hello", map[string]any{"A": "b"})
	cases := map[string]struct {
		reason string
		spec   string
		env    []string // NAME=value
		from   []string // names of ConfigMaps and Secrets, in order
	}{
		"Default": {reason: "The application is told its port.", spec: "{image: x}", env: []string{"PORT=8080"}},
		"Port":    {reason: "Whatever it is.", spec: "{image: x, port: 9000}", env: []string{"PORT=9000"}},
		"OwnPort": {reason: "A PORT of its own is not set twice.", spec: `{image: x, port: 9000, env: [{name: A, value: "1"}, {name: PORT, value: "7"}]}`, env: []string{"A=1", "PORT=7"}},
		"Refers":  {reason: "PORT comes first, so that others may refer to it.", spec: `{image: x, env: [{name: URL, value: "http://$(PORT)"}]}`, env: []string{"PORT=8080", "URL=http://$(PORT)"}},
		"Config":  {reason: "Config comes from its bundle.", spec: "{image: x, config: {A: b}}", env: []string{"PORT=8080"}, from: []string{bundle}},
		"EnvFrom": {
			reason: "What the claim names itself comes after the config and wins.",
			spec:   "{image: x, config: {A: b}, envFrom: [{secretRef: {name: s}}, {configMapRef: {name: m}}]}",
			env:    []string{"PORT=8080"}, from: []string{bundle, "s", "m"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := functionstest.New(t, functionstest.WebApp(tc.spec))
			c.Edit([]any{map[string]any{"name": "n", "schedule": "@daily", "args": []any{"a"}}}, "cronJobs")
			c.Edit(map[string]any{"args": []any{"m"}}, "migration")
			c.Settle()
			n := 0
			for _, p := range functionstest.Pods(t, c.Observed) {
				n++
				var env, from []string
				for _, e := range p.Spec.Containers[0].Env {
					env = append(env, e.Name+"="+e.Value)
				}
				for _, f := range p.Spec.Containers[0].EnvFrom {
					if f.ConfigMapRef != nil {
						from = append(from, f.ConfigMapRef.Name)
					}
					if f.SecretRef != nil {
						from = append(from, f.SecretRef.Name)
					}
				}
				if diff := cmp.Diff(tc.env, env); diff != "" {
					t.Errorf("%s\nenv of %s: -want, +got:\n%s", tc.reason, p.Component, diff)
				}
				if diff := cmp.Diff(tc.from, from); diff != "" {
					t.Errorf("%s\nenvFrom of %s: -want, +got:\n%s", tc.reason, p.Component, diff)
				}
			}
			if n != 3 {
				t.Errorf("%s\nDeployment, migration and CronJob have the same environment, got %d pods", tc.reason, n)
			}
		})
	}
}

func TestProbe(t *testing.T) {
	const tcp = "tcp http"
	cases := map[string]struct {
		reason string
		spec   string
		ready  string
		alive  string
	}{
		"None":         {reason: "Without a path any connection will do.", spec: "{image: x}", ready: tcp, alive: tcp},
		"Path":         {reason: "A path is asked for at the application's port. A dependency that is down must not restart the pods.", spec: "{image: x, probe: {path: /readyz}}", ready: "GET /readyz http", alive: tcp},
		"PathPort":     {reason: "Or at another.", spec: "{image: x, probe: {path: /readyz, port: 9}}", ready: "GET /readyz 9", alive: tcp},
		"Port":         {reason: "Or that port alone.", spec: "{image: x, probe: {port: 9}}", ready: "tcp 9", alive: tcp},
		"Liveness":     {reason: "A path of its own tells what is stuck.", spec: "{image: x, probe: {path: /readyz, liveness: {path: /livez}}}", ready: "GET /readyz http", alive: "GET /livez http"},
		"LivenessPort": {reason: "At the port of the probe.", spec: "{image: x, probe: {port: 9, liveness: {path: /livez}}}", ready: "tcp 9", alive: "GET /livez 9"},
	}
	say := func(h corev1.ProbeHandler) string {
		if h.HTTPGet != nil {
			return "GET " + h.HTTPGet.Path + " " + h.HTTPGet.Port.String()
		}
		return "tcp " + h.TCPSocket.Port.String()
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			app := webAppPods(t, functionstest.WebApp(tc.spec))["web"].Containers[0]
			if got := say(app.ReadinessProbe.ProbeHandler); got != tc.ready {
				t.Errorf("%s\nreadiness: want %s, got %s", tc.reason, tc.ready, got)
			}
			if got := say(app.StartupProbe.ProbeHandler); got != tc.ready {
				t.Errorf("%s\nstartup: want %s, got %s", tc.reason, tc.ready, got)
			}
			if got := say(app.LivenessProbe.ProbeHandler); got != tc.alive {
				t.Errorf("%s\nliveness: want %s, got %s", tc.reason, tc.alive, got)
			}
		})
	}
}

func TestCronJobs(t *testing.T) {
	c := functionstest.New(t, functionstest.BigApp)
	c.Settle()
	clean := functionstest.As[batchv1.CronJob](t, c.Observed["cron-clean"])
	if clean.Name != "hello-cron-clean" || clean.Spec.Schedule != "0 3 * * *" || *clean.Spec.TimeZone != "Europe/Paris" || clean.Spec.ConcurrencyPolicy != batchv1.ForbidConcurrent {
		t.Errorf("got %v", clean.Spec)
	}
	if report := functionstest.As[batchv1.CronJob](t, c.Observed["cron-report"]); report.Spec.TimeZone != nil || report.Spec.Schedule != "@weekly" {
		t.Errorf("got %v", report.Spec)
	}
	c.Edit([]any{map[string]any{"name": "report", "schedule": "@daily", "args": []any{"x"}}}, "cronJobs")
	c.Settle()
	if slices.Contains(c.ComponentNames(), "cron-clean") || functionstest.As[batchv1.CronJob](t, c.Observed["cron-report"]).Spec.Schedule != "@daily" {
		t.Errorf("one goes, one changes: got %v", c.ComponentNames())
	}
}

func TestIngress(t *testing.T) {
	c := functionstest.New(t, functionstest.BigApp)
	c.InstallSettings(`{ingress: {className: nginx, namespace: ingress-nginx}}`)
	c.Settle()
	ing := functionstest.As[networkingv1.Ingress](t, c.Observed["ingress"])
	service := functionstest.As[corev1.Service](t, c.Observed["service"])
	backend := ing.Spec.Rules[0].HTTP.Paths[0].Backend.Service
	if *ing.Spec.IngressClassName != "nginx" || ing.Spec.Rules[0].Host != "hello.example.com" || backend.Name != service.Name || backend.Port.Number != service.Spec.Ports[0].Port {
		t.Errorf("got %v for Service %s %v", ing.Spec, service.Name, service.Spec.Ports)
	}
	// The documentation of the field promises <claim>-tls.
	if got := ing.Spec.TLS[0].SecretName; got != "hello-tls" {
		t.Errorf("The certificate goes to hello-tls, as the field says: got %s", got)
	}
	if got := functionstest.Get(c.Claim, "status", "url").GetStringValue(); got != "https://hello.example.com" {
		t.Errorf("got url %s", got)
	}
	np := functionstest.As[networkingv1.NetworkPolicy](t, c.Observed["networkpolicy"])
	if !slices.ContainsFunc(np.Spec.Ingress[0].From, func(p networkingv1.NetworkPolicyPeer) bool {
		return p.NamespaceSelector != nil && p.NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"] == "ingress-nginx"
	}) {
		t.Errorf("The ingress controller must reach the pods: got %v", np.Spec.Ingress)
	}
}

func TestRefuses(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   string
		want   string
	}{
		"NoImage":    {reason: "There is nothing to run.", spec: "{replicas: 1}", want: "image is missing"},
		"MinOverMax": {reason: "The bounds are turned round.", spec: "{image: x, autoscaling: {minReplicas: 5, maxReplicas: 2}}", want: "autoscaling.minReplicas must not be more than autoscaling.maxReplicas: 5, 2"},
		"Cron61":     {reason: "There is no minute 61.", spec: `{image: x, cronJobs: [{name: clean, schedule: "61 * * * *"}]}`, want: `cronJobs clean: schedule "61 * * * *" is no cron expression: end of range (61) above maximum (59): 61`},
		"CronZone":   {reason: "There is no such zone.", spec: `{image: x, cronJobs: [{name: clean, schedule: "@daily", timeZone: Mars/Base}]}`, want: `cronJobs clean: timeZone "Mars/Base" is not known: use a name like Europe/Paris`},
		"ConfigKey":  {reason: "No ConfigMap holds such a key. Of several the first is told.", spec: `{image: x, config: {ok: a, "b b": c, "a b": c}}`, want: `config: key "a b" may hold only letters, digits, '-', '_' and '.'`},
		"Type":       {reason: "A wrong type that slipped by the XRD.", spec: `{image: x, replicas: many}`, want: "cannot read spec: replicas: must be a whole number, is a string"},
		"Metric":     {reason: "No autoscaler takes it.", spec: `{image: x, autoscaling: {maxReplicas: 2, metrics: [{type: Pods, name: rps, averageValue: many}]}}`, want: `autoscaling.metrics rps: averageValue must be a quantity above zero, like 100 or 500m, is "many"`},
		"MetricType": {reason: "There is no such type.", spec: `{image: x, autoscaling: {maxReplicas: 2, metrics: [{type: Object, name: rps, averageValue: "1"}]}}`, want: `autoscaling.metrics rps: type must be Pods or External, is "Object"`},
		"Worker":     {reason: "A worker is capped as the application is.", spec: `{image: x, workers: [{name: w, args: [w], replicas: 11}]}`, want: `workers w: replicas must be 1 to 10, is 11`},
		"TwoSources": {reason: "A volume has one source.", spec: `{image: x, volumes: [{name: a, mountPath: /a, emptyDir: {}, secret: {secretName: s}}]}`, want: `volumes a: exactly one of configMap, secret, emptyDir and persistentVolumeClaim is needed`},
		"NoSource":   {reason: "And not none.", spec: `{image: x, volumes: [{name: a, mountPath: /a}]}`, want: `volumes a: exactly one of configMap, secret, emptyDir and persistentVolumeClaim is needed`},
		"NoConfig":   {reason: "Which the API server would refuse.", spec: `{image: x, volumes: [{name: a, mountPath: /a, configMap: {}}]}`, want: `volumes a: configMap.name is missing`},
		"NoSecret":   {reason: "Pods with a Secret without a name would never start.", spec: `{image: x, volumes: [{name: a, mountPath: /a, secret: {}}]}`, want: `volumes a: secret.secretName is missing`},
		"NoClaim":    {reason: "Which the API server would refuse.", spec: `{image: x, volumes: [{name: a, mountPath: /a, persistentVolumeClaim: {}}]}`, want: `volumes a: persistentVolumeClaim.claimName is missing`},
		"Twice":      {reason: "One folder is of one volume.", spec: `{image: x, volumes: [{name: a, mountPath: /a, emptyDir: {}}, {name: b, mountPath: /a, emptyDir: {}}]}`, want: `volumes b: mountPath /a is that of volume a already`},
		"Tmp":        {reason: "/tmp is there.", spec: `{image: x, volumes: [{name: a, mountPath: /tmp, emptyDir: {}}]}`, want: `volumes a: mountPath /tmp is that of volume tmp already`},
		"TmpName":    {reason: "And so is its volume.", spec: `{image: x, volumes: [{name: tmp, mountPath: /a, emptyDir: {}}]}`, want: `volumes: the name tmp is taken already`},
		"Relative":   {reason: "A path is absolute, and itself.", spec: `{image: x, volumes: [{name: a, mountPath: /a/../tmp, emptyDir: {}}]}`, want: `volumes a: mountPath must be an absolute path like /data, is "/a/../tmp"`},
		"Container":  {reason: "A pod's containers have names of their own.", spec: `{image: x, initContainers: [{name: a}], sidecars: [{name: a}]}`, want: `sidecars: the name a is taken already`},
		"App":        {reason: "Also of the application's.", spec: `{image: x, initContainers: [{name: app}]}`, want: `initContainers: the name app is taken already`},
		"Port":       {reason: "Two cannot listen at one port.", spec: `{image: x, sidecars: [{name: a, port: 8080}]}`, want: `sidecars a: port 8080 is that of the application already`},
		"Ports":      {reason: "Nor can two sidecars.", spec: `{image: x, sidecars: [{name: a, port: 1}, {name: b, port: 1}]}`, want: `sidecars b: port 1 is that of sidecar a already`},
		"PullTwice":  {reason: "The API server takes each name once.", spec: `{image: x, imagePullSecrets: [{name: a}, {name: b}, {name: a}]}`, want: `imagePullSecrets: the name a is there twice`},
		"Quantity":   {reason: "No quantity.", spec: `{image: x, resources: {requests: {memory: much}}}`, want: "cannot read spec: resources.requests.memory: must be a quantity, is a string"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := functionstest.Refused(t, functionstest.WebApp(tc.spec)); got != tc.want {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

// TestEnforcesCaps: the function checks the limits of the XRD again, for claims that were created
// without them.
func TestEnforcesCaps(t *testing.T) {
	cases := map[string]struct {
		reason string
		spec   string
		field  string
	}{
		"Replicas0":          {reason: "No pods is no application.", spec: "{image: x, replicas: 0}", field: "replicas"},
		"Production11":       {reason: "Production has at most 10.", spec: "{image: x, environment: production, replicas: 11}", field: "replicas"},
		"ProductionScaled11": {reason: "However they come to be.", spec: "{image: x, environment: production, autoscaling: {maxReplicas: 11}}", field: "autoscaling.maxReplicas"},
		"None11":             {reason: "Without an environment it is at most 10 too.", spec: "{image: x, replicas: 11}", field: "replicas"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := functionstest.Refused(t, functionstest.WebApp(tc.spec)); !strings.HasPrefix(got, tc.field+" ") {
				t.Errorf("%s\nwant a refusal that begins with %s, got %q", tc.reason, tc.field, got)
			}
		})
	}
	if got := functionstest.Refused(t, functionstest.WebApp("{image: x, environment: staging, replicas: 11}")); got != "" {
		t.Errorf("More than 10 are fine in staging: got %q", got)
	}
}

// TestRefusesLarge: a claim does not make the function compose many times its own size.
func TestRefusesLarge(t *testing.T) {
	value := func(size int) string { return strings.Repeat("x", size) }
	repeated := func(n int, each string) string {
		var out []string
		for i := range n {
			out = append(out, strings.ReplaceAll(each, "N", strconv.Itoa(i)))
		}
		return "[" + strings.Join(out, ", ") + "]"
	}
	workers := repeated(10, "{name: wN, command: [work]}")
	cases := map[string]struct{ reason, spec, want string }{
		"Copies": {
			reason: "Each container of the application's image repeats its variables.",
			spec:   "{image: x, env: [{name: A, value: " + value(600<<10) + "}], initContainers: " + repeated(5, "{name: iN, command: [a]}") + "}",
			want:   "env: with what initContainers and sidecars repeat, the variables of a pod have 3600 KiB, and may have 1024: put large values into a ConfigMap, and mount it by volumes",
		},
		"Workers": {
			reason: "So does each workload.", spec: "{image: x, env: [{name: A, value: " + value(600<<10) + "}], workers: " + workers + "}",
			want: "the claim composes more than 3 MiB of objects: put large values into a ConfigMap or a Secret of your own, and name it in the claim",
		},
		"Fits": {reason: "What is of use fits.", spec: "{image: x, env: [{name: A, value: " + value(100<<10) + "}], workers: " + workers + "}"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := functionstest.Refused(t, functionstest.WebApp(tc.spec)); got != tc.want {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

func TestRefusesWhileRunning(t *testing.T) {
	c := functionstest.New(t, functionstest.BigApp)
	got := functionstest.RefusedWhileRunning(t, c, func() {
		c.Edit([]any{map[string]any{"name": "clean", "schedule": "61 * * * *"}}, "cronJobs")
	})
	if want := `cronJobs clean: schedule "61 * * * *" is no cron expression: end of range (61) above maximum (59): 61`; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
	c.Edit([]any{}, "cronJobs")
	c.Settle()
	if status, _ := c.Condition("Accepted"); status != "True" || c.Phase() != "Running" {
		t.Errorf("A claim that was put right is accepted again: got %s, %s", status, c.Phase())
	}
}

// TestUnreadable: an observed object that cannot be read is an internal error and not a refusal of
// the claim, and nothing is changed.
func TestUnreadable(t *testing.T) {
	c := functionstest.New(t, functionstest.SmallApp)
	c.Settle()
	functionstest.Set(c.Observed["web"], "one", "status", "availableReplicas")
	rsp := c.Run()
	want := "cannot read the observed Deployment of component web: status.availableReplicas: must be a whole number, is a string"
	if r := rsp.GetResults(); len(r) != 1 || r[0].GetMessage() != want || r[0].GetSeverity() != fnv1.Severity_SEVERITY_FATAL || r[0].GetReason() != "InternalError" {
		t.Errorf("want a fatal result %q, got %v", want, r)
	}
}
