package build

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
)

var shop = Scope{Claim: "shop-backend", Namespace: "team", Platform: "shop"}

func TestScope(t *testing.T) {
	want := metav1.ObjectMeta{
		Name: "shop-backend-web", Namespace: "team",
		Labels: map[string]string{
			"app.kubernetes.io/name": "webapp", "app.kubernetes.io/instance": "shop-backend", "app.kubernetes.io/component": "web",
			"app.kubernetes.io/part-of": "shop", "app.kubernetes.io/managed-by": "storeplane", "platform": "shop",
		},
	}
	if diff := cmp.Diff(want, shop.Meta("web", "webapp")); diff != "" {
		t.Errorf("Meta(): -want, +got:\n%s", diff)
	}
	for k, v := range shop.Selector("web") {
		if want.Labels[k] != v {
			t.Errorf("The selector %s=%s must be among the labels, or a Deployment is refused", k, v)
		}
	}
	if len(shop.Selector("web")) != 2 {
		t.Errorf("A selector can never change, so nothing that can is in it: got %v", shop.Selector("web"))
	}

	// Each call returns its own map of labels.
	m := shop.Meta("web", "webapp")
	m.Labels["extra"] = "x"
	if _, shared := shop.Labels("web", "webapp")["extra"]; shared {
		t.Errorf("labels are shared between objects")
	}
}

func TestWith(t *testing.T) {
	labels := map[string]string{"a": "1", "b": "2"}
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "3", "c": "4"}, With(labels, map[string]string{"b": "3", "c": "4"})); diff != "" {
		t.Errorf("With(): -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "2"}, labels); diff != "" {
		t.Errorf("With() changed its argument: -want, +got:\n%s", diff)
	}
}

func TestDigest(t *testing.T) {
	if d := Digest("a"); len(d) != 10 || len(validation.IsDNS1123Label("x-"+d)) > 0 {
		t.Errorf("want ten characters that fit a name, got %q", d)
	}
	seen := map[string][]string{}
	for _, texts := range [][]string{{}, {""}, {"", ""}, {"a"}, {"b"}, {"ab"}, {"a", "b"}, {"b", "a"}, {"a", ""}, {"", "a"}} {
		d := Digest(texts...)
		if other, ok := seen[d]; ok {
			t.Errorf("%q and %q have the same digest", texts, other)
		}
		seen[d] = texts
	}
}

