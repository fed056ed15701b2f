package functions_test

import (
	"encoding/base64"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/storeplane/storeplane/functions"
	"github.com/storeplane/storeplane/functions/functionstest"
)

// claims returns claims of every kind, from the smallest to one that sets every field.
func claims() map[string]string {
	out := map[string]string{
		"WebAppSmall": functionstest.SmallApp, "WebAppMigrated": functionstest.MigratedApp, "WebAppBig": functionstest.BigApp, "WebAppFull": functionstest.FullApp,
		"DatabaseClusterOne": functionstest.DatabaseCluster(functionstest.OneServer), "DatabaseClusterProduction": functionstest.DatabaseCluster(functionstest.Production), "DatabaseClusterBig": functionstest.DatabaseCluster(functionstest.BigCluster),
		"EcommercePlatformSmall": functionstest.EcommercePlatform(functionstest.SmallShop), "EcommercePlatformBig": functionstest.EcommercePlatform(functionstest.BigShop),
		"EcommercePlatformStaging": functionstest.EcommercePlatform("{environment: staging, frontend: {image: f}, backend: {image: b}}"),
	}
	return out
}

// longest are the longest names that are allowed for each kind.
var longest = map[string]string{
	"WebApp":            strings.Repeat("w", 40),
	"DatabaseCluster":   strings.Repeat("d", 40),
	"EcommercePlatform": strings.Repeat("e", 31),
}

// TestNamesFit: with the longest name that its definition allows, the objects of every claim have
// names and labels that the API server accepts, and so have the pods and objects that controllers
// create for them.
func TestNamesFit(t *testing.T) {
	web := strings.Replace(functionstest.BigApp, "name: hello,", "name: "+longest["WebApp"]+",", 1)
	// If the WebApp's name has 40 characters, a CronJob's may have 6.
	web = strings.Replace(web, "name: clean", "name: clean6", 1)
	web += "  workers: [{name: " + strings.Repeat("w", 15) + ", args: [work], autoscaling: {maxReplicas: 2}}]\n"
	shop := strings.Replace(functionstest.EcommercePlatform(functionstest.BigShop), "name: store,", "name: "+longest["EcommercePlatform"]+",", 1)
	shop = strings.Replace(shop, "name: report", "name: report7", 1)
	cases := map[string]string{
		"WebApp":            web,
		"DatabaseCluster":   strings.Replace(functionstest.DatabaseCluster("{size: 10, version: '17', environment: production, users: [{name: "+strings.Repeat("u", 63)+"}, {name: _a__b}]}"), "name: orders,", "name: "+longest["DatabaseCluster"]+",", 1),
		"EcommercePlatform": shop,
	}
	for kind, claim := range cases {
		t.Run(kind, func(t *testing.T) {
			for _, o := range functionstest.Expand(t, claim, "") {
				name := functionstest.Get(o.Object, "metadata", "name").GetStringValue()
				check := validation.IsDNS1123Label
				limit := 63
				switch o.Kind() {
				case "Secret":
					check, limit = validation.IsDNS1123Subdomain, 253
				case "Service":
					check = validation.IsDNS1035Label
				case "StatefulSet", "CronJob":
					// Controllers append a revision's hash or a run's time to these names, and the
					// result may have 63 characters.
					limit = 52
				case "WebApp", "DatabaseCluster":
					limit = len(longest[o.Kind()])
				}
				if errs := check(name); len(errs) > 0 {
					t.Errorf("%s: %v", o.Name(), errs)
				}
				if len(name) > limit {
					t.Errorf("%s has %d characters, more than %d", o.Name(), len(name), limit)
				}
				for _, m := range labelsOf(o.Object) {
					for k, v := range m {
						if errs := slices.Concat(validation.IsQualifiedName(k), validation.IsValidLabelValue(v.GetStringValue())); len(errs) > 0 {
							t.Errorf("%s: label %s=%s: %v", o.Name(), k, v.GetStringValue(), errs)
						}
					}
				}
				for _, p := range o.Pods(t) {
					checkPodNames(t, o, p)
				}
			}
		})
	}
}

// labelsOf returns the labels and selectors of an object, its pod template and its volume claims.
func labelsOf(obj *structpb.Struct) []map[string]*structpb.Value {
	var out []map[string]*structpb.Value
	var walk func(v *structpb.Value)
	walk = func(v *structpb.Value) {
		for k, f := range v.GetStructValue().GetFields() {
			if k == "labels" || k == "matchLabels" || k == "selector" && f.GetStructValue().GetFields()["matchLabels"] == nil {
				out = append(out, f.GetStructValue().GetFields())
			}
			walk(f)
		}
		for _, e := range v.GetListValue().GetValues() {
			walk(e)
		}
	}
	walk(structpb.NewStructValue(obj))
	return out
}

