package databasecluster_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	k8sappsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/storeplane/storeplane/functions/functionstest"
	"github.com/storeplane/storeplane/internal/backup"
)

// volumeServers returns the volume claim that each server of backups' volumes mounts, by StatefulSet.
func volumeServers(t *testing.T, c *crossplane) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, o := range c.Observed {
		if functionstest.Get(o, "kind").GetStringValue() != "StatefulSet" {
			continue
		}
		set := functionstest.As[k8sappsv1.StatefulSet](t, o)
		if set.Spec.Template.Spec.Containers[0].Name != "repository" {
			continue
		}
		for _, template := range set.Spec.VolumeClaimTemplates {
			out[set.Name] = template.Name + "-" + set.Name + "-0"
		}
		for _, v := range set.Spec.Template.Spec.Volumes {
			if v.PersistentVolumeClaim != nil {
				out[set.Name] = v.PersistentVolumeClaim.ClaimName
			}
		}
	}
	return out
}

// selectedServers returns the servers of backups' volumes whose pods a selector selects, sorted.
func selectedServers(t *testing.T, c *crossplane, selector *metav1.LabelSelector) []string {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, o := range c.Observed {
		if functionstest.Get(o, "kind").GetStringValue() != "StatefulSet" {
			continue
		}
		set := functionstest.As[k8sappsv1.StatefulSet](t, o)
		if _, ok := volumeServers(t, c)[set.Name]; ok && s.Matches(labels.Set(set.Spec.Template.Labels)) {
			out = append(out, set.Name)
		}
	}
	slices.Sort(out)
	return out
}

// archiveWay is where the servers of a cluster archive to a volume, and where its backups are made to.
type archiveWay struct {
	// Host serves the volume to the servers, whose Service selects the StatefulSets Serves. Allowed are
	// those that the servers may connect to, and Guarded those with a policy of their own.
	Host                     string
	Serves, Allowed, Guarded []string

	// Beside are the StatefulSets on whose node a backup runs, which mounts Mounts. Scraped are those
	// whose metrics Prometheus reads.
	Beside, Scraped []string
	Mounts          string
}

func archiveWayOf(t *testing.T, c *crossplane) archiveWay {
	t.Helper()
	var out archiveWay
	for line := range strings.Lines(functionstest.As[corev1.ConfigMap](t, c.Observed["config"]).Data["pgbackrest.conf"]) {
		if host, ok := strings.CutPrefix(strings.TrimSpace(line), "repo1-host="); ok {
			out.Host = host
		}
	}
	service, _, _ := strings.Cut(out.Host, ".")
	for _, o := range c.Observed {
		switch functionstest.Get(o, "kind").GetStringValue() {
		case "Service":
			if s := functionstest.As[corev1.Service](t, o); s.Name == service {
				out.Serves = selectedServers(t, c, &metav1.LabelSelector{MatchLabels: s.Spec.Selector})
			}
		case "NetworkPolicy":
			p := functionstest.As[networkingv1.NetworkPolicy](t, o)
			out.Guarded = append(out.Guarded, selectedServers(t, c, &p.Spec.PodSelector)...)
		}
	}
	slices.Sort(out.Guarded)
	for _, rule := range functionstest.As[networkingv1.NetworkPolicy](t, c.Observed["networkpolicy"]).Spec.Egress {
		for _, to := range rule.To {
			if to.PodSelector != nil {
				out.Allowed = append(out.Allowed, selectedServers(t, c, to.PodSelector)...)
			}
		}
	}
	pod := functionstest.As[batchv1.CronJob](t, c.Observed["backup-full"]).Spec.JobTemplate.Spec.Template.Spec
	out.Beside = selectedServers(t, c, pod.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector)
	out.Scraped = selectedServers(t, c, &functionstest.As[monitoringv1.PodMonitor](t, c.Observed["podmonitor"]).Spec.Selector)
	for _, v := range pod.Volumes {
		if v.PersistentVolumeClaim != nil {
			out.Mounts = v.PersistentVolumeClaim.ClaimName
		}
	}
	return out
}

