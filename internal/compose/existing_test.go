package compose

import (
	"strings"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"

	"github.com/storeplane/storeplane/internal/fieldowner"
)

// fixedSource generates the same password each time, which differs from those of existing objects.
type fixedSource struct{ SystemSource }

func (fixedSource) Password() (string, error) { return "drawn", nil }

// ownedBy returns a copy of an object with a controller reference.
func ownedBy(s *structpb.Struct, kind, name, uid string) *structpb.Struct {
	out := proto.CloneOf(s)
	child(out, "metadata").Fields["ownerReferences"] = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
		"kind": structpb.NewStringValue(kind), "name": structpb.NewStringValue(name), "uid": structpb.NewStringValue(uid), "controller": structpb.NewBoolValue(true),
	}})}})
	return out
}

// labelled returns a copy of an object with the label and the annotation of a composed resource.
func labelled(s *structpb.Struct, claim, component string) *structpb.Struct {
	out := annotated(s, ComponentAnnotation, component)
	child(child(out, "metadata"), "labels").Fields[compositeLabel] = structpb.NewStringValue(claim)
	return out
}

// managedBy returns a copy of an object with an entry of this field manager.
func managedBy(s *structpb.Struct, manager string) *structpb.Struct {
	out := proto.CloneOf(s)
	child(out, "metadata").Fields["managedFields"] = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{
		"manager": structpb.NewStringValue(manager),
	}})}})
	return out
}

func annotated(s *structpb.Struct, key, value string) *structpb.Struct {
	out := proto.CloneOf(s)
	annotate(out, key, value)
	return out
}

const claimUID = "11111111-0000-4000-8000-000000000000"

// newcomer is the intent of a new claim that composes a Secret with a password and a ConfigMap with
// the same password.
func newcomer(c *Claim) (*Plan, error) {
	password, err := c.Secret("password", "password", Source.Password)
	if err != nil {
		return nil, err
	}
	p := &Plan{Components: []Component{{Name: "password", Object: passwordSecret(password)}, {Name: "conf", Object: configMap("conf", password)}}}
	_, err = planned(p)(c)
	return p, err
}

