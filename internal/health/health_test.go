package health

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

func object(t testing.TB, text string) *structpb.Struct {
	t.Helper()
	b, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s := &structpb.Struct{}
	if err := s.UnmarshalJSON(b); err != nil {
		t.Fatal(err)
	}
	return s
}

// Objects without a status, which each case adds.
const (
	aDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: team, generation: 3}
spec: {replicas: 2, progressDeadlineSeconds: 600}
`
	aStatefulSet = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: team, generation: 3}
spec: {replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 0}}}
`
	aJob = `
apiVersion: batch/v1
kind: Job
metadata: {name: migrate, namespace: team, generation: 1}
spec: {completions: 1}
`
	aCronJob = `
apiVersion: batch/v1
kind: CronJob
metadata: {name: clean, namespace: team, generation: 1}
spec: {schedule: "* * * * *"}
`
	anAppConfig = `
apiVersion: config.example.com/v1
kind: AppConfig
metadata: {name: app, namespace: team, generation: 4}
`
	aComposite = `
apiVersion: apps.example.com/v1
kind: DatabaseCluster
metadata: {name: db, namespace: team, generation: 4}
spec: {size: 3}
`
)

func TestOf(t *testing.T) {
	const (
		notAll      = "Not all pods are ready"
		seeDatabase = "Not ready yet: see DatabaseCluster db"
	)
	cases := map[string]struct {
		reason string
		object string
		want   Status
	}{
		"AppConfigNew":   {reason: "An AppConfig that no controller has observed yet is on its way.", object: anAppConfig, want: progressing("Not ready yet: see AppConfig app")},
		"AppConfigReady": {reason: "Its targets run what it asks for.", object: anAppConfig + `status: {conditions: [{type: Synced, status: "True", observedGeneration: 4}, {type: Ready, status: "True", observedGeneration: 4}]}`, want: healthy()},
		"AppConfigRollsOut": {
			reason: "What it waits for it says itself.",
			object: anAppConfig + `status: {conditions: [{type: Synced, status: "True", observedGeneration: 4}, {type: Ready, status: "False", reason: RollingOut, message: "Deployment web is on its way", observedGeneration: 4}]}`,
			want:   progressing("Not ready yet: see AppConfig app"),
		},
		"PodsFail": {
			reason: "What does not pass by itself is passed on.",
			object: aComposite + `status: {phase: Deploying, podFailure: "web-1: cannot pull image x: not found", conditions: [{type: Synced, status: "True", observedGeneration: 4}, {type: Ready, status: "False", reason: Creating, observedGeneration: 4}]}`,
			want:   progressing("web-1: cannot pull image x: not found"),
		},
		"AppConfigRolledBack": {
			reason: "It has given up: what failed is not tried again.",
			object: anAppConfig + `status: {conditions: [{type: Synced, status: "True", observedGeneration: 4}, {type: Ready, status: "False", reason: RolledBack, message: "Pod web-1 keeps failing", observedGeneration: 4}]}`,
			want:   failed("Pod web-1 keeps failing"),
		},
		"AppConfigInvalid": {
			reason: "It cannot begin.",
			object: anAppConfig + `status: {conditions: [{type: Synced, status: "True", observedGeneration: 4}, {type: Ready, status: "False", reason: InvalidConfig, message: "Key a b", observedGeneration: 4}]}`,
			want:   failed("Key a b"),
		},
		"AppConfigChanged": {
			reason: "That was an old generation's: the newest may mend it.",
			object: anAppConfig + `status: {conditions: [{type: Synced, status: "True", observedGeneration: 3}, {type: Ready, status: "False", reason: RolledBack, message: "Pod web-1 keeps failing", observedGeneration: 3}]}`,
			want:   progressing("Not ready yet: see AppConfig app"),
		},
		"DeploymentNew": {reason: "A Deployment that no controller has observed yet is on its way.", object: aDeployment, want: progressing(notAll)},
		"DeploymentHealthy": {
			reason: "All pods are of the newest generation and available.",
			object: aDeployment + `status: {observedGeneration: 3, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2, conditions: [{type: Available, status: "True", reason: MinimumReplicasAvailable}, {type: Progressing, status: "True", reason: NewReplicaSetAvailable}]}`,
			want:   healthy(),
		},
		"DeploymentOldGeneration": {
			reason: "A status of an old generation says nothing of the newest.",
			object: aDeployment + `status: {observedGeneration: 2, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2, conditions: [{type: Available, status: "True", reason: MinimumReplicasAvailable}, {type: Progressing, status: "True", reason: NewReplicaSetAvailable}]}`,
			want:   progressing(notAll),
		},
		"DeploymentOldFailure": {
			reason: "Nor does a failure of an old generation: the change may mend it.",
			object: aDeployment + `status: {observedGeneration: 2, replicas: 2, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1, conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded}]}`,
			want:   progressing(notAll),
		},
		"DeploymentRolls": {
			reason: "Old pods still serve while new ones come.",
			object: aDeployment + `status: {observedGeneration: 3, replicas: 3, updatedReplicas: 1, readyReplicas: 2, availableReplicas: 2, conditions: [{type: Available, status: "True", reason: MinimumReplicasAvailable}, {type: Progressing, status: "True", reason: ReplicaSetUpdated}]}`,
			want:   progressing(notAll),
		},
		"DeploymentOldPodsLeave": {
			reason: "New pods are there, an old one is not gone yet.",
			object: aDeployment + `status: {observedGeneration: 3, replicas: 3, updatedReplicas: 2, readyReplicas: 3, availableReplicas: 3, conditions: [{type: Available, status: "True", reason: MinimumReplicasAvailable}, {type: Progressing, status: "True", reason: ReplicaSetUpdated}]}`,
			want:   progressing(notAll),
		},
		"DeploymentPodLost": {
			reason: "One pod of two is not available.",
			object: aDeployment + `status: {observedGeneration: 3, replicas: 2, updatedReplicas: 2, readyReplicas: 1, availableReplicas: 1, conditions: [{type: Available, status: "False", reason: MinimumReplicasUnavailable}, {type: Progressing, status: "True", reason: NewReplicaSetAvailable}]}`,
			want:   progressing(notAll),
		},
		"DeploymentDeadline": {
			reason: "No progress in time is a failure, and says where to look.",
			object: aDeployment + `status: {observedGeneration: 3, replicas: 3, updatedReplicas: 1, readyReplicas: 2, availableReplicas: 2, conditions: [{type: Available, status: "True", reason: MinimumReplicasAvailable}, {type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: 'ReplicaSet "web-1" has timed out progressing.'}]}`,
			want:   failed("Rollout exceeded its progress deadline: see its pods"),
		},
		"DeploymentDeleted": {
			reason: "What is on its way out is not healthy, however well it is.",
			object: strings.Replace(aDeployment, "generation: 3", `generation: 3, deletionTimestamp: "2024-01-01T00:00:00Z"`, 1) + `status: {observedGeneration: 3, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2, conditions: [{type: Available, status: "True", reason: MinimumReplicasAvailable}, {type: Progressing, status: "True", reason: NewReplicaSetAvailable}]}`,
			want:   progressing("Being deleted"),
		},
		"StatefulSetNew": {reason: "A StatefulSet that no controller has observed yet is on its way.", object: aStatefulSet, want: progressing(notAll)},
		"StatefulSetHealthy": {
			reason: "All pods are of the newest revision and ready.",
			object: aStatefulSet + `
status: {observedGeneration: 3, replicas: 3, readyReplicas: 3, currentReplicas: 3, updatedReplicas: 3, currentRevision: db-2, updateRevision: db-2}`,
			want: healthy(),
		},
		"StatefulSetOldGeneration": {
			reason: "A status of an old generation says nothing of the newest.",
			object: aStatefulSet + `
status: {observedGeneration: 2, replicas: 3, readyReplicas: 3, currentReplicas: 3, updatedReplicas: 3, currentRevision: db-2, updateRevision: db-2}`,
			want: progressing(notAll),
		},
		"StatefulSetScales": {
			reason: "One of three is not ready.",
			object: aStatefulSet + `
status: {observedGeneration: 3, replicas: 3, readyReplicas: 2, currentReplicas: 3, updatedReplicas: 3, currentRevision: db-2, updateRevision: db-2}`,
			want: progressing(notAll),
		},
		"StatefulSetRolls": {
			reason: "All are ready but not all are rolled.",
			object: aStatefulSet + `
status: {observedGeneration: 3, replicas: 3, readyReplicas: 3, currentReplicas: 2, updatedReplicas: 1, currentRevision: db-1, updateRevision: db-2}`,
			want: progressing(notAll),
		},
		"StatefulSetShrinks": {
			reason: "One too many is not what is asked for.",
			object: aStatefulSet + `
status: {observedGeneration: 3, replicas: 4, readyReplicas: 4, currentReplicas: 4, updatedReplicas: 4, currentRevision: db-2, updateRevision: db-2}`,
			want: progressing(notAll),
		},
		"JobNew":                  {reason: "A Job is a gate: it is not healthy when it starts.", object: aJob, want: progressing("The Job has not completed yet")},
		"JobRuns":                 {reason: "Nor while it runs.", object: aJob + "status: {active: 1, startTime: \"2024-01-01T00:00:00Z\"}", want: progressing("The Job has not completed yet")},
		"JobRetries":              {reason: "A pod that failed is worth a look, but not the end.", object: aJob + "status: {active: 1, failed: 2}", want: progressing("A pod of the Job failed and is tried again: check the logs of its pods")},
		"JobAboutToComplete":      {reason: "Criteria that are met are not completion: pods may still be there.", object: aJob + `status: {succeeded: 1, conditions: [{type: SuccessCriteriaMet, status: "True"}]}`, want: progressing("The Job has not completed yet")},
		"JobComplete":             {reason: "It is healthy once it completed.", object: aJob + `status: {succeeded: 1, conditions: [{type: SuccessCriteriaMet, status: "True"}, {type: Complete, status: "True"}]}`, want: healthy()},
		"JobCompleteAfterRetries": {reason: "Also when a pod failed on the way.", object: aJob + `status: {succeeded: 1, failed: 2, conditions: [{type: Complete, status: "True"}]}`, want: healthy()},
		"JobNotComplete":          {reason: "A condition that is False is not met.", object: aJob + `status: {active: 1, conditions: [{type: Complete, status: "False"}, {type: Failed, status: "False"}]}`, want: progressing("The Job has not completed yet")},
		"JobFailed": {
			reason: "A Job that gave up failed, and says why.",
			object: aJob + `status: {failed: 5, conditions: [{type: FailureTarget, status: "True"}, {type: Failed, status: "True", reason: BackoffLimitExceeded}]}`,
			want:   failed("The Job failed (BackoffLimitExceeded): check the logs of its pods"),
		},
		"JobSuspended":                    {reason: "Nothing may pass a gate that stands still.", object: aJob + `status: {conditions: [{type: Suspended, status: "True"}]}`, want: progressing("The Job has not completed yet")},
		"CronJob":                         {reason: "A CronJob is healthy once it is stored: its first run may be months away.", object: aCronJob, want: healthy()},
		"CronJobDeleted":                  {reason: "But not on its way out.", object: strings.Replace(aCronJob, "generation: 1", `generation: 1, deletionTimestamp: "2024-01-01T00:00:00Z"`, 1), want: progressing("Being deleted")},
		"CompositeNew":                    {reason: "A composite without conditions is not ready.", object: aComposite, want: progressing(seeDatabase)},
		"CompositeReady":                  {reason: "It is healthy when Ready is True at its generation.", object: aComposite + `status: {conditions: [{type: Synced, status: "True", observedGeneration: 4}, {type: Ready, status: "True", observedGeneration: 4}]}`, want: healthy()},
		"CompositeReadyWithoutGeneration": {reason: "A condition without a generation is believed: it is older than the field.", object: aComposite + `status: {conditions: [{type: Ready, status: "True"}]}`, want: healthy()},
		"CompositeReadyOldGeneration": {
			reason: "Ready at an old generation is not ready.",
			object: aComposite + `status: {conditions: [{type: Synced, status: "True", observedGeneration: 3}, {type: Ready, status: "True", observedGeneration: 3}]}`,
			want:   progressing(seeDatabase),
		},
		"CompositeWaits": {
			reason: "It says itself what it waits for: to repeat that would be a write to its owner at each change of it.",
			object: aComposite + `status: {phase: Creating, message: "Waiting for postgresql (No primary yet)", conditions: [{type: Ready, status: "False", reason: Creating, message: "Unready resources: a, b"}]}`,
			want:   progressing(seeDatabase),
		},
		"CompositeNotSynced": {
			reason: "One that cannot be synced says why, even while it is still ready.",
			object: aComposite + `status: {message: "Waiting for x", conditions: [{type: Synced, status: "False", message: "cannot apply"}, {type: Ready, status: "True", observedGeneration: 4}]}`,
			want:   progressing("cannot apply"),
		},
		"CompositeNotSyncedWithoutWords": {reason: "Or that it is not; its own message is about something else.", object: aComposite + `status: {message: "Waiting for x", conditions: [{type: Synced, status: "False"}]}`, want: progressing("It is not synced")},
		"CompositeFailed": {
			reason: "A nested claim that failed passes its reason on.",
			object: aComposite + `status: {phase: Failed, message: "engine mysql is not available yet: use engine postgresql", conditions: [{type: Ready, status: "False", observedGeneration: 4}]}`,
			want:   failed("engine mysql is not available yet: use engine postgresql"),
		},
		"CompositeFailedWithoutWords": {reason: "Or says that it failed.", object: aComposite + `status: {phase: Failed}`, want: failed("Reconciliation failed")},
		"CompositeFailedOldGeneration": {
			reason: "A failure of an old generation is not the newest's: the claim has just been mended.",
			object: aComposite + `status: {phase: Failed, message: "engine mysql is not available yet", conditions: [{type: Synced, status: "True", observedGeneration: 3}, {type: Ready, status: "False", observedGeneration: 3}]}`,
			want:   progressing(seeDatabase),
		},
		"CompositeDegraded": {
			reason: "One that was well and is not any more says what of it is not.",
			object: aComposite + `status: {phase: Degraded, message: "Waiting for postgresql (No primary takes writes)", conditions: [{type: Ready, status: "False", observedGeneration: 4}]}`,
			want:   progressing("postgresql (No primary takes writes)"),
		},
		"CompositeRefused": {
			reason: "A claim whose change was refused is what it was before.",
			object: aComposite + `status: {phase: Running, conditions: [{type: Accepted, status: "False", reason: Invalid, message: "size 0"}, {type: Ready, status: "True", observedGeneration: 4}]}`,
			want:   failed("size 0"),
		},
		"CompositeSettings": {
			reason: "One that goes on with the settings that it had has not failed.",
			object: aComposite + `status: {phase: Running, conditions: [{type: Accepted, status: "False", reason: SettingsInvalid, message: "a typo"}, {type: Ready, status: "True", observedGeneration: 4}]}`,
			want:   healthy(),
		},
		"CompositeDegradedWithoutWords": {reason: "Or where to look.", object: aComposite + `status: {phase: Degraded, conditions: [{type: Ready, status: "False", observedGeneration: 4}]}`, want: progressing(seeDatabase)},
		"CompositeDegradedAndReady": {
			reason: "Phases do not judge, the Ready condition does.",
			object: aComposite + `status: {phase: Degraded, message: "Far behind the primary: a", conditions: [{type: Ready, status: "True", observedGeneration: 4}]}`,
			want:   healthy(),
		},
		"CompositeFailedNotSynced": {
			reason: "A failure is the end, so it is told before what is not synced.",
			object: aComposite + `status: {phase: Failed, message: "image is missing", conditions: [{type: Synced, status: "False", message: "cannot apply"}]}`,
			want:   failed("image is missing"),
		},
		"CompositeNotSyncedOldGeneration": {
			reason: "What could not be synced of an old generation may be mended in the newest.",
			object: aComposite + `status: {conditions: [{type: Synced, status: "False", observedGeneration: 3, message: "cannot apply"}, {type: Ready, status: "True", observedGeneration: 3}]}`,
			want:   progressing(seeDatabase),
		},
		"CompositeDeleted": {
			reason: "What is on its way out is not healthy.",
			object: strings.Replace(aComposite, "generation: 4", `generation: 4, deletionTimestamp: "2024-01-01T00:00:00Z"`, 1) + `status: {conditions: [{type: Ready, status: "True", observedGeneration: 4}]}`,
			want:   progressing("Being deleted"),
		},
		"ReadyUnknown":       {reason: "Unknown is not ready.", object: aComposite + `status: {conditions: [{type: Ready, status: Unknown}]}`, want: progressing(seeDatabase)},
		"VolumeClaimPending": {reason: "A volume claim is judged by kstatus.", object: "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nstatus: {phase: Pending}", want: progressing("PVC is not Bound. phase: Pending")},
		"VolumeClaimBound":   {reason: "It is healthy once it is bound.", object: "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nstatus: {phase: Bound}", want: healthy()},
		"UnknownKind":        {reason: "An object of an unknown kind must report that it is ready.", object: "apiVersion: example.org/v1\nkind: Widget\nmetadata: {name: w}", want: progressing("Not ready yet: see Widget w")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Of(object(t, tc.object))); diff != "" {
				t.Errorf("%s\nOf(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestOfNothing: an empty object causes no panic.
func TestOfNothing(_ *testing.T) {
	for _, obj := range []*structpb.Struct{nil, {}, {Fields: map[string]*structpb.Value{"apiVersion": structpb.NewStringValue("a/b/c")}}} {
		_ = Of(obj)
		_ = OfMissing(obj)
		_ = Available(obj)
	}
}

// TestOfUnreadable: an object whose status has a shape that no controller writes is not healthy,
// and the message does not repeat its content.
func TestOfUnreadable(t *testing.T) {
	cases := map[string]string{
		"DeploymentStatusText":       aDeployment + "status: up",
		"DeploymentConditionsText":   aDeployment + "status: {observedGeneration: 3, conditions: all well}",
		"DeploymentConditionNumbers": aDeployment + "status: {observedGeneration: 3, conditions: [1, 2]}",
		"DeploymentGenerationText":   aDeployment + "status: {observedGeneration: three}",
		"StatefulSetReplicasText":    aStatefulSet + "status: {observedGeneration: 3, replicas: three}",
		"JobConditionsObject":        aJob + "status: {conditions: {type: Complete}}",
		"JobStatusList":              aJob + "status: [1]",
		"CompositeConditionsText":    aComposite + "status: {conditions: Ready}",
		"CompositePhaseNumber":       aComposite + "status: {phase: 7}",
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			s := Of(object(t, text))
			if s.IsHealthy() || s.Message == "" {
				t.Errorf("want it not to be healthy and to say so, got %v", s)
			}
			if strings.ContainsAny(s.Message, "\n\t") {
				t.Errorf("want one line, got %q", s.Message)
			}
		})
	}
}

func TestStoredKinds(t *testing.T) {
	for gk := range stored {
		t.Run(gk.String(), func(t *testing.T) {
			obj := object(t, `metadata: {name: x, generation: 7}
status: {observedGeneration: 1, conditions: [{type: Ready, status: "False"}]}`)
			obj.Fields["apiVersion"] = structpb.NewStringValue(schema.GroupVersion{Group: gk.Group, Version: "v1"}.String())
			obj.Fields["kind"] = structpb.NewStringValue(gk.Kind)
			if !IsStored(gk) {
				t.Errorf("IsStored(): want true")
			}
			if s := Of(obj); !s.IsHealthy() || s.Message != "" {
				t.Errorf("It is healthy once it is stored, whatever its status says: got %v", s)
			}
			if s := OfMissing(obj); s.IsHealthy() {
				t.Errorf("It is not healthy before it is stored")
			}
			meta := obj.GetFields()["metadata"].GetStructValue()
			meta.Fields["deletionTimestamp"] = structpb.NewStringValue("2024-01-01T00:00:00Z")
			if diff := cmp.Diff(progressing("Being deleted"), Of(obj)); diff != "" {
				t.Errorf("What is on its way out is not healthy: -want, +got:\n%s", diff)
			}
		})
	}
	for _, gk := range []schema.GroupKind{
		{Group: "apps", Kind: "Deployment"}, {Group: "apps", Kind: "StatefulSet"}, {Group: "batch", Kind: "Job"},
		{Kind: "PersistentVolumeClaim"}, {Group: "apps.example.com", Kind: "Secret"}, {Group: "example.org", Kind: "ConfigMap"}, {Kind: "Deployment"},
	} {
		if IsStored(gk) {
			t.Errorf("%s is more than stored: something is to wait for, or it is another group's", gk)
		}
	}
}

// TestOfMissing: an object that does not exist is never healthy, and has the message that it will
// have right after it is created.
func TestOfMissing(t *testing.T) {
	cases := map[string]struct {
		reason string
		object string
		want   Status
	}{
		"Deployment": {reason: "Its pods will not be ready.", object: aDeployment, want: progressing("Not all pods are ready")},
		"Job":        {reason: "It will not have completed.", object: aJob, want: progressing("The Job has not completed yet")},
		"Composite":  {reason: "It will not be ready.", object: aComposite, want: progressing("Not ready yet: see DatabaseCluster db")},
		"Stored":     {reason: "It will be healthy, but it is not there.", object: aCronJob, want: progressing("Not created yet")},
		"NoPods":     {reason: "What would be healthy at once is not there either.", object: strings.Replace(aDeployment, "replicas: 2", "replicas: 0", 1), want: progressing("Not all pods are ready")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, OfMissing(object(t, tc.object))); diff != "" {
				t.Errorf("%s\nOfMissing(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestGroupKind(t *testing.T) {
	cases := map[string]struct {
		reason string
		object string
		want   schema.GroupKind
	}{
		"Core":    {reason: "The core group has no name.", object: "{apiVersion: v1, kind: Secret}", want: schema.GroupKind{Kind: "Secret"}},
		"Group":   {reason: "The version does not count.", object: "{apiVersion: apps/v1beta9, kind: Deployment}", want: schema.GroupKind{Group: "apps", Kind: "Deployment"}},
		"Nothing": {reason: "Nothing is nothing.", object: "{}", want: schema.GroupKind{}},
		"Odd":     {reason: "A version that is none leaves the kind.", object: "{apiVersion: a/b/c, kind: K}", want: schema.GroupKind{Kind: "K"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, GroupKind(object(t, tc.object))); diff != "" {
				t.Errorf("%s\nGroupKind(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestMessagesHaveNoCounts: messages contain no counts, because each change of a message is a write
// to the claim, and a rollout of many pods would cause many.
func TestMessagesHaveNoCounts(t *testing.T) {
	seen := map[string]bool{}
	for ready := range 10 {
		obj := object(t, aDeployment)
		obj.Fields["spec"].GetStructValue().Fields["replicas"] = structpb.NewNumberValue(10)
		b, err := json.Marshal(map[string]any{"observedGeneration": 3, "replicas": 10, "updatedReplicas": 10, "readyReplicas": ready, "availableReplicas": ready})
		if err != nil {
			t.Fatal(err)
		}
		st := &structpb.Struct{}
		if err := st.UnmarshalJSON(b); err != nil {
			t.Fatal(err)
		}
		obj.Fields["status"] = structpb.NewStructValue(st)
		seen[Of(obj).Message] = true
	}
	if len(seen) != 1 {
		t.Errorf("want one message while pods come, got %v", seen)
	}
}

// TestMessagesOfCompositesStay: while a composite resource is progressing its message for the owner
// stays the same, however often its own status changes.
func TestMessagesOfCompositesStay(t *testing.T) {
	seen := map[string]bool{OfMissing(object(t, aComposite)).Message: true}
	for _, st := range []string{
		`{}`,
		`{phase: Pending, message: "Waiting for a, b"}`,
		`{phase: Creating, message: "Waiting for b", conditions: [{type: Ready, status: "False", message: "Unready resources: b"}]}`,
		`{phase: Deploying, message: "Waiting for c", conditions: [{type: Synced, status: "True"}, {type: Ready, status: "False", reason: Creating}]}`,
		`{phase: Running, conditions: [{type: Synced, status: "True", observedGeneration: 3}, {type: Ready, status: "True", observedGeneration: 3}]}`,
	} {
		seen[Of(object(t, aComposite+"status: "+st)).Message] = true
	}
	if len(seen) != 1 {
		t.Errorf("want one message on the way, got %v", seen)
	}
}

// TestOfLeavesTheObject: the functions do not modify the object.
func TestOfLeavesTheObject(t *testing.T) {
	for _, text := range []string{aDeployment, aStatefulSet, aJob, aCronJob, aComposite} {
		obj, same := object(t, text), object(t, text)
		_ = Of(obj)
		_ = OfMissing(obj)
		_ = Available(obj)
		if obj.String() != same.String() {
			t.Errorf("want %v, got %v", same, obj)
		}
	}
}
