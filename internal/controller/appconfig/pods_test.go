package appconfig

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "github.com/storeplane/storeplane/apis/config/v1"
)

// aPod returns a pod with a bundle that was created an hour ago.
func aPod(name, bundle string, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid", CreationTimestamp: *ago(3600), Annotations: map[string]string{configv1.BundleAnnotationPrefix + "shop": bundle}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", ReadinessProbe: &corev1.Probe{}}}},
		Status:     corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}},
	}
	for _, c := range changes {
		c(p)
	}
	return p
}

func readySince(seconds int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses[0].Ready = true
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: *ago(seconds)}}
	}
}

func waits(reason, message string, restarts int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		s := &p.Status.ContainerStatuses[0]
		s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
		if s.RestartCount = restarts; restarts > 0 {
			s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1}
		}
	}
}

func TestLook(t *testing.T) {
	set := Key{Kind: configv1.StatefulSet, Name: "db"}
	blocked := []Pod{{Name: "db-0", UID: "uid"}}
	cases := map[string]struct {
		reason string
		key    Key
		bundle string // the bundle of the template; the second unless given
		pods   []*corev1.Pod
		state  *State
		want   Pods

		// container is the one whose log would show the cause, previous whether that is the log of
		// its last run, and log whether it is requested.
		container string
		previous  bool
		log       bool
	}{
		"Ready":      {reason: "When the last pod became ready.", key: web, pods: []*corev1.Pod{aPod("a", second, readySince(30)), aPod("b", second, readySince(20))}, want: Pods{LastReady: ago(20).Time}},
		"Others":     {reason: "Pods of other bundles tell nothing of this one.", key: web, pods: []*corev1.Pod{aPod("a", first, waits("CrashLoopBackOff", "", 5))}},
		"Deleted":    {reason: "Nor do those on their way out.", key: web, pods: []*corev1.Pod{aPod("a", second, func(p *corev1.Pod) { p.DeletionTimestamp = ago(1) })}},
		"Unprobed":   {reason: "A pod without a probe has to run for a while.", key: web, pods: []*corev1.Pod{aPod("a", second, readySince(5), func(p *corev1.Pod) { p.Spec.Containers[0].ReadinessProbe = nil })}, want: Pods{LastReady: ago(5).Time, Unproven: true}},
		"UnprobedOK": {reason: "And no longer.", key: web, pods: []*corev1.Pod{aPod("a", second, readySince(10), func(p *corev1.Pod) { p.Spec.Containers[0].ReadinessProbe = nil })}, want: Pods{LastReady: ago(10).Time}},
		"Crash":      {reason: "Its log before it crashed is asked for.", key: web, pods: []*corev1.Pod{aPod("a", second, waits("CrashLoopBackOff", "", 2))}, want: Pods{NotReady: "pod a: container app keeps failing"}, container: "app", previous: true, log: true},
		"CrashFirst": {reason: "What is fatal comes before what is not.", key: web, pods: []*corev1.Pod{aPod("a", second), aPod("b", second, waits("CrashLoopBackOff", "", 2))}, want: Pods{NotReady: "pod b: container app keeps failing"}, container: "app", previous: true, log: true},
		"Once":       {reason: "One failure is an accident.", key: web, pods: []*corev1.Pod{aPod("a", second, waits("CrashLoopBackOff", "", 1))}, want: Pods{NotReady: "pod a: container app is not ready"}, container: "app", previous: true},
		"NoImage":    {reason: "An image is not the configuration's.", key: web, pods: []*corev1.Pod{aPod("a", second, waits("ImagePullBackOff", "", 0))}, want: Pods{NotReady: "pod a: cannot pull image "}, container: "app"},
		"NoKey":      {reason: "A key that is missing is.", key: web, pods: []*corev1.Pod{aPod("a", second, waits("CreateContainerConfigError", "couldn't find key X", 0))}, want: Pods{NotReady: "pod a: cannot start container app: couldn't find key X"}, container: "app", log: true},
		"NoBundle":   {reason: "A bundle that is being made is waited for.", key: web, pods: []*corev1.Pod{aPod("a", second, waits("CreateContainerConfigError", `configmap "`+second+`" not found`, 0))}, want: Pods{NotReady: `pod a: cannot start container app: configmap "` + second + `" not found`}, container: "app"},
		"Hangs":      {reason: "What is not ready tells why at the deadline.", key: web, state: given(pending(70), recorded(web, second, configv1.TargetProgressing, 60)), pods: []*corev1.Pod{aPod("a", second)}, want: Pods{NotReady: "pod a: container app is not ready"}, container: "app", log: true},

		"Blocked":      {reason: "A StatefulSet's pod of what was never good is in the way of what comes.", key: set, bundle: third, state: given(recorded(set, third, configv1.TargetProgressing, 20)), pods: []*corev1.Pod{aPod("db-0", second)}, want: Pods{Blocking: blocked}},
		"BlockedNow":   {reason: "At once, if it has failed.", key: set, bundle: first, state: given(known(failedSecond)), pods: []*corev1.Pod{aPod("db-0", second)}, want: Pods{Blocking: blocked}},
		"NotYet":       {reason: "Else its controller may see to it.", key: set, bundle: third, state: given(recorded(set, third, configv1.TargetProgressing, 5)), pods: []*corev1.Pod{aPod("db-0", second)}},
		"Serves":       {reason: "A pod that serves is never in the way.", key: set, bundle: third, state: given(recorded(set, third, configv1.TargetProgressing, 20)), pods: []*corev1.Pod{aPod("db-0", second, readySince(60))}},
		"Starts":       {reason: "One of the good bundle may become ready.", key: set, state: given(recorded(set, second, configv1.TargetProgressing, 20)), pods: []*corev1.Pod{aPod("db-0", first, func(p *corev1.Pod) { p.CreationTimestamp = *ago(15) })}},
		"NeverStarts":  {reason: "But not for ever.", key: set, state: given(recorded(set, second, configv1.TargetProgressing, 20)), pods: []*corev1.Pod{aPod("db-0", first, func(p *corev1.Pod) { p.CreationTimestamp = *ago(25) })}, want: Pods{Blocking: blocked}},
		"Partition":    {reason: "A pod below the partition would come back as it is.", key: set, bundle: first, state: given(known(failedSecond)), pods: []*corev1.Pod{aPod("db-0", second), aPod("db-2", second)}, want: Pods{Blocking: []Pod{{Name: "db-2", UID: "uid"}}}},
		"OfDeployment": {reason: "Others' controllers replace pods by themselves.", key: web, bundle: first, state: given(known(failedSecond)), pods: []*corev1.Pod{aPod("a", second)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.state == nil {
				tc.state = given(pending(10), recorded(tc.key, second, configv1.TargetProgressing, 10))
			}
			if tc.bundle == "" {
				tc.bundle = second
			}
			target := runs(tc.key, tc.bundle, sick)
			w := &workload{Key: tc.key, observed: true, replaces: true}
			if name == "Partition" {
				w.partition = 1
			}
			l := podObserver{State: tc.state, workload: w, target: &target}
			for _, p := range tc.pods {
				l.observe(p)
			}
			if diff := cmp.Diff(tc.want, target.Pods); diff != "" {
				t.Errorf("%s\nlook(...): -want, +got:\n%s", tc.reason, diff)
			}
			if l.container != tc.container || l.previous != tc.previous || tc.log != (l.suspect != nil && l.needsLog()) {
				t.Errorf("%s\nlook(...): want the log of %q, previous %t, asked %t; got %q, %t, %t", tc.reason, tc.container, tc.previous, tc.log, l.container, l.previous, l.suspect != nil && l.needsLog())
			}
		})
	}
}

// TestLedger: two workers cannot both take the last place of the budget, and an AppConfig that is
// gone takes none.
func TestLedger(t *testing.T) {
	l := newLedger()
	of := func(name string, k Key) *State {
		s := given(targets(runs(k, first)))
		s.AppConfig.Name, s.Budget = name, 1
		return s
	}
	if d := l.decide(of("a", web), nil); len(d.Patch) != 1 {
		t.Errorf("want the place taken, got %+v", d)
	}
	if d := l.decide(of("b", worker), nil); len(d.Patch) != 0 {
		t.Errorf("want no place left, got %+v", d)
	}
	// The cache still shows it, but the ledger has recorded that it ended.
	done := of("a", web)
	done.Wanted = first
	recorded(web, first, configv1.TargetUpdated, 60)(done)
	l.decide(done, nil)
	if d := l.decide(of("b", worker), nil); len(d.Patch) != 1 {
		t.Errorf("want the place free, got %+v", d)
	}
	stale := []Other{{Name: "c", Since: noon.Add(-time.Hour), Progressing: []Key{web}}}
	if d := l.decide(of("d", web), stale); len(d.Patch) != 0 {
		t.Errorf("want what the cache knows to count, got %+v", d)
	}
}
