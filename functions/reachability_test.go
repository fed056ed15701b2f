package functions_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	k8sappsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/storeplane/storeplane/functions/functionstest"
	"github.com/storeplane/storeplane/internal/build"
	"github.com/storeplane/storeplane/internal/label"
)

// TestSelectors: selectors of pods match the pods that they are meant for and no others, and every
// object that is referred to exists.
func TestSelectors(t *testing.T) {
	for name, claim := range claims() {
		t.Run(name, func(t *testing.T) {
			all := functionstest.Expand(t, claim, "")
			templates := map[string]map[string]string{} // labels by object
			specs := map[string]corev1.PodSpec{}
			exists := map[string]bool{}
			seen := map[string]string{}
			for _, o := range all {
				exists[o.Name()] = true
				if o.Kind() == "AppConfig" {
					// The provider creates the bundle.
					p := functionstest.Get(o.Object, "spec", "forProvider").GetStructValue()
					exists["ConfigMap "+functionstest.BundleName(functionstest.Get(p, "application").GetStringValue(), functionstest.Get(p, "config").GetStructValue().AsMap())] = true
				}
				if other, ok := seen[o.Name()]; ok {
					t.Errorf("%s is composed by %s and by %s", o.Name(), other, o.Claim)
				}
				seen[o.Name()] = o.Claim
				for _, p := range o.Pods(t) {
					templates[o.Name()], specs[o.Name()] = labelsOfPods(p), p.Spec
				}
			}
			// Patroni sets the label of the role while it runs.
			selected := func(labels map[string]string) []string {
				var out []string
				for n, l := range templates {
					match := true
					for k, v := range labels {
						match = match && (l[k] == v || k == "storeplane.example.com/role")
					}
					if match {
						out = append(out, n)
					}
				}
				slices.Sort(out)
				return out
			}
			one := func(o functionstest.Composed, labels map[string]string) string {
				t.Helper()
				s := selected(labels)
				if len(s) != 1 {
					t.Errorf("%s must select the pods of one object, selects those of %v by %v", o.Name(), s, labels)
					return ""
				}
				return s[0]
			}
			port := func(of string, number int32) bool {
				return slices.ContainsFunc(slices.Concat(specs[of].InitContainers, specs[of].Containers), func(c corev1.Container) bool {
					return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.ContainerPort == number })
				})
			}

			protected := map[string]bool{}
			for _, o := range all {
				switch o.Kind() {
				case "Service":
					s := functionstest.As[corev1.Service](t, o.Object)
					of := one(o, s.Spec.Selector)
					for _, p := range s.Spec.Ports {
						if !slices.ContainsFunc(specs[of].Containers, func(c corev1.Container) bool {
							return slices.ContainsFunc(c.Ports, func(cp corev1.ContainerPort) bool {
								return p.TargetPort == intstr.FromString(cp.Name) && cp.ContainerPort == p.Port
							})
						}) {
							t.Errorf("%s leads to port %v, which %s does not have", o.Name(), p, of)
						}
					}
				case "NetworkPolicy":
					np := functionstest.As[networkingv1.NetworkPolicy](t, o.Object)
					var closed []string
					for _, n := range slices.Sorted(maps.Keys(templates)) {
						if matches(t, &np.Spec.PodSelector, templates[n]) {
							closed = append(closed, n)
						}
					}
					if len(closed) == 0 {
						t.Errorf("%s selects no pod by %v", o.Name(), np.Spec.PodSelector)
						continue
					}
					// The Jobs of one component share a policy, and all Jobs share one that allows
					// no connections.
					of, ways := closed[0], len(np.Spec.Ingress)+len(np.Spec.Egress)
					for _, c := range closed {
						if protected[c] = true; ways > 0 && templates[c][label.Component] != templates[of][label.Component] {
							t.Errorf("%s selects those of %v, which are of several components", o.Name(), closed)
						}
					}
					for _, rule := range np.Spec.Egress {
						for _, to := range rule.To {
							if to.PodSelector == nil || len(to.PodSelector.MatchLabels) == 0 {
								continue
							}
							reached := one(o, to.PodSelector.MatchLabels)
							for _, p := range rule.Ports {
								if !port(reached, p.Port.IntVal) {
									t.Errorf("%s lets through to port %v, which %s does not have", o.Name(), p.Port, reached)
								}
							}
						}
					}
					for _, rule := range np.Spec.Ingress {
						if len(rule.Ports) == 0 || len(rule.From) == 0 {
							t.Errorf("%s: a way in without ports or peers is open to all: %v", o.Name(), rule)
						}
						for _, p := range rule.Ports {
							if !port(of, p.Port.IntVal) {
								t.Errorf("%s admits to port %v, which %s does not have", o.Name(), p.Port, of)
							}
						}
						for _, from := range rule.From {
							if from.PodSelector == nil && from.NamespaceSelector == nil {
								t.Errorf("%s: a peer without a selector", o.Name())
							}
							// The pods of a claim's clients are not part of the claim.
							if from.PodSelector != nil && len(from.PodSelector.MatchLabels) > 0 && from.PodSelector.MatchLabels["app"] == "" && len(selected(from.PodSelector.MatchLabels)) == 0 {
								t.Errorf("%s admits %v, which no pod is", o.Name(), from.PodSelector.MatchLabels)
							}
						}
					}
				case "PodDisruptionBudget":
					one(o, functionstest.As[policyv1.PodDisruptionBudget](t, o.Object).Spec.Selector.MatchLabels)
				case "Deployment":
					if got := one(o, functionstest.As[k8sappsv1.Deployment](t, o.Object).Spec.Selector.MatchLabels); got != o.Name() {
						t.Errorf("%s selects %s", o.Name(), got)
					}
				case "StatefulSet":
					s := functionstest.As[k8sappsv1.StatefulSet](t, o.Object)
					if got := one(o, s.Spec.Selector.MatchLabels); got != o.Name() {
						t.Errorf("%s selects %s", o.Name(), got)
					}
					if !exists["Service "+s.Spec.ServiceName] {
						t.Errorf("%s: there is no Service %s", o.Name(), s.Spec.ServiceName)
					}
				case "HorizontalPodAutoscaler":
					ref := functionstest.As[autoscalingv2.HorizontalPodAutoscaler](t, o.Object).Spec.ScaleTargetRef
					if !exists[ref.Kind+" "+ref.Name] {
						t.Errorf("%s scales %v, which there is not", o.Name(), ref)
					}
				case "Ingress":
					for _, p := range functionstest.As[networkingv1.Ingress](t, o.Object).Spec.Rules[0].HTTP.Paths {
						if !exists["Service "+p.Backend.Service.Name] {
							t.Errorf("%s leads to Service %s, which there is not", o.Name(), p.Backend.Service.Name)
						}
					}
				}
			}
			for n, spec := range specs {
				if !protected[n] {
					t.Errorf("no NetworkPolicy closes %s", n)
				}
				if !exists["ServiceAccount "+spec.ServiceAccountName] {
					t.Errorf("%s runs as %s, which there is not", n, spec.ServiceAccountName)
				}
				mounts := map[string]bool{}
				for _, v := range spec.Volumes {
					mounts[v.Name] = true
					if v.Secret != nil && !exists["Secret "+v.Secret.SecretName] || v.ConfigMap != nil && !exists["ConfigMap "+v.ConfigMap.Name] {
						t.Errorf("%s mounts what there is not: %v", n, v)
					}
					if v.Projected == nil {
						continue
					}
					for _, s := range v.Projected.Sources {
						if s.ConfigMap != nil && s.ConfigMap.Name == "kube-root-ca.crt" {
							// Kubernetes creates one in each namespace.
							continue
						}
						if s.Secret != nil && !exists["Secret "+s.Secret.Name] || s.ConfigMap != nil && !exists["ConfigMap "+s.ConfigMap.Name] {
							t.Errorf("%s mounts what there is not: %v", n, s)
						}
					}
				}
				for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
					for _, m := range c.VolumeMounts {
						if !mounts[m.Name] && m.Name != "data" {
							t.Errorf("%s: there is no volume %s", n, m.Name)
						}
					}
					for _, f := range c.EnvFrom {
						if f.ConfigMapRef != nil && !exists["ConfigMap "+f.ConfigMapRef.Name] {
							t.Errorf("%s takes its environment from %s, which there is not", n, f.ConfigMapRef.Name)
						}
					}
				}
			}
		})
	}
}