// refuseImmutable makes the test fail where a pass changes a field of a StatefulSet that the API
// server does not let change.
func refuseImmutable(t *testing.T, c *crossplane) {
	t.Helper()
	before := map[string]*structpb.Struct{}
	c.Written = func(*structpb.Struct) {
		t.Helper()
		for n, o := range c.Observed {
			was := before[n]
			if was == nil || functionstest.Get(o, "kind").GetStringValue() != "StatefulSet" {
				continue
			}
			for _, field := range []string{"volumeClaimTemplates", "serviceName", "selector", "podManagementPolicy"} {
				if diff := cmp.Diff(functionstest.Get(was, "spec", field).AsInterface(), functionstest.Get(o, "spec", field).AsInterface()); diff != "" {
					t.Errorf("the API server refuses another %s of StatefulSet %s: -was, +is:\n%s", field, functionstest.Get(o, "metadata", "name").GetStringValue(), diff)
				}
			}
		}
		before = map[string]*structpb.Struct{}
		for n, o := range c.Observed {
			before[n] = proto.CloneOf(o)
		}
	}
}

// TestRepositoryChange: the destination changes between the volume that is created for backups and
// volume claims of the user's own. Nothing that the API server refuses is applied, servers archive to
// the volume that backups are made to, and the volume that was created keeps its server.
func TestRepositoryChange(t *testing.T) {
	const (
		created, named = "orders-repository", "orders-named-claim"
		volume, host   = "data-orders-repository-0", "orders-repository.team.svc"
	)
	bucket := func(name string) any { return map[string]any{"type": "volume", "bucket": name} }
	store := map[string]any{"type": "s3", "bucket": "b", "secretRef": map[string]any{"name": "store"}}
	to := func(set, mounts string, guarded ...string) archiveWay {
		return archiveWay{Host: host, Serves: []string{set}, Allowed: []string{set}, Guarded: guarded, Beside: []string{set}, Scraped: []string{set}, Mounts: mounts}
	}
	cases := map[string]struct {
		reason  string
		steps   []any
		servers map[string]string
		want    archiveWay
	}{
		"CreatedToNamed": {
			reason:  "The volume that was created keeps its server, as after any other change of the destination.",
			steps:   []any{nil, bucket("mine")},
			servers: map[string]string{created: volume, named: "mine"}, want: to(named, "mine", named, created),
		},
		"NamedToCreated": {
			reason:  "What serves a named claim holds nothing itself, and gives way.",
			steps:   []any{bucket("mine"), nil},
			servers: map[string]string{created: volume}, want: to(created, volume, created),
		},
		"NamedToNamed": {
			reason:  "It is the same server with another volume.",
			steps:   []any{bucket("mine"), bucket("other")},
			servers: map[string]string{created: "other"}, want: to(created, "other", created),
		},
		"CreatedToNamedToNamed": {
			reason:  "So it is beside the volume that was created.",
			steps:   []any{nil, bucket("mine"), bucket("other")},
			servers: map[string]string{created: volume, named: "other"}, want: to(named, "other", named, created),
		},
		"ThereAndBack": {
			reason:  "The volume that was created is used again.",
			steps:   []any{nil, bucket("mine"), nil},
			servers: map[string]string{created: volume}, want: to(created, volume, created),
		},
		"NamedToCreatedToNamed": {
			reason:  "And the other way round.",
			steps:   []any{bucket("mine"), nil, bucket("mine")},
			servers: map[string]string{created: volume, named: "mine"}, want: to(named, "mine", named, created),
		},
		"CreatedToStoreToNamed": {
			reason:  "It keeps its server also while backups are elsewhere.",
			steps:   []any{nil, store, bucket("mine")},
			servers: map[string]string{created: volume, named: "mine"}, want: to(named, "mine", named, created),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, functionstest.Production)
			c.Others = append(c.Others, functionstest.Secret(t, "store", map[string]string{"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key"}))
			c.Serve("podmonitor")
			refuseImmutable(t, c)
			var certificate string
			for i, destination := range tc.steps {
				if i > 0 || destination != nil {
					c.Edit(destination, "backup", "destination")
				}
				c.Settle()
				if got := c.SecretValue("backup-tls", "tls.crt"); i > 0 && got != certificate {
					t.Errorf("%s\nstep %d: a certificate for another host is signed", tc.reason, i)
				}
				certificate = c.SecretValue("backup-tls", "tls.crt")
			}
			if diff := cmp.Diff(tc.servers, volumeServers(t, c)); diff != "" {
				t.Errorf("%s\nservers of volumes: -want, +got:\n%s", tc.reason, diff)
			}
			slices.Sort(tc.want.Guarded)
			if diff := cmp.Diff(tc.want, archiveWayOf(t, c)); diff != "" {
				t.Errorf("%s\nwhere is archived: -want, +got:\n%s", tc.reason, diff)
			}
			task := backup.Task{}
			if err := json.Unmarshal([]byte(functionstest.As[batchv1.Job](t, c.Observed[firstBackup(t, c)]).Spec.Template.Spec.Containers[0].Env[0].Value), &task); err != nil {
				t.Fatal(err)
			}
			if task.Destination.Bucket != tc.want.Mounts {
				t.Errorf("%s\nwant the first backup in %s, got %s", tc.reason, tc.want.Mounts, task.Destination.Bucket)
			}
		})
	}
}

