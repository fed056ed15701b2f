package webapp_test

import (
	"strings"
	"testing"
	"time"

	"github.com/storeplane/storeplane/functions/functionstest"
)

// TestWaiting: a claim reports what keeps its pods from becoming ready, and requests pods only
// while they are not ready.
func TestWaiting(t *testing.T) {
	const (
		progressing = `{observedGeneration: 2, replicas: 1, updatedReplicas: 1, unavailableReplicas: 1}`
		image       = `{containerStatuses: [{name: app, image: 'r.example.com/shop:1', state: {waiting: {reason: ErrImagePull, message: 'shop:1: not found'}}}]}`
		crash       = `{containerStatuses: [{name: app, restartCount: 1, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 3, reason: Error, message: "starting\ncannot reach postgres://app:hunter2@db/app with password=hunter2\n"}}}]}`
		root        = `{containerStatuses: [{name: app, state: {waiting: {reason: CreateContainerConfigError, message: 'container has runAsNonRoot and image will run as root (pod: "shop-web-1_team(3f2a9c1e)", container: app)'}}}]}`
		named       = `{containerStatuses: [{name: app, state: {waiting: {reason: CreateContainerConfigError, message: 'container has runAsNonRoot and image has non-numeric user (nginx), cannot verify user is non-root (pod: "shop-web-1_team(3f2a9c1e)", container: app)'}}}]}`
		exited      = `{phase: Failed, containerStatuses: [{name: migration, state: {terminated: {exitCode: 3, reason: Error, message: "migrating\nno table orders\n"}}}]}`
		evicted     = `{phase: Failed, reason: Evicted, message: 'The node was low on resource: memory.'}`
		unready     = `{containerStatuses: [{name: app, started: true, state: {running: {startedAt: "2020-01-01T00:00:00Z"}}}]}`
		longUnready = `conditions: [{type: Ready, status: "False", lastTransitionTime: "2020-01-01T00:00:00Z"}]`
		slow        = `{` + longUnready + `, containerStatuses: [{name: app, started: false, state: {running: {startedAt: "2020-01-01T00:00:00Z"}}}]}`
		probed      = `spec: {containers: [{name: app, startupProbe: {tcpSocket: {port: 8080}}}]}`
		preparing   = `{` + longUnready + `, startTime: "2020-01-01T00:00:00Z", containerStatuses: [{name: app, state: {waiting: {reason: ContainerCreating}}}]}`
		memory      = `{containerStatuses: [{name: app, restartCount: 2, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 137, reason: OOMKilled}}}]}`
		readOnly    = `{containerStatuses: [{name: app, restartCount: 1, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1, reason: Error, message: 'mkdir() "/var/cache/nginx" failed (30: Read-only file system)'}}}]}`
	)
	pod := func(name, component, status string) string {
		return `{apiVersion: v1, kind: Pod, metadata: {name: ` + name + `, namespace: team, labels: {app.kubernetes.io/instance: hello, app.kubernetes.io/component: ` + component + `}}, status: ` + status + `}`
	}
	job := func(name, component, status string) string {
		return `{apiVersion: v1, kind: Pod, metadata: {name: ` + name + `, namespace: team, labels: {batch.kubernetes.io/job-name: hello-` + component + `}}, status: ` + status + `}`
	}
	cases := map[string]struct {
		reason string
		spec   string
		status map[string]string
		pods   []string
		want   string
		passes bool
	}{
		"Image":    {reason: "The pod, the image and the registry's answer are named.", status: map[string]string{"web": progressing}, pods: []string{pod("shop-web-1", "web", image)}, want: "Waiting for web (shop-web-1: cannot pull image r.example.com/shop:1: not found)"},
		"Crash":    {reason: "So are the exit code and the last line of the log, without what is secret in it.", status: map[string]string{"web": progressing}, pods: []string{pod("shop-web-1", "web", crash)}, want: "Waiting for web (shop-web-1: container app keeps failing: exit code 3: cannot reach postgres://***@db/app with password=***)"},
		"Root":     {reason: "An image that runs as root: what to edit is said.", status: map[string]string{"web": progressing}, pods: []string{pod("shop-web-1", "web", root)}, want: "Waiting for web (shop-web-1: cannot start container app: its image runs as root, which is not allowed: set runAsUser to the number of another user, or podSecurity to baseline outside production)"},
		"Named":    {reason: "So it is of one whose user has no number.", status: map[string]string{"web": progressing}, pods: []string{pod("shop-web-1", "web", named)}, want: "Waiting for web (shop-web-1: cannot start container app: its image names its user nginx without a number, so that it might be root: set runAsUser to that user's number)"},
		"ReadOnly": {reason: "And of one that writes where it may not.", status: map[string]string{"web": progressing}, pods: []string{pod("shop-web-1", "web", readOnly)}, want: `Waiting for web (shop-web-1: container app keeps failing: exit code 1: mkdir() "/var/cache/nginx" failed (30: Read-only file system): mount a volume with emptyDir where it writes, or set podSecurity to baseline outside production)`},
		"Worker":   {reason: "A worker's pods are its own.", spec: "workers: [{name: mail}]", status: map[string]string{"worker-mail": progressing}, pods: []string{pod("shop-worker-mail-1", "worker-mail", image), pod("shop-web-1", "web", crash)}, want: "Waiting for worker-mail (shop-worker-mail-1: cannot pull image r.example.com/shop:1: not found)"},
		"GetsOn": {
			reason: "A rollout that has got on a moment ago is not asked about: each pod that starts makes events.",
			status: map[string]string{"web": `{observedGeneration: 2, replicas: 1, updatedReplicas: 1, unavailableReplicas: 1, conditions: [{type: Progressing, status: "True", lastUpdateTime: "` + time.Now().UTC().Format(time.RFC3339) + `"}]}`},
			pods:   []string{pod("shop-web-1", "web", image)}, want: "Waiting for web (Not all pods are ready)", passes: true,
		},
		"Resumed": {
			reason: "Nor is one that was paused until a moment ago.",
			status: map[string]string{"web": `{observedGeneration: 2, replicas: 1, updatedReplicas: 1, unavailableReplicas: 1, conditions: [{type: Progressing, status: Unknown, reason: DeploymentResumed, lastUpdateTime: "` + time.Now().UTC().Format(time.RFC3339) + `"}]}`},
			pods:   []string{pod("shop-web-1", "web", image)}, want: "Waiting for web (Not all pods are ready)", passes: true,
		},
		"GotOn": {
			reason: "One that has not for a while is.",
			status: map[string]string{"web": `{observedGeneration: 2, replicas: 1, updatedReplicas: 1, unavailableReplicas: 1, conditions: [{type: Progressing, status: "True", lastUpdateTime: "` + time.Now().Add(-5*time.Second).UTC().Format(time.RFC3339) + `"}]}`},
			pods:   []string{pod("shop-web-1", "web", image)}, want: "Waiting for web (shop-web-1: cannot pull image r.example.com/shop:1: not found)",
		},
		"DeadlineNow": {
			reason: "A rollout that fails has made no progress, though it says so just now.",
			status: map[string]string{"web": `{observedGeneration: 2, replicas: 1, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, lastUpdateTime: "` + time.Now().UTC().Format(time.RFC3339) + `"}]}`},
			pods:   []string{pod("shop-web-1", "web", image)}, want: "Waiting for web (Rollout exceeded its progress deadline: shop-web-1: cannot pull image r.example.com/shop:1: not found)",
		},
		"None":      {reason: "Where no pod says anything, that is all.", status: map[string]string{"web": progressing}, want: "Waiting for web (Not all pods are ready)", passes: true},
		"Worst":     {reason: "What does not pass by itself comes before what may, and before what a node has left behind.", status: map[string]string{"web": progressing}, pods: []string{pod("shop-web-1", "web", evicted), pod("shop-web-2", "web", unready), pod("shop-web-3", "web", image)}, want: "Waiting for web (shop-web-3: cannot pull image r.example.com/shop:1: not found)"},
		"Evicted":   {reason: "That says something only where nothing else does.", status: map[string]string{"web": progressing}, pods: []string{pod("shop-web-1", "web", evicted)}, want: "Waiting for web (shop-web-1: was stopped: Evicted: The node was low on resource: memory.)", passes: true},
		"Starting":  {reason: "A probe may be passed a moment later.", status: map[string]string{"web": progressing}, pods: []string{pod("shop-web-1", "web", unready)}, want: "Waiting for web (shop-web-1: container app runs and does not pass its readiness probe)", passes: true},
		"Port":      {reason: "One that has not been passed for long is named to the claim's owner, too, with what it asks for.", status: map[string]string{"web": progressing}, pods: []string{strings.Replace(pod("shop-web-1", "web", slow), "status:", probed+", status:", 1)}, want: "Waiting for web (shop-web-1: container app runs and does not pass its startup probe, a connection to port 8080: set port to the one that it listens on, or probe to what it answers)"},
		"Unmounted": {reason: "So is a volume.", status: map[string]string{"web": progressing}, pods: []string{strings.Replace(pod("shop-web-1", "web", preparing), "status:", "spec: {volumes: [{name: a, secret: {secretName: absent}}]}, status:", 1)}, want: "Waiting for web (shop-web-1: cannot start yet: its volumes or its network are not ready. These must exist: Secret absent)"},
		"Memory":    {reason: "More memory is one field.", status: map[string]string{"web": progressing}, pods: []string{pod("shop-web-1", "web", memory)}, want: "Waiting for web (shop-web-1: container app keeps running out of memory: raise resources.limits.memory)"},
		"Foreign":   {reason: "Another claim's pods say nothing of this one.", status: map[string]string{"web": progressing}, pods: []string{strings.Replace(pod("x", "web", image), "instance: hello", "instance: other", 1)}, want: "Waiting for web (Not all pods are ready)", passes: true},
		"Deadline":  {reason: "Also of a rollout that has failed.", status: map[string]string{"web": `{observedGeneration: 2, replicas: 1, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded}]}`}, pods: []string{pod("shop-web-1", "web", image)}, want: "Waiting for web (Rollout exceeded its progress deadline: shop-web-1: cannot pull image r.example.com/shop:1: not found)"},
		"Migration": {
			reason: "A migration's pod holds the rollout: what is wrong with it is said.", spec: "migration: {args: [m]}",
			status: map[string]string{migrationOf("r.example.com/shop:1", "m"): "{active: 1, ready: 0}"}, pods: []string{job("hello-migration-1", migrationOf("r.example.com/shop:1", "m"), image)},
			want: "Waiting for migration (hello-migration-1: cannot pull image r.example.com/shop:1: not found)",
		},
		"MigrationFailed": {
			reason: "Also of one that has failed for good.", spec: "migration: {args: [m]}",
			status: map[string]string{migrationOf("r.example.com/shop:1", "m"): `{failed: 5, conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded}]}`},
			pods:   []string{job("hello-migration-1", migrationOf("r.example.com/shop:1", "m"), exited)},
			want:   "Waiting for migration (The Job failed (BackoffLimitExceeded) and holds the rollout: hello-migration-1: container migration keeps failing: exit code 3: no table orders)",
		},
		"Quota": {
			reason: "A pod that is not created says nothing: its Deployment does.",
			status: map[string]string{"web": `{observedGeneration: 2, unavailableReplicas: 1, conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: 'pods "shop-web-5d4-x7" is forbidden: exceeded quota: small, requested: limits.cpu=1, used: limits.cpu=4, limited: limits.cpu=4'}]}`},
			want:   "Waiting for web (cannot create pods: exceeded quota: small, requested: limits.cpu=1)",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, "{image: 'r.example.com/shop:1', replicas: 1, "+tc.spec+"}")
			c.Settle()
			for name, sel := range c.Run().GetRequirements().GetResources() {
				if sel.GetKind() == "Pod" {
					t.Errorf("%s\nA claim at rest asks for %s", tc.reason, name)
				}
			}
			for component, status := range tc.status {
				c.SetStatus(component, status)
			}
			for _, p := range tc.pods {
				c.Add(p)
			}
			c.Reconcile()
			if got := c.Message(); got != tc.want {
				t.Errorf("%s\ngot  %q\nwant %q", tc.reason, got, tc.want)
			}
			failure := functionstest.Get(c.Claim, "status", "podFailure").GetStringValue()
			if lasting := failure != "" && strings.Contains(tc.want, failure); lasting == tc.passes || failure != "" && !lasting {
				t.Errorf("%s\nit passes by itself: %t, got podFailure %q", tc.reason, tc.passes, failure)
			}
		})
	}
}