func TestParseSchedule(t *testing.T) {
	cases := map[string]struct {
		reason   string
		schedule string
		zone     string
		want     string
	}{
		"Daily":     {reason: "Five fields are fine.", schedule: "0 2 * * *"},
		"Macro":     {reason: "A macro is fine.", schedule: "@daily"},
		"Steps":     {reason: "Steps, ranges and names are fine.", schedule: "*/5 1-3,7 * jan-MAR mon"},
		"Zone":      {reason: "A zone by its name is fine.", schedule: "0 2 * * *", zone: "Europe/Paris"},
		"UTC":       {reason: "So is this one.", schedule: "0 2 * * *", zone: "Etc/UTC"},
		"Minute61":  {reason: "There is no minute 61.", schedule: "61 * * * *", want: `schedule "61 * * * *" is no cron expression: end of range (61) above maximum (59): 61`},
		"FourOnly":  {reason: "Four fields are one too few.", schedule: "0 2 * *", want: `schedule "0 2 * *" is no cron expression: expected exactly 5 fields, found 4: [0 2 * *]`},
		"Empty":     {reason: "Nothing is no schedule.", schedule: "", want: `schedule "" is no cron expression: empty spec string`},
		"Words":     {reason: "Words are none.", schedule: "every day at two o'clock", want: `schedule "every day at two o'clock" is no cron expression: failed to parse int from every: strconv.Atoi: parsing "every": invalid syntax`},
		"NoZone":    {reason: "There is no such zone.", schedule: "0 2 * * *", zone: "Europe/Atlantis", want: `timeZone "Europe/Atlantis" is not known: use a name like Europe/Paris`},
		"Path":      {reason: "A zone is not a file.", schedule: "0 2 * * *", zone: "../../etc/passwd", want: `timeZone "../../etc/passwd" is not known: use a name like Europe/Paris`},
		"Local":     {reason: "The API server refuses Local: it would be the controller manager's own.", schedule: "0 2 * * *", zone: "Local", want: `timeZone "Local" is not known: use a name like Europe/Paris`},
		"LocalCase": {reason: "In any case.", schedule: "0 2 * * *", zone: "local", want: `timeZone "local" is not known: use a name like Europe/Paris`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if _, _, err := ParseSchedule(tc.schedule, tc.zone); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("%s\nParseSchedule(...): want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

// TestParseScheduleZoneInside: a time zone inside the schedule is refused without a panic. The API
// server refuses it too, and the parser panics on some.
func TestParseScheduleZoneInside(t *testing.T) {
	for _, s := range []string{"TZ=Europe/Paris 0 2 * * *", "CRON_TZ=UTC 0 2 * * *", "TZ=0", "CRON_TZ="} {
		func() {
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("ParseSchedule(%q) panicked: %v", s, p)
				}
			}()
			if _, _, err := ParseSchedule(s, ""); err == nil {
				t.Errorf("ParseSchedule(%q): want an error, since a CronJob with it is refused", s)
			}
		}()
	}
}

func TestRestricted(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}

	for name, sc := range map[string]*corev1.PodSecurityContext{"ImagesUser": PodSecurity(0, 0), "OwnUser": PodSecurity(999, 998)} {
		t.Run(name, func(t *testing.T) {
			spec := &corev1.PodSpec{
				SecurityContext: sc,
				Containers:      []corev1.Container{{Name: "app", SecurityContext: ContainerSecurity()}},
				Volumes:         []corev1.Volume{Scratch("tmp", "1Gi"), Memory("shm")},
			}
			r := policy.AggregateCheckResults(evaluator.EvaluatePod(level, &metav1.ObjectMeta{}, spec))
			if !r.Allowed {
				t.Errorf("not restricted: %s", r.ForbiddenDetail())
			}
		})
	}
	if ro := ContainerSecurity().ReadOnlyRootFilesystem; ro == nil || !*ro {
		t.Errorf("the root file system must be read-only")
	}
	if sc := PodSecurity(999, 998); *sc.RunAsUser != 999 || *sc.RunAsGroup != 998 || *sc.FSGroup != 998 {
		t.Errorf("want uid 999, gid and fsGroup 998, got %v", sc)
	}
	if sc := PodSecurity(0, 0); sc.RunAsUser != nil || sc.RunAsGroup != nil || sc.FSGroup != nil {
		t.Errorf("a uid of 0 leaves the user to the image, it does not run as root: got %v", sc)
	}
}

func TestNetworkPolicy(t *testing.T) {
	np := NetworkPolicy(shop, "web", "webapp",
		Admit{From: []networkingv1.NetworkPolicyPeer{Pods(nil), Namespace("")}, Ports: []int32{8080}},
		Admit{Ports: []int32{9090}})
	if diff := cmp.Diff(shop.Selector("web"), np.Spec.PodSelector.MatchLabels); diff != "" {
		t.Errorf("It selects the component's pods: -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]networkingv1.PolicyType{networkingv1.PolicyTypeIngress}, np.Spec.PolicyTypes); diff != "" {
		t.Errorf("Even without a way in it closes: -want, +got:\n%s", diff)
	}
	if len(np.Spec.Ingress) != 2 || len(np.Spec.Ingress[0].From) != 2 || len(np.Spec.Ingress[1].From) != 0 {
		t.Fatalf("want two ways in, one of two peers, one of all: got %v", np.Spec.Ingress)
	}
	// A peer without a selector would be refused or admit no client.
	for _, p := range np.Spec.Ingress[0].From {
		if p.PodSelector == nil && p.NamespaceSelector == nil {
			t.Errorf("a peer without a selector: %v", p)
		}
	}
	if diff := cmp.Diff(map[string]string{"kubernetes.io/metadata.name": "ingress-nginx"}, Namespace("ingress-nginx").NamespaceSelector.MatchLabels); diff != "" {
		t.Errorf("Namespace(): -want, +got:\n%s", diff)
	}
}

func TestIngress(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "shop-ingress", Namespace: "team"}
	type want struct {
		Class, Secret, Issuer, URL string
		Hosts                      []string
	}
	cases := map[string]struct {
		reason string
		in     appsv1.Ingress
		class  string
		want   want
	}{
		"Plain":       {reason: "Without any class the cluster's default one is used.", in: appsv1.Ingress{Host: "shop.example.com"}, want: want{URL: "http://shop.example.com"}},
		"Default":     {reason: "The installation's class stands in.", in: appsv1.Ingress{Host: "shop.example.com"}, class: "nginx", want: want{Class: "nginx", URL: "http://shop.example.com"}},
		"OwnClass":    {reason: "The claim's own wins.", in: appsv1.Ingress{Host: "shop.example.com", ClassName: "own"}, class: "nginx", want: want{Class: "own", URL: "http://shop.example.com"}},
		"OwnSecret":   {reason: "A certificate of the claim's own.", in: appsv1.Ingress{Host: "shop.example.com", TLS: &appsv1.IngressTLS{SecretName: "cert"}}, want: want{Secret: "cert", Hosts: []string{"shop.example.com"}, URL: "https://shop.example.com"}},
		"Issuer":      {reason: "cert-manager issues one and keeps it where it is told.", in: appsv1.Ingress{Host: "shop.example.com", TLS: &appsv1.IngressTLS{Issuer: "le", SecretName: "cert"}}, want: want{Secret: "cert", Issuer: "le", Hosts: []string{"shop.example.com"}, URL: "https://shop.example.com"}},
		"IssuerAlone": {reason: "Or in a Secret of its own.", in: appsv1.Ingress{Host: "shop.example.com", TLS: &appsv1.IngressTLS{Issuer: "le"}}, want: want{Secret: "shop-tls", Issuer: "le", Hosts: []string{"shop.example.com"}, URL: "https://shop.example.com"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ing := Ingress(Scope{Claim: "shop"}, meta, tc.in, tc.class, "shop-frontend-web", 8080)
			got := want{Issuer: ing.Annotations["cert-manager.io/cluster-issuer"], URL: IngressURL(tc.in)}
			if ing.Spec.IngressClassName != nil {
				got.Class = *ing.Spec.IngressClassName
			}
			for _, tls := range ing.Spec.TLS {
				got.Secret, got.Hosts = tls.SecretName, tls.Hosts
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\nIngress(): -want, +got:\n%s", tc.reason, diff)
			}
			backend := ing.Spec.Rules[0].HTTP.Paths[0].Backend.Service
			if ing.Spec.Rules[0].Host != "shop.example.com" || backend.Name != "shop-frontend-web" || backend.Port.Number != 8080 {
				t.Errorf("%s\nIngress(): got rules %v", tc.reason, ing.Spec.Rules)
			}
		})
	}
}

func TestSpread(t *testing.T) {
	for _, c := range Spread(shop, "web") {
		if diff := cmp.Diff(shop.Selector("web"), c.LabelSelector.MatchLabels); diff != "" {
			t.Errorf("Spread(): -want, +got:\n%s", diff)
		}
		if c.WhenUnsatisfiable != corev1.ScheduleAnyway {
			t.Errorf("Spread() must not insist: a cluster of one node still runs all pods")
		}
	}
	terms := AntiAffinity(shop, "web").PodAntiAffinity
	if len(terms.RequiredDuringSchedulingIgnoredDuringExecution) != 0 || len(terms.PreferredDuringSchedulingIgnoredDuringExecution) != 1 {
		t.Errorf("AntiAffinity() asks and does not insist: got %v", terms)
	}
	pdb := DisruptionBudget(shop, "web", "webapp")
	if diff := cmp.Diff(shop.Selector("web"), pdb.Spec.Selector.MatchLabels); diff != "" {
		t.Errorf("DisruptionBudget(): -want, +got:\n%s", diff)
	}
	if pdb.Spec.MinAvailable != nil || pdb.Spec.MaxUnavailable.IntValue() != 1 {
		t.Errorf("A budget of one pod can always be drained, also of one: got %v", pdb.Spec)
	}
}

func TestSecretAndConfigMap(t *testing.T) {
	meta := shop.Meta("web", "webapp")
	s := Secret(meta, map[string]string{"k": "v\n"})
	if diff := cmp.Diff(map[string][]byte{"k": []byte("v\n")}, s.Data); diff != "" || len(s.StringData) != 0 {
		t.Errorf("A Secret has data, which is read back, never stringData: -want, +got:\n%s", diff)
	}
	cm := ConfigMap(meta, map[string]string{"k": "v"})
	if cm.Data["k"] != "v" || cm.Kind != "ConfigMap" || s.Kind != "Secret" || s.APIVersion != "v1" {
		t.Errorf("got %v, %v", cm, s)
	}
	sa := ServiceAccount(shop, "web", "webapp")
	if sa.AutomountServiceAccountToken == nil || *sa.AutomountServiceAccountToken {
		t.Errorf("No token is mounted that was not asked for")
	}
	for _, text := range []string{shop.Name("web"), strings.Repeat("a", 40) + "-web"} {
		if errs := validation.IsDNS1123Label(text); len(errs) > 0 {
			t.Errorf("%s: %v", text, errs)
		}
	}
}

func TestVersion(t *testing.T) {
	cases := map[string]struct {
		reason string
		image  string
		want   string
	}{
		"Tag":     {reason: "The tag is the version.", image: "registry.example.com/shop/backend:v1.2.3", want: "v1.2.3"},
		"Digest":  {reason: "Also beside a digest.", image: "shop:1@sha256:0123", want: "1"},
		"Only":    {reason: "A digest alone is none.", image: "shop@sha256:0123", want: ""},
		"None":    {reason: "Neither is no tag.", image: "registry.example.com/shop", want: ""},
		"Port":    {reason: "A registry's port is none.", image: "registry.example.com:5000/shop", want: ""},
		"TagPort": {reason: "The tag is after the last slash.", image: "10.88.0.1:5000/storeplane/shop:v1", want: "v1"},
		"Long":    {reason: "What no label can hold is left out.", image: "shop:" + strings.Repeat("a", 64), want: ""},
		"Odd":     {reason: "So is what no label may begin with.", image: "shop:_1", want: ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Version(tc.image); got != tc.want {
				t.Errorf("%s\nVersion(%q): want %q, got %q", tc.reason, tc.image, tc.want, got)
			}
		})
	}
}