func checkPodNames(t *testing.T, o functionstest.Composed, p functionstest.Pod) {
	t.Helper()
	for _, v := range p.Spec.Volumes {
		if errs := validation.IsDNS1123Label(v.Name); len(errs) > 0 {
			t.Errorf("%s: volume %s: %v", o.Name(), v.Name, errs)
		}
	}
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		if errs := validation.IsDNS1123Label(c.Name); len(errs) > 0 {
			t.Errorf("%s: container %s: %v", o.Name(), c.Name, errs)
		}
		for _, port := range c.Ports {
			if errs := validation.IsValidPortName(port.Name); len(errs) > 0 {
				t.Errorf("%s: port %s: %v", o.Name(), port.Name, errs)
			}
		}
	}
	if o.Kind() == "StatefulSet" {
		// The name of the tenth pod is also its host name.
		if errs := validation.IsDNS1123Label(functionstest.Get(o.Object, "metadata", "name").GetStringValue() + "-9"); len(errs) > 0 {
			t.Errorf("%s: its pods: %v", o.Name(), errs)
		}
	}
}

// TestRestrictedPods: every pod passes the restricted pod security standard with a read-only root
// file system, and mounts no token that it does not need.
func TestRestrictedPods(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for name, claim := range claims() {
		t.Run(name, func(t *testing.T) {
			n := 0
			for _, o := range functionstest.Expand(t, claim, "") {
				for _, p := range o.Pods(t) {
					n++
					if r := policy.AggregateCheckResults(evaluator.EvaluatePod(level, &metav1.ObjectMeta{Labels: p.Labels}, &p.Spec)); !r.Allowed {
						t.Errorf("%s is not restricted: %s: %s", o.Name(), r.ForbiddenReason(), r.ForbiddenDetail())
					}
					for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
						if ro := c.SecurityContext.ReadOnlyRootFilesystem; ro == nil || !*ro {
							t.Errorf("%s: the root of container %s can be written to", o.Name(), c.Name)
						}
						if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
							t.Errorf("%s: container %s needs requests and a limit of memory: %v", o.Name(), c.Name, c.Resources)
						}
					}
					if mounted := p.Spec.AutomountServiceAccountToken; mounted == nil || *mounted {
						t.Errorf("%s: all containers have the token, got automount %v", o.Name(), mounted)
					}
					var tokens []string
					for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
						if slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "token" }) {
							tokens = append(tokens, c.Name)
						}
					}
					want := []string(nil)
					if strings.HasSuffix(o.Name(), "-postgresql") {
						want = []string{"instance", "postgresql"}
					}
					if !slices.Equal(tokens, want) {
						t.Errorf("%s: %v have a token, want %v: only Patroni and the manager talk to the API server", o.Name(), tokens, want)
					}
					if p.Spec.EnableServiceLinks == nil || *p.Spec.EnableServiceLinks {
						t.Errorf("%s: no environment of other people's Services", o.Name())
					}
				}
			}
			if n == 0 {
				t.Errorf("there are no pods")
			}
		})
	}
}

// TestDisk: no pod can fill the disk of its node, and each requests the space that it uses there.
func TestDisk(t *testing.T) {
	cases := map[string]struct{ claim, tmp string }{
		"WebApp":          {claim: functionstest.SmallApp, tmp: "1Gi"},
		"WebAppLimited":   {claim: functionstest.SmallApp + "  resources: {requests: {ephemeral-storage: 1Gi}, limits: {ephemeral-storage: 3Gi}}\n", tmp: "3Gi"},
		"DatabaseCluster": {claim: functionstest.DatabaseCluster(functionstest.Production), tmp: "1Gi"},
		"Shop":            {claim: functionstest.EcommercePlatform(functionstest.SmallShop)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, o := range functionstest.Expand(t, tc.claim, "") {
				for _, p := range o.Pods(t) {
					for _, v := range p.Spec.Volumes {
						switch d := v.EmptyDir; {
						case d == nil || d.Medium == corev1.StorageMediumMemory:
						case d.SizeLimit == nil:
							t.Errorf("%s: volume %s has no limit", o.Name(), v.Name)
						case v.Name == "tmp" && tc.tmp != "" && d.SizeLimit.String() != tc.tmp:
							t.Errorf("%s: /tmp is limited to %s, want %s", o.Name(), d.SizeLimit, tc.tmp)
						}
					}
					for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
						if c.Resources.Requests.StorageEphemeral().IsZero() {
							t.Errorf("%s: container %s asks for no storage: %v", o.Name(), c.Name, c.Resources)
						}
					}
				}
			}
		})
	}
}