// TestWaitingAtFirst: the pods of a Deployment are not requested while it is paused, nor before its
// controller has seen it: Crossplane watches what is requested.
func TestWaitingAtFirst(t *testing.T) {
	const paused = `{observedGeneration: 1, unavailableReplicas: 1, conditions: [{type: Progressing, status: Unknown, reason: DeploymentPaused, lastUpdateTime: "2020-01-01T00:00:00Z"}]}`
	cases := map[string]struct {
		reason, spec, status string
		age                  time.Duration
		want                 bool
	}{
		"Paused":     {reason: "It waits for the migration.", spec: "{image: a, migration: {args: [m]}}", status: paused, age: time.Minute},
		"Unseen":     {reason: "It was created a moment ago.", spec: "{image: a}", status: "{}", age: time.Second},
		"UnseenLong": {reason: "Nothing has happened since.", spec: "{image: a}", status: "{}", age: time.Minute, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, tc.spec)
			for range 3 {
				c.Reconcile()
			}
			c.SetStatus("web", tc.status)
			conditions := functionstest.Parse(t, `conditions: [{type: Ready, status: "False", lastTransitionTime: "`+time.Now().Add(-tc.age).UTC().Format(time.RFC3339)+`"}]`)
			functionstest.Fields(c.Claim, "status")["conditions"] = functionstest.Get(conditions, "conditions")
			if got := c.Run().GetRequirements().GetResources()["pods-web"] != nil; got != tc.want {
				t.Errorf("%s\npods are requested: want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

// TestMigrationPods: when the pods of a migration are requested.
func TestMigrationPods(t *testing.T) {
	cases := map[string]struct {
		reason, status string
		age            time.Duration
		want           bool
	}{
		"Starts":  {reason: "Its pod is about to run.", status: "{active: 1, ready: 0}", age: 2 * time.Second},
		"Late":    {reason: "It should run.", status: "{active: 1, ready: 0}", age: 7 * time.Second, want: true},
		"Runs":    {reason: "It does.", status: "{active: 1, ready: 1}", age: time.Hour},
		"Failed":  {reason: "A pod has failed.", status: "{active: 1, ready: 0, failed: 1}", age: 2 * time.Second, want: true},
		"Counted": {reason: "It has ended well, and is about to be counted.", status: "{ready: 0, uncountedTerminatedPods: {succeeded: [a]}}", age: time.Hour},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := simulate(t, "{image: a, migration: {args: [m]}}")
			for range 3 {
				c.Reconcile()
			}
			job := migrationOf("a", "m")
			c.SetStatus(job, tc.status)
			functionstest.Set(c.Observed[job], time.Now().Add(-tc.age).UTC().Format(time.RFC3339), "metadata", "creationTimestamp")
			if got := c.Run().GetRequirements().GetResources()["pods-migration"] != nil; got != tc.want {
				t.Errorf("%s\npods are requested: want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}
