package compose

import (
	"strings"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
)

// TestRespondRefusedByAPIServer: a change that the API server refuses counts as not applied,
// although an older version of the object exists.
func TestRespondRefusedByAPIServer(t *testing.T) {
	conf := Component{Name: "conf", Object: configMap("conf", "new")}
	web := Component{Name: "web", Object: deployment("web", "web:1")}
	task := Component{Name: "task", Object: configMap("task", "x"), Aside: true, After: []string{"conf"}}
	synced := func(status, message string, generation int) map[string]any {
		return map[string]any{"type": "Synced", "status": status, "message": message, "observedGeneration": generation}
	}
	const refused = "The API server refuses it as invalid: kubectl describe shows why in the events of this claim"
	type want struct {
		phase, message string
		ready          fnv1.Ready
		left           bool // what is declared of conf is not applied
		skipped        string
	}
	old := observe(Component{Object: configMap("conf", "old")})
	byHand := observe(conf)
	byHand.GetFields()["data"].GetStructValue().GetFields()["value"] = structpb.NewStringValue("by hand")
	cases := map[string]struct {
		reason     string
		conf       *structpb.Struct
		synced     map[string]any
		readyUntil int
		want       want
	}{
		"Refused": {
			reason: "The claim names the component that was refused, and is not ready.",
			conf:   old, synced: synced("False", "Unsynced resources: conf", 2), readyUntil: 1,
			want: want{phase: "Failed", message: "Waiting for conf (" + refused + ")", ready: fnv1.Ready_READY_FALSE},
		},
		"RefusedAtFirst": {
			reason: "So it is with one that was never created.",
			synced: synced("False", "Unsynced resources: a, b, and conf", 2),
			want:   want{phase: "Failed", message: "Waiting for conf (" + refused + ")", ready: fnv1.Ready_READY_FALSE},
		},
		"RefusedOfMany": {
			reason: "Crossplane names three: any that is not as declared may be another.",
			conf:   old, synced: synced("False", "Unsynced resources: a, b, c, and 2 more", 2),
			want: want{phase: "Failed", message: "Waiting for conf (" + refused + ")", ready: fnv1.Ready_READY_FALSE},
		},
		"RefusedAfterItWasReady": {
			reason: "A change of ours that is refused counts too.",
			conf:   old, synced: synced("False", "Unsynced resources: conf", 2), readyUntil: 2,
			want: want{phase: "Failed", message: "Waiting for conf (" + refused + ")", ready: fnv1.Ready_READY_FALSE},
		},
		"EarlierGeneration": {
			reason: "What was refused of an earlier generation may be taken now.",
			conf:   old, synced: synced("False", "Unsynced resources: conf", 1), readyUntil: 1,
			want: want{phase: "Deploying", message: "Waiting for conf", ready: fnv1.Ready_READY_FALSE},
		},
		"AnotherIsRefused": {
			reason: "Another function's is the claim's too.",
			conf:   observe(conf), synced: synced("False", "Unsynced resources: other", 2), readyUntil: 2,
			want: want{phase: "Degraded", message: "Waiting for the API server to take what it refuses as invalid: kubectl describe shows why in the events of this claim", ready: fnv1.Ready_READY_FALSE},
		},
		"RefusedAsItIs": {
			reason: "An edit by hand may make what was applied before invalid: the mark on the object does not show that.",
			conf:   observe(conf), synced: synced("False", "Unsynced resources: conf", 2), readyUntil: 2,
			want: want{phase: "Failed", message: "Waiting for conf (" + refused + ")", ready: fnv1.Ready_READY_FALSE},
		},
		"Stopped": {
			reason: "At another refusal Crossplane stops before it writes the status: the component is left as it is for a pass, so that the claim can say so.",
			conf:   old, synced: synced("False", `cannot compose resources: cannot apply composed resource "conf": exceeded quota`, 2), readyUntil: 1,
			want: want{phase: "Failed", message: "Waiting for conf (The API server refuses it: exceeded quota)", ready: fnv1.Ready_READY_FALSE, left: true},
		},
		"StoppedAtAnEdit": {
			reason: "What was edited by hand bears the mark of what was applied before: to apply that again would be refused again.",
			conf:   byHand, synced: synced("False", `cannot compose resources: cannot apply composed resource "conf": denied`, 2), readyUntil: 1,
			want: want{phase: "Failed", message: "Waiting for conf (The API server refuses it: denied)", ready: fnv1.Ready_READY_FALSE, left: true},
		},
		"StoppedAtFirst": {
			reason: "So it is with one that was never created.",
			synced: synced("False", `cannot compose resources: cannot apply composed resource "conf": exceeded quota`, 2),
			want:   want{phase: "Failed", message: "Waiting for conf (The API server refuses it: exceeded quota)", ready: fnv1.Ready_READY_FALSE, left: true},
		},
		"StoppedWhileReady": {
			reason: "A claim that has been ready as it is goes on: it may be the API server that is unwell.",
			conf:   observe(conf), synced: synced("False", `cannot compose resources: cannot apply composed resource "conf": timeout`, 2), readyUntil: 2,
			want: want{phase: "Running"},
		},
		"StoppedAtOneThatIsGone": {
			reason: "What the claim was ready with is not there any more, and cannot be created.",
			synced: synced("False", `cannot compose resources: cannot apply composed resource "conf": exceeded quota`, 2), readyUntil: 2,
			want: want{phase: "Failed", message: "Waiting for conf (The API server refuses it: exceeded quota)", ready: fnv1.Ready_READY_FALSE, left: true},
		},
		"StoppedAtAChangeWhileReady": {
			reason: "A change of ours that is refused keeps the status from being written, too.",
			conf:   old, synced: synced("False", `cannot compose resources: cannot apply composed resource "conf": denied`, 2), readyUntil: 2,
			want: want{phase: "Failed", message: "Waiting for conf (The API server refuses it: denied)", ready: fnv1.Ready_READY_FALSE, left: true},
		},
		"StoppedAtAnother": {
			reason: "What is refused beside it would be the next to stop Crossplane: nothing is changed in a pass that writes the status.",
			conf:   old, synced: synced("False", `cannot compose resources: cannot apply composed resource "web": denied`, 2), readyUntil: 1,
			want: want{phase: "Failed", message: "Waiting for web (The API server refuses it: denied)", ready: fnv1.Ready_READY_FALSE, left: true},
		},
		"StoppedAtLength": {
			reason: "A long error is cut between characters: a message that is no valid UTF-8 could not be sent.",
			conf:   old, synced: synced("False", `cannot compose resources: cannot apply composed resource "conf": x`+strings.Repeat("é", 150), 2), readyUntil: 1,
			want: want{phase: "Failed", message: "Waiting for conf (The API server refuses it: x" + strings.Repeat("é", 149) + "…)", ready: fnv1.Ready_READY_FALSE, left: true},
		},
		"StoppedAside": {
			reason: "A task that the claim is ready without holds up neither the others nor what they report.",
			conf:   observe(conf), synced: synced("False", `cannot compose resources: cannot apply composed resource "task": exceeded quota`, 2), readyUntil: 2,
			want: want{phase: "Running", skipped: "task"},
		},
		"NotSynced": {
			reason: "Another failure is no refusal: it is over with the next pass, or Crossplane writes no status at all.",
			conf:   observe(conf), synced: synced("False", "cannot compose resources: timeout", 2), readyUntil: 2,
			want: want{phase: "Running"},
		},
		"RenewedWhileReady": {
			reason: "A change of ours to what is stored does not make a claim that is ready unready for a pass.",
			conf:   old, synced: synced("True", "", 2), readyUntil: 2,
			want: want{phase: "Running"},
		},
		"Edited": {
			reason: "A change by an edit is waited for.",
			conf:   old, synced: synced("True", "", 1), readyUntil: 1,
			want: want{phase: "Deploying", message: "Waiting for conf", ready: fnv1.Ready_READY_FALSE},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			observed := map[string]*structpb.Struct{"web": madeHealthy(observe(web))}
			if tc.conf != nil {
				observed["conf"] = tc.conf
			}
			status := map[string]any{"phase": "Running", "conditions": []any{tc.synced}}
			if tc.readyUntil != 0 {
				status["readyGeneration"] = tc.readyUntil
			}
			req := request(t, 2, status, observed)
			req.RequiredResources = map[string]*fnv1.Resources{"existing/conf": nil, "existing/task": nil}
			rsp := respondNext(req, planned(&Plan{Components: []Component{conf, web, task}}), SystemSource{})
			s := rsp.GetDesired().GetComposite().GetResource().GetFields()["status"].GetStructValue().GetFields()
			got := want{phase: s["phase"].GetStringValue(), message: s["message"].GetStringValue(), ready: rsp.GetDesired().GetComposite().GetReady()}
			value := rsp.GetDesired().GetResources()["conf"].GetResource().GetFields()["data"].GetStructValue().GetFields()["value"].GetStringValue()
			got.left = value != "new"
			if tc.want.skipped != "" && rsp.GetDesired().GetResources()[tc.want.skipped] == nil {
				got.skipped = tc.want.skipped
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\nRespond(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDecideSecret: a Secret has no hash of its declaration, so its values are compared.
func TestDecideSecret(t *testing.T) {
	cases := map[string]struct {
		reason string
		values map[string]string
		want   bool
	}{
		"Same":    {reason: "It has the value that is declared.", values: map[string]string{"password": "p"}, want: true},
		"More":    {reason: "Keys of others are theirs.", values: map[string]string{"password": "p", "theirs": "x"}, want: true},
		"Another": {reason: "It has another value.", values: map[string]string{"password": "q"}},
		"Missing": {reason: "It has lost the value.", values: map[string]string{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d, err := Decide(claimOf(map[string]*structpb.Struct{"password": stored(secret(t, "password", tc.values))}), &Plan{Components: []Component{{Name: "password", Object: passwordSecret("p")}}})
			if err != nil {
				t.Fatal(err)
			}
			if got := d.Health["password"].IsHealthy(); got != tc.want {
				t.Errorf("%s\nDecide(): want healthy %t, got %v", tc.reason, tc.want, d.Health["password"])
			}
		})
	}
}
