package health

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAvailable checks Deployments that an autoscaler scales.
func TestAvailable(t *testing.T) {
	const (
		notAll = "Not all pods are ready"
		// aScaled was scaled from two pods to six.
		aScaled = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: team, generation: 3}
spec: {replicas: 6, progressDeadlineSeconds: 600}
`
		up   = `{type: Available, status: "True", reason: MinimumReplicasAvailable}`
		down = `{type: Available, status: "False", reason: MinimumReplicasUnavailable}`
	)
	cases := map[string]struct {
		reason string
		object string
		want   Status
	}{
		"New":          {reason: "A Deployment that no controller has observed yet is on its way.", object: aScaled, want: progressing(notAll)},
		"NoGeneration": {reason: "So is one that is not even stored.", object: strings.Replace(aScaled, ", generation: 3", "", 1), want: progressing(notAll)},
		"AllThere":     {reason: "All its pods are there and of the newest template.", object: aScaled + `status: {observedGeneration: 3, replicas: 6, updatedReplicas: 6, readyReplicas: 6, availableReplicas: 6, conditions: [` + up + `]}`, want: healthy()},
		"MoreAreToBeMade": {
			reason: "The autoscaler asked for more, of which none is made yet: the others serve.",
			object: aScaled + `status: {observedGeneration: 3, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2, conditions: [` + up + `]}`,
			want:   healthy(),
		},
		"MoreStart": {
			reason: "More of them start: the others serve.",
			object: aScaled + `status: {observedGeneration: 3, replicas: 6, updatedReplicas: 6, readyReplicas: 2, availableReplicas: 2, unavailableReplicas: 4, conditions: [` + up + `, {type: Progressing, status: "True", reason: ReplicaSetUpdated}]}`,
			want:   healthy(),
		},
		"FewerRemain": {
			reason: "The autoscaler asked for fewer and the rest is not gone yet.",
			object: strings.Replace(aScaled, "replicas: 6", "replicas: 2", 1) + `status: {observedGeneration: 3, replicas: 6, updatedReplicas: 6, readyReplicas: 6, availableReplicas: 6, conditions: [` + up + `]}`,
			want:   healthy(),
		},
		"OldGeneration": {
			reason: "A status of an old generation says nothing of the newest: it may be a new template's.",
			object: aScaled + `status: {observedGeneration: 2, replicas: 6, updatedReplicas: 6, readyReplicas: 6, availableReplicas: 6, conditions: [` + up + `]}`,
			want:   progressing(notAll),
		},
		"OldFailure": {
			reason: "Nor does a failure of an old generation.",
			object: aScaled + `status: {observedGeneration: 2, replicas: 6, updatedReplicas: 1, conditions: [` + down + `, {type: Progressing, status: "False", reason: ProgressDeadlineExceeded}]}`,
			want:   progressing(notAll),
		},
		"Rolls": {
			reason: "A new template rolls: that is waited for, though the old pods serve.",
			object: aScaled + `status: {observedGeneration: 3, replicas: 7, updatedReplicas: 1, readyReplicas: 6, availableReplicas: 6, conditions: [` + up + `, {type: Progressing, status: "True", reason: ReplicaSetUpdated}]}`,
			want:   progressing(notAll),
		},
		"RollsFromNothing": {reason: "A new template of which no pod is made yet rolls too.", object: aScaled + `status: {observedGeneration: 3, replicas: 6, readyReplicas: 6, availableReplicas: 6, conditions: [` + up + `]}`, want: progressing(notAll)},
		"Unavailable":      {reason: "Too few of them serve.", object: aScaled + `status: {observedGeneration: 3, replicas: 6, updatedReplicas: 6, readyReplicas: 1, availableReplicas: 1, conditions: [` + down + `]}`, want: progressing(notAll)},
		"AvailableUnknown": {
			reason: "Unknown is not available.",
			object: aScaled + `status: {observedGeneration: 3, replicas: 6, updatedReplicas: 6, readyReplicas: 1, availableReplicas: 1, conditions: [{type: Available, status: Unknown}]}`,
			want:   progressing(notAll),
		},
		"NoneServes": {reason: "Without a pod that serves nothing is available, whatever the condition says.", object: aScaled + `status: {observedGeneration: 3, replicas: 0, updatedReplicas: 0, conditions: [` + up + `]}`, want: progressing(notAll)},
		"Deadline": {
			reason: "No progress of a new template in time is a failure, and says where to look.",
			object: aScaled + `status: {observedGeneration: 3, replicas: 7, updatedReplicas: 1, readyReplicas: 6, availableReplicas: 6, conditions: [` + up + `, {type: Progressing, status: "False", reason: ProgressDeadlineExceeded}]}`,
			want:   failed("Rollout exceeded its progress deadline: see its pods"),
		},
		"Deleted": {
			reason: "What is on its way out and serves no more is not healthy.",
			object: strings.Replace(aScaled, "generation: 3", `generation: 3, deletionTimestamp: "2024-01-01T00:00:00Z"`, 1) + `status: {observedGeneration: 3, replicas: 6, updatedReplicas: 6, conditions: [` + down + `]}`,
			want:   progressing("Being deleted"),
		},
		"Unreadable": {
			reason: "What cannot be read is not healthy.",
			object: aScaled + "status: {observedGeneration: 3, replicas: six, updatedReplicas: six, conditions: all well}",
			want:   Of(object(t, aScaled+"status: {observedGeneration: 3, replicas: six, updatedReplicas: six, conditions: all well}")),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Available(object(t, tc.object))); diff != "" {
				t.Errorf("%s\nAvailable(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestAvailableAgrees: if Of reports a Deployment as healthy, so does Available, which is never
// stricter.
func TestAvailableAgrees(t *testing.T) {
	for n := range 3 {
		head := strings.Replace(aDeployment, "replicas: 2", fmt.Sprintf("replicas: %d", n), 1)
		for _, status := range []string{
			`{observedGeneration: 3, replicas: %[1]d, updatedReplicas: %[1]d, readyReplicas: %[1]d, availableReplicas: %[1]d, conditions: [{type: Available, status: "True"}]}`,
			`{observedGeneration: 3, replicas: %[1]d, updatedReplicas: %[1]d, readyReplicas: %[1]d, availableReplicas: %[1]d}`,
		} {
			obj := object(t, head+"status: "+fmt.Sprintf(status, n))
			if Of(obj).IsHealthy() && !Available(obj).IsHealthy() {
				t.Errorf("want healthy of %d pods, got %v", n, Available(obj))
			}
		}
	}
}