// TestRespondOverExisting: an object that is applied for the first time never overwrites one that
// does not belong to the claim.
func TestRespondOverExisting(t *testing.T) {
	theirs := secret(t, "password", map[string]string{"password": "theirs"})
	type want struct {
		asked    []string
		applied  []string
		password string
		phase    string
		message  string
		reason   string
	}
	const refused = "Secret shop-password exists already and is not part of this claim: choose another name for this claim, delete the object, or let this claim change and own it: kubectl annotate secret shop-password storeplane.example.com/allow-adoption-by=WebApp/shop"
	both := []string{"existing/conf", "existing/password"}
	cases := map[string]struct {
		reason string
		// exists is the object with the Secret's name, or nil for none.
		exists *structpb.Struct
		// conf is the object with the ConfigMap's name, or nil for none.
		conf   *structpb.Struct
		unseen bool
		want   want
	}{
		"NotSeenYet": {
			reason: "Before Crossplane has looked nothing is applied.", unseen: true,
			want: want{asked: both},
		},
		"Nothing": {
			reason: "Where nothing stands a password is drawn.",
			want:   want{asked: both, applied: []string{"conf", "password"}, password: "drawn", phase: "Pending", message: "Waiting for password, conf"},
		},
		"Someones": {
			reason: "An object of another creator stays as it is, and the claim names it with the ways out.", exists: theirs,
			want: want{asked: both, phase: "Failed", message: refused, reason: "AlreadyExists"},
		},
		"SomeonesBoth": {
			reason: "Of several the first is named, and the number of the others.", exists: theirs, conf: applied(t, configMap("conf", "theirs")),
			want: want{asked: both, phase: "Failed", message: refused + ". Further objects of others with names of this claim: 1", reason: "AlreadyExists"},
		},
		"AnotherClaims": {
			reason: "What another claim controls cannot be adopted, whatever it says.",
			exists: annotated(ownedBy(theirs, "DatabaseCluster", "other", "22222222-0000-4000-8000-000000000000"), AllowAdoptionAnnotation, "WebApp/shop"),
			want: want{
				asked: both, phase: "Failed", reason: "AlreadyExists",
				message: "Secret shop-password exists already and belongs to DatabaseCluster other: choose another name for this claim, or delete that DatabaseCluster",
			},
		},
		"Allowed": {
			reason: "Who may edit the object may allow its adoption: it keeps its values.", exists: annotated(theirs, AllowAdoptionAnnotation, "WebApp/shop"),
			want: want{asked: both, applied: []string{"conf", "password"}, password: "theirs", phase: "Pending", message: "Waiting for password, conf"},
		},
		"AllowedToAnother": {
			reason: "Another claim's leave is none.", exists: annotated(theirs, AllowAdoptionAnnotation, "WebApp/shop2"),
			want: want{asked: both, phase: "Failed", message: refused, reason: "AlreadyExists"},
		},
		"Orphan": {
			reason: "What an earlier claim of this name left behind is found again.", exists: labelled(theirs, claimName, "password"),
			want: want{asked: both, applied: []string{"conf", "password"}, password: "theirs", phase: "Pending", message: "Waiting for password, conf"},
		},
		"OrphanOfAnotherKind": {
			reason: "Nor is one of a claim of this name and another kind.", exists: managedBy(labelled(theirs, claimName, "password"), fieldowner.ComposedPrefix+"/other"),
			want: want{asked: both, phase: "Failed", message: refused, reason: "AlreadyExists"},
		},
		"OrphanOfThisKind": {
			reason: "One that a claim of this name and kind has applied is its own.", exists: managedBy(labelled(theirs, claimName, "password"), (&Claim{composite: request(t, 1, nil, nil).GetObserved().GetComposite().GetResource()}).manager()),
			want: want{asked: both, applied: []string{"conf", "password"}, password: "theirs", phase: "Pending", message: "Waiting for password, conf"},
		},
		"OrphanOfAnother": {
			reason: "Another claim's orphan is not this one's.", exists: labelled(theirs, "shop2", "password"),
			want: want{asked: both, phase: "Failed", message: refused, reason: "AlreadyExists"},
		},
		"OrphanOfAnotherComponent": {
			reason: "Nor is another component's.", exists: labelled(theirs, claimName, "credentials"),
			want: want{asked: both, phase: "Failed", message: refused, reason: "AlreadyExists"},
		},
		"Own": {
			reason: "What Crossplane has applied and not seen yet is the claim's.", exists: ownedBy(theirs, "WebApp", claimName, claimUID),
			want: want{asked: both, applied: []string{"conf", "password"}, password: "theirs", phase: "Pending", message: "Waiting for password, conf"},
		},
		"OfTheClaimBefore": {
			reason: "What is left of an earlier claim of this name is about to be removed, and waited for.", exists: ownedBy(theirs, "WebApp", claimName, "33333333-0000-4000-8000-000000000000"),
			want: want{asked: both, applied: []string{"conf"}, phase: "Pending", message: "Waiting for password (Waiting for the deletion of Secret shop-password)"},
		},
		"BeingDeleted": {
			reason: "What is being deleted is waited for.", exists: deleted(labelled(theirs, claimName, "password")),
			want: want{asked: both, applied: []string{"conf"}, phase: "Pending", message: "Waiting for password (Waiting for the deletion of Secret shop-password)"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := request(t, 1, nil, nil)
			child(req.GetObserved().GetComposite().GetResource(), "metadata").Fields["uid"] = structpb.NewStringValue(claimUID)
			if !tc.unseen {
				req.RequiredResources = map[string]*fnv1.Resources{"existing/conf": nil, "existing/password": nil}
			}
			if tc.exists != nil {
				req.RequiredResources["existing/password"] = &fnv1.Resources{Items: []*fnv1.Resource{{Resource: tc.exists}}}
			}
			if tc.conf != nil {
				req.RequiredResources["existing/conf"] = &fnv1.Resources{Items: []*fnv1.Resource{{Resource: tc.conf}}}
			}
			before := proto.CloneOf(req)
			rsp := respondNext(req, newcomer, fixedSource{})
			if diff := cmp.Diff(before, req, protocmp.Transform()); diff != "" {
				t.Errorf("%s\nRespond() changed the request:\n%s", tc.reason, diff)
			}

			got := want{asked: names(rsp.GetRequirements().GetResources()), applied: names(rsp.GetDesired().GetResources())}
			status := rsp.GetDesired().GetComposite().GetResource().GetFields()["status"].GetStructValue().GetFields()
			got.phase, got.message = status["phase"].GetStringValue(), status["message"].GetStringValue()
			got.password, _ = SecretValue(rsp.GetDesired().GetResources()["password"].GetResource(), "password")
			for _, r := range rsp.GetResults() {
				got.reason = r.GetReason()
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\nRespond(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRespondAtRest: once all objects are observed nothing is required, whatever resources the
// request still contains.
func TestRespondAtRest(t *testing.T) {
	plan := &Plan{Components: []Component{{Name: "conf", Object: configMap("conf", "x")}}}
	req := request(t, 1, nil, map[string]*structpb.Struct{"conf": observe(plan.Components[0])})
	req.RequiredResources = map[string]*fnv1.Resources{"existing/conf": {Items: []*fnv1.Resource{{Resource: applied(t, configMap("conf", "another"))}}}}
	rsp := Respond(req, planned(plan), fixedSource{})
	if r := rsp.GetRequirements(); r != nil {
		t.Errorf("Respond() asks for %v", r)
	}
	if len(rsp.GetResults()) > 0 || rsp.GetDesired().GetResources()["conf"].GetReady() != fnv1.Ready_READY_TRUE {
		t.Errorf("Respond() got %v", rsp)
	}
}

// TestRespondFreshComponent: if a running claim gets a component whose name is taken, the whole
// claim is refused, and keeps all its objects.
func TestRespondFreshComponent(t *testing.T) {
	web := Component{Name: "web", Object: deployment("web", "web:1")}
	req := request(t, 2, map[string]any{"phase": "Running", "readyGeneration": 1}, map[string]*structpb.Struct{"web": madeHealthy(observe(web))})
	req.RequiredResources = map[string]*fnv1.Resources{"existing/conf": {Items: []*fnv1.Resource{{Resource: applied(t, configMap("conf", "another"))}}}}
	rsp := Respond(req, planned(&Plan{Components: []Component{web, {Name: "conf", Object: configMap("conf", "x")}}}), fixedSource{})
	if len(rsp.GetResults()) != 1 || rsp.GetResults()[0].GetSeverity() != fnv1.Severity_SEVERITY_FATAL || !strings.Contains(rsp.GetResults()[0].GetMessage(), "ConfigMap shop-conf exists already") {
		t.Errorf("Respond(): want a fatal result that names the ConfigMap, got %v", rsp.GetResults())
	}
	if c := rsp.GetConditions()[0]; c.GetType() != appsv1.TypeAccepted || c.GetReason() != appsv1.ReasonAlreadyExists {
		t.Errorf("Respond(): want Accepted False, AlreadyExists, got %v", c)
	}
}

func passwordSecret(password string) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: meta("password"),
		Data: map[string][]byte{"password": []byte(password)},
	}
}

// TestRespondSettlesRefusedAdoption: if an adopted object makes the claim invalid, the function
// requires the same resources in each call. Otherwise Crossplane would stop calling it, and the
// claim would not report why.
func TestRespondSettlesRefusedAdoption(t *testing.T) {
	refuses := func(c *Claim) (*Plan, error) {
		if c.Observed("conf") != nil {
			return nil, Invalidf("conf may not shrink")
		}
		p := &Plan{Components: []Component{{Name: "conf", Object: configMap("conf", "x")}}}
		_, err := planned(p)(c)
		return p, err
	}
	orphan := labelled(applied(t, configMap("conf", "was")), claimName, "conf")
	req := request(t, 1, nil, nil)
	var asked *fnv1.Requirements
	for call := range 4 {
		rsp := Respond(req, refuses, fixedSource{})
		if call > 0 && proto.Equal(asked, rsp.GetRequirements()) {
			if got := rsp.GetResults(); len(got) != 1 || got[0].GetMessage() != "conf may not shrink" {
				t.Errorf("Respond(): got %v", got)
			}
			return
		}
		asked = rsp.GetRequirements()
		req = request(t, 1, nil, nil)
		req.RequiredResources = map[string]*fnv1.Resources{}
		for name := range asked.GetResources() {
			req.RequiredResources[name] = &fnv1.Resources{Items: []*fnv1.Resource{{Resource: orphan}}}
		}
	}
	t.Errorf("Respond() asks for something else each time")
}