// labelsOfPods returns the labels of pods with the one that the Job controller adds.
func labelsOfPods(p functionstest.Pod) map[string]string {
	if p.Kind != "Job" && p.Kind != "CronJob" {
		return p.Labels
	}
	return build.With(p.Labels, map[string]string{batchv1.JobNameLabel: "run"})
}

func matches(t *testing.T, by *metav1.LabelSelector, pod map[string]string) bool {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(by)
	if err != nil {
		t.Fatal(err)
	}
	return s.Matches(labels.Set(pod))
}

// TestWhoReachesWhom: the network policies of an EcommercePlatform admit these clients to each of
// its pods.
func TestWhoReachesWhom(t *testing.T) {
	all := functionstest.Expand(t, functionstest.EcommercePlatform(functionstest.BigShop), "{ingress: {namespace: ingress-nginx}, monitoring: {namespace: observability}}")
	type way struct{ labels map[string]string }
	people := map[string]way{}
	for _, o := range all {
		for _, p := range o.Pods(t) {
			name := functionstest.Get(o.Object, "metadata", "name").GetStringValue()
			if o.Kind() == "Job" && strings.Contains(name, "migration") {
				name = "store-backend-migration"
			}
			people[name] = way{labelsOfPods(p)}
		}
	}
	people["stranger"] = way{map[string]string{"app": "other"}}

	got := map[string][]string{}
	for target, w := range people {
		if target == "stranger" {
			continue
		}
		closed := false
		from := map[string]bool{}
		for _, o := range all {
			if o.Kind() != "NetworkPolicy" {
				continue
			}
			np := functionstest.As[networkingv1.NetworkPolicy](t, o.Object)
			if !matches(t, &np.Spec.PodSelector, w.labels) {
				continue
			}
			closed = true
			for _, rule := range np.Spec.Ingress {
				for _, peer := range rule.From {
					if peer.NamespaceSelector != nil {
						from["namespace "+peer.NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"]] = true
						continue
					}
					for n, other := range people {
						if matches(t, peer.PodSelector, other.labels) {
							from[n] = true
						}
					}
				}
			}
		}
		if closed {
			got[target] = slices.Sorted(maps.Keys(from))
		}
	}
	backend := []string{"store-backend-cron-report", "store-backend-migration", "store-backend-web"}
	want := map[string][]string{
		"store-database-postgresql": slices.Concat([]string{"namespace observability"}, backend, []string{"store-database-backup-first-" + build.Digest("volume", "data-store-database-repository-0", "", "")[:8], "store-database-backup-full", "store-database-postgresql"}),
		"store-database-repository": {"namespace observability", "store-database-postgresql"},
		"store-cache":               slices.Concat([]string{"namespace observability"}, backend),
		"store-database-backup-first-" + build.Digest("volume", "data-store-database-repository-0", "", "")[:8]: nil,
		"store-database-backup-full": nil,
		"store-backend-web":          {"store-frontend-web"},
		"store-backend-cron-report":  nil,
		"store-backend-migration":    nil,
		"store-frontend-web":         slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Keys(people)), []string{"namespace ingress-nginx"}))),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestWhatIsReached: the network policies restrict the connections that a database's pods may open.