// TestLabels: all objects of a claim can be found by one label, and their labels describe them.
func TestLabels(t *testing.T) {
	for name, claim := range claims() {
		t.Run(name, func(t *testing.T) {
			platform := functionstest.Get(functionstest.Parse(t, claim), "metadata", "name").GetStringValue()
			for _, o := range functionstest.Expand(t, claim, "") {
				_, claimName, _ := strings.Cut(o.Claim, " ")
				check := func(what string, labels map[string]string) {
					t.Helper()
					for _, k := range []string{"app.kubernetes.io/name", "app.kubernetes.io/component"} {
						if labels[k] == "" {
							t.Errorf("%s of %s has no label %s", what, o.Name(), k)
						}
					}
					for k, want := range map[string]string{
						"platform": platform, "app.kubernetes.io/part-of": platform, "app.kubernetes.io/instance": claimName, "app.kubernetes.io/managed-by": "storeplane",
					} {
						if labels[k] != want {
							t.Errorf("%s of %s has label %s=%s, want %s", what, o.Name(), k, labels[k], want)
						}
					}
				}
				check("the object", functionstest.As[metav1.PartialObjectMetadata](t, o.Object).Labels)
				for _, p := range o.Pods(t) {
					check("the pod template", p.Labels)
				}
				if got := functionstest.Get(o.Object, "metadata", "namespace").GetStringValue(); got != "team" {
					t.Errorf("%s is in namespace %q, not in its claim's", o.Name(), got)
				}
				if got := functionstest.Get(o.Object, "metadata", "name").GetStringValue(); !strings.HasPrefix(got, claimName+"-") {
					t.Errorf("%s is not named after its claim %s", o.Name(), claimName)
				}
			}
		})
	}
}

// TestPasswordsStayInSecrets: secret values are only in Secrets and in nothing else that the
// function returns in any round, neither in plain text nor encoded.
func TestPasswordsStayInSecrets(t *testing.T) {
	for name, claim := range claims() {
		t.Run(name, func(t *testing.T) {
			c := functionstest.New(t, claim)
			c.Serve("podmonitor")
			for range 6 {
				rsp := c.Reconcile()
				applied := map[string]*structpb.Struct{}
				for n, r := range rsp.GetDesired().GetResources() {
					applied[n] = r.GetResource()
				}
				secret := functionstest.SecretValues(t, applied)
				checkNotSaid(t, rsp, secret)
				if strings.HasPrefix(name, "WebApp") != (len(secret) == 0) {
					t.Errorf("want passwords of databases and caches, got %d", len(secret))
				}
				c.Heal()
			}
		})
	}
}

// checkNotSaid checks that a response contains secret values only in the data of Secrets. Names,
// labels and annotations of Secrets are checked too, since more users can read those.
func checkNotSaid(t *testing.T, rsp *fnv1.RunFunctionResponse, secret map[string]string) {
	t.Helper()
	rest := proto.CloneOf(rsp)
	for n, r := range rest.GetDesired().GetResources() {
		if functionstest.Get(r.GetResource(), "kind").GetStringValue() == "Secret" {
			delete(rest.GetDesired().GetResources()[n].GetResource().GetFields(), "data")
		}
	}
	b, err := proto.Marshal(rest)
	if err != nil {
		t.Fatal(err)
	}
	for from, value := range secret {
		for _, form := range []string{value, base64.StdEncoding.EncodeToString([]byte(value)), base64.RawStdEncoding.EncodeToString([]byte(value)), url.QueryEscape(value)} {
			if strings.Contains(string(b), form) {
				t.Errorf("the value of %s is also outside of Secrets", from)
			}
		}
	}
}

// TestBroughtSecretsStay: values of the users' own Secrets appear only in the Secrets that need
// them, and in no refusal.
func TestBroughtSecretsStay(t *testing.T) {
	c := functionstest.New(t, functionstest.DatabaseCluster("{size: 1, version: '17', tls: {secretName: certs}, users: [{name: reader, passwordSecretRef: {name: mine}}]}"))
	good := functionstest.CertificateSecret(t, nil)
	mine := functionstest.Secret(t, "mine", map[string]string{"password": "a very long password"})
	broken := functionstest.CertificateSecret(t, func(v map[string]string) { v["ca.crt"] = v["tls.key"] })
	for _, secrets := range [][]*structpb.Struct{nil, {good}, {mine}, {broken, mine}, {good, mine}, {broken, mine}} {
		c.Others = secrets
		secret := map[string]string{}
		for i, s := range secrets {
			maps.Copy(secret, functionstest.SecretValues(t, map[string]*structpb.Struct{strconv.Itoa(i): s}))
		}
		checkNotSaid(t, c.Reconcile(), secret)
	}
}