// TestRepositoryReplaced: after the server of a named claim was left out, so that it is deleted, the
// next pass begins within seconds, whatever is announced of it.
func TestRepositoryReplaced(t *testing.T) {
	c := simulate(t, functionstest.Production)
	c.Edit(map[string]any{"type": "volume", "bucket": "mine"}, "backup", "destination")
	c.Settle()
	c.Edit(nil, "backup", "destination")
	if ttl := c.Reconcile().GetMeta().GetTtl().AsDuration(); c.Observed["repository"] != nil || ttl > 10*time.Second {
		t.Errorf("want the server gone, and a call within 10 s, got %v, %v", volumeServers(t, c), ttl)
	}
	c.Reconcile()
	if diff := cmp.Diff(map[string]string{"orders-repository": "data-orders-repository-0"}, volumeServers(t, c)); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestRepositoryOrphaned: a claim does not delete what an earlier one left, so the server of another
// volume is refused where the created volume's has to be.
func TestRepositoryOrphaned(t *testing.T) {
	was := simulate(t, functionstest.Production)
	was.Edit(map[string]any{"type": "volume", "bucket": "mine"}, "backup", "destination")
	was.Settle()
	c := orphaned(t, was, functionstest.DatabaseCluster(functionstest.Production))
	c.Reconcile()
	const want = "backup.destination: StatefulSet orders-repository of an earlier claim serves another volume, and cannot be changed: delete it, or name its volume claim as backup.destination.bucket"
	if _, got := c.Condition("Accepted"); got != want {
		t.Errorf("want %q, got %q", want, got)
	}
}

// TestRepositoryName: the name of a StatefulSet and its revision fit a label for the longest claim.
func TestRepositoryName(t *testing.T) {
	const longest, revision = 40, 11
	c := simulate(t, functionstest.Production)
	c.Settle()
	c.Edit(map[string]any{"type": "volume", "bucket": "mine"}, "backup", "destination")
	c.Settle()
	for _, name := range slices.Sorted(maps.Keys(volumeServers(t, c))) {
		if got := longest + len(name) - len("orders") + revision; got > 63 {
			t.Errorf("StatefulSet %s: its revision has %d characters for a claim of %d", name, got, longest)
		}
	}
}

// TestSourceBeside: a volume that is restored from is served on the node where it is mounted, whichever
// server has it mounted there.
func TestSourceBeside(t *testing.T) {
	cases := map[string]struct {
		reason, bucket string
		want           map[string]int32
	}{
		"Created": {reason: "The volume that was created has its own server.", bucket: "data-sales-repository-0", want: map[string]int32{"repository": 100}},
		"Named":   {reason: "Another one is served beside that, or where none was created in its place.", bucket: "mine", want: map[string]int32{"named-claim": 100, "repository": 50}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, "{size: 1, version: '17', restoreFrom: {destination: {type: volume, bucket: "+tc.bucket+"}, name: sales}}")
			c.Reconcile()
			got := map[string]int32{}
			for _, term := range functionstest.As[k8sappsv1.StatefulSet](t, c.Observed["source-server"]).Spec.Template.Spec.Affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
				got[term.PodAffinityTerm.LabelSelector.MatchLabels["app.kubernetes.io/component"]] = term.Weight
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