// Those of applications are not restricted, as no claim declares what they need.
func TestWhatIsReached(t *testing.T) {
	const (
		names    = "any UDP 53 1053 5353 8053 TCP 53 1053 5353 8053"
		api      = "any TCP 443 6443 8443 16443"
		metadata = "metadata TCP 80 987 988"
	)
	servers := func(more ...string) []string { return append([]string{names, api, "orders/postgresql"}, more...) }
	jobs := func(more ...string) []string { return append([]string{names, "orders/postgresql TCP 8432"}, more...) }
	cases := map[string]struct {
		reason, spec string
		want         map[string][]string
	}{
		"Volume": {
			reason: "The repository answers, and opens nothing.",
			spec:   "{size: 2, version: '17', backup: {enabled: true}}",
			want:   map[string][]string{"postgresql": servers("orders/repository TCP 8432"), "backup": jobs(), "repository": {}},
		},
		"No backup": {
			reason: "Without backups there is no store.",
			spec:   "{size: 2, version: '17', backup: {enabled: false}}",
			want:   map[string][]string{"postgresql": servers()},
		},
		"Store": {
			reason: "One with a Secret is reached by its endpoint.",
			spec:   "{size: 2, version: '17', backup: {enabled: true, destination: {type: s3, bucket: b, endpoint: 'https://minio.example.com:9000', secretRef: {name: store}}}}",
			want:   map[string][]string{"postgresql": servers("any TCP 9000"), "backup": jobs("any TCP 9000")},
		},
		"Identity": {
			reason: "One without is asked for by what the cloud says of the pod.",
			spec:   "{size: 2, version: '17', backup: {enabled: true, destination: {type: gcs, bucket: b}}}",
			want:   map[string][]string{"postgresql": servers("any TCP 443", metadata), "backup": jobs("any TCP 443", metadata)},
		},
		"Account": {
			reason: "So is one whose Secret has no credentials.",
			spec:   "{size: 2, version: '17', backup: {enabled: true, destination: {type: azure, bucket: b, secretRef: {name: account}}}}",
			want:   map[string][]string{"postgresql": servers("any TCP 443", metadata), "backup": jobs("any TCP 443", metadata)},
		},
		"Restore": {
			reason: "While it is filled it reads from elsewhere too.",
			spec:   "{size: 2, version: '17', backup: {enabled: false}, restoreFrom: {name: old, destination: {type: s3, bucket: b, endpoint: 'https://minio.store.svc', secretRef: {name: store}}}}",
			want:   map[string][]string{"postgresql": servers("any TCP 443", "namespace store")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := map[string][]string{}
			c := functionstest.New(t, functionstest.DatabaseCluster(tc.spec))
			c.Others = append(c.Others, functionstest.Secret(t, "store", map[string]string{"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key"}), functionstest.Secret(t, "account", map[string]string{"AZURE_STORAGE_ACCOUNT": "a"}))
			c.Reconcile()
			for _, n := range c.ComponentNames() {
				if functionstest.Get(c.Observed[n], "kind").GetStringValue() != "NetworkPolicy" {
					continue
				}
				np := functionstest.As[networkingv1.NetworkPolicy](t, c.Observed[n])
				if !slices.Contains(np.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) {
					continue
				}
				reached := []string{}
				for _, rule := range np.Spec.Egress {
					reached = append(reached, reachedBy(rule))
				}
				got[np.Spec.PodSelector.MatchLabels[label.Component]] = reached
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// reachedBy describes the peers and ports of a rule in short form.
func reachedBy(rule networkingv1.NetworkPolicyEgressRule) string {
	out := []string{}
	for _, to := range rule.To {
		switch {
		case to.IPBlock != nil:
			out = append(out, "metadata")
		case to.NamespaceSelector != nil:
			out = append(out, "namespace "+to.NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"])
		case len(to.PodSelector.MatchLabels) == 0:
			out = append(out, "all pods")
		default:
			out = append(out, to.PodSelector.MatchLabels[label.Instance]+"/"+to.PodSelector.MatchLabels[label.Component])
		}
	}
	if len(rule.To) == 0 {
		out = append(out, "any")
	}
	protocol := corev1.Protocol("")
	for _, p := range rule.Ports {
		if *p.Protocol != protocol {
			protocol = *p.Protocol
			out = append(out, string(protocol))
		}
		out = append(out, p.Port.String())
	}
	return strings.Join(slices.Compact(out), " ")
}