// TestReview: a review prints placeholders for generated values, and the same bytes each time.
func TestReview(t *testing.T) {
	for name, claim := range claims() {
		t.Run(name, func(t *testing.T) {
			one, two := functionstest.New(t, claim, functions.WithReview()), functionstest.New(t, claim, functions.WithReview())
			for range 5 {
				a, b := one.Reconcile(), two.Reconcile()
				x, err := proto.MarshalOptions{Deterministic: true}.Marshal(a)
				if err != nil {
					t.Fatal(err)
				}
				y, err := proto.MarshalOptions{Deterministic: true}.Marshal(b)
				if err != nil {
					t.Fatal(err)
				}
				if string(x) != string(y) {
					t.Fatalf("two reviews of one claim differ")
				}
				for n, r := range a.GetDesired().GetResources() {
					if functionstest.Get(r.GetResource(), "kind").GetStringValue() != "Secret" {
						continue
					}
					for k, v := range functionstest.Get(r.GetResource(), "data").GetStructValue().GetFields() {
						got, _ := base64.StdEncoding.DecodeString(v.GetStringValue())
						if drawn := k != "ca.crt" && k != "tls.crt" && slices.Contains(functionstest.PublicKeys, k); !drawn && !strings.Contains(string(got), "generated-at-first-apply") {
							t.Errorf("%s of %s: want a placeholder, got %q", k, n, got)
						}
					}
				}
				one.Heal()
				two.Heal()
			}
		})
	}
}

// TestSettledChangesNothing: once a claim has settled, every further pass applies the same bytes,
// also with real passwords.
func TestSettledChangesNothing(t *testing.T) {
	for name, claim := range claims() {
		t.Run(name, func(t *testing.T) {
			c := functionstest.New(t, claim)
			c.Settle()
			first := c.Reconcile()
			for range 5 {
				again := c.Reconcile()
				x, err := proto.MarshalOptions{Deterministic: true}.Marshal(first)
				if err != nil {
					t.Fatal(err)
				}
				y, err := proto.MarshalOptions{Deterministic: true}.Marshal(again)
				if err != nil {
					t.Fatal(err)
				}
				if string(x) != string(y) {
					t.Fatalf("the same input, another output:\n%s", cmp.Diff(first.String(), again.String()))
				}
			}
		})
	}
}

// TestRequestIsLeftAlone: the function does not modify its request.
func TestRequestIsLeftAlone(t *testing.T) {
	for name, claim := range claims() {
		t.Run(name, func(t *testing.T) {
			c := functionstest.New(t, claim)
			for range 4 {
				req := c.Request()
				before := proto.CloneOf(req)
				if _, err := c.Function.RunFunction(t.Context(), req); err != nil {
					t.Fatal(err)
				}
				if !proto.Equal(before, req) {
					t.Fatalf("the request was changed")
				}
				c.Reconcile()
				c.Heal()
			}
		})
	}
}

// TestMessages: in every round the message of a claim that is not ready states on one line what it
// waits for.
func TestMessages(t *testing.T) {
	for name, claim := range claims() {
		t.Run(name, func(t *testing.T) {
			c := functionstest.New(t, claim)
			c.Reconcile()
			for round := range 8 {
				c.Reconcile()
				c.Reconcile() // A pass that adds objects does not update the status; the next one does.
				if (c.Phase() == "Running") != (c.Message() == "") {
					t.Errorf("round %d: phase %s, message %q", round, c.Phase(), c.Message())
				}
				if strings.Contains(c.Message(), "\n") {
					t.Errorf("round %d: want one line, got %q", round, c.Message())
				}
				for _, v := range functionstest.Get(c.Claim, "status", "components").GetListValue().GetValues() {
					f := v.GetStructValue().GetFields()
					if f["ready"].GetBoolValue() != (f["message"].GetStringValue() == "") {
						t.Errorf("round %d: component %v: what is not ready says why", round, v)
					}
				}
				c.Heal()
			}
			if c.Phase() != "Running" {
				t.Errorf("want Running in the end, got %s: %s", c.Phase(), c.Message())
			}
		})
	}
}
