package compose

import (
	"maps"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
)

// TestRespondSettings: a claim that was composed with settings keeps them while those of the
// installation are invalid, and is never composed with defaults instead.
func TestRespondSettings(t *testing.T) {
	type settings struct {
		Registry string `json:"registry,omitempty"`
	}
	intent := func(c *Claim) (*Plan, error) {
		s := settings{Registry: "default"}
		err := c.Settings(func(d Data) (any, error) {
			used := settings{}
			if err := d.Decode(&used); err != nil {
				return nil, err
			}
			if used.Registry == "bad" && !d.IsAccepted() {
				return nil, Invalidf("data.registry is bad")
			}
			s.Registry = orDefault(used.Registry)
			return used, nil
		})
		if err != nil {
			return nil, err
		}
		p := &Plan{Components: []Component{{Name: "conf", Object: configMap("conf", s.Registry)}}}
		p.Status = func(o Outcome) any { return &o.Common }
		return p, nil
	}
	const gone = "EnvironmentConfig storeplane, with whose settings this claim was composed, does not exist: create it again. Without data it means the defaults, and may be deleted"
	const goesOn = ". The claim keeps the settings that it had"
	type want struct {
		registry   string
		remembered string
		message    string
		accepted   string
		severity   fnv1.Severity
	}
	cases := map[string]struct {
		reason string
		now    *structpb.Struct
		had    string
		want   want
	}{
		"NeverAny":  {reason: "An installation without settings has the defaults.", want: want{registry: "default"}},
		"First":     {reason: "What a claim is composed with it remembers.", now: mustStruct(t, map[string]any{"data": map[string]any{"registry": "one"}}), want: want{registry: "one", remembered: `{"registry":"one"}`}},
		"Changed":   {reason: "Other settings that can be used are used.", now: mustStruct(t, map[string]any{"data": map[string]any{"registry": "two"}}), had: `{"registry":"one"}`, want: want{registry: "two", remembered: `{"registry":"two"}`}},
		"Others":    {reason: "What is there for others is not remembered where more people can read it.", now: mustStruct(t, map[string]any{"data": map[string]any{"registry": "two", "token": "secret"}}), had: `{"registry":"one"}`, want: want{registry: "two", remembered: `{"registry":"two"}`}},
		"Emptied":   {reason: "Without data they mean the defaults.", now: mustStruct(t, map[string]any{"kind": "EnvironmentConfig"}), had: `{"registry":"one"}`, want: want{registry: "default", remembered: `{}`}},
		"Gone":      {reason: "That they are gone does not mean the defaults: every server would move to another registry.", had: `{"registry":"one"}`, want: want{registry: "one", remembered: `{"registry":"one"}`, message: gone, accepted: gone + goesOn}},
		"EmptyGone": {reason: "Settings that meant the defaults may go.", had: `{}`, want: want{registry: "default"}},
		"Typo":      {reason: "A mistake in them holds up nothing.", now: mustStruct(t, map[string]any{"data": map[string]any{"registry": "bad"}}), had: `{"registry":"one"}`, want: want{registry: "one", remembered: `{"registry":"one"}`, message: "data.registry is bad", accepted: "data.registry is bad" + goesOn}},
		"TypoFirst": {reason: "A claim that had none is refused.", now: mustStruct(t, map[string]any{"data": map[string]any{"registry": "bad"}}), want: want{message: "data.registry is bad", accepted: "data.registry is bad", severity: fnv1.Severity_SEVERITY_FATAL}},
		"Tightened": {reason: "What it was composed with was checked then: a later check holds up nothing, and is reported.", now: mustStruct(t, map[string]any{"data": map[string]any{"registry": "bad"}}), had: `{"registry":"bad"}`, want: want{registry: "bad", remembered: `{"registry":"bad"}`, message: "data.registry is bad", accepted: "data.registry is bad" + goesOn}},
		"Undecoded": {reason: "A claim whose own cannot be read any more is refused.", now: mustStruct(t, map[string]any{"data": map[string]any{"registry": "bad"}}), had: `{"registry":7}`, want: want{message: "data.registry is bad", accepted: "data.registry is bad", severity: fnv1.Severity_SEVERITY_FATAL}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status := map[string]any{"readyGeneration": 1}
			if tc.had != "" {
				status["acceptedSettings"] = tc.had
			}
			req := request(t, 1, status, map[string]*structpb.Struct{"conf": observe(Component{Object: configMap("conf", "one")})})
			req.RequiredResources = map[string]*fnv1.Resources{SettingsRequirement: {}}
			if tc.now != nil {
				req.RequiredResources[SettingsRequirement].Items = []*fnv1.Resource{{Resource: tc.now}}
			}
			rsp := Respond(req, intent, SystemSource{})
			got := want{registry: rsp.GetDesired().GetResources()["conf"].GetResource().GetFields()["data"].GetStructValue().GetFields()["value"].GetStringValue()}
			s := rsp.GetDesired().GetComposite().GetResource().GetFields()["status"].GetStructValue().GetFields()
			got.remembered, got.message = s["acceptedSettings"].GetStringValue(), s["message"].GetStringValue()
			for _, r := range rsp.GetResults() {
				got.severity, got.message = r.GetSeverity(), r.GetMessage()
			}
			if c := rsp.GetConditions()[0]; c.GetStatus() == fnv1.Status_STATUS_CONDITION_FALSE {
				got.accepted = c.GetMessage()
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\nRespond(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func orDefault(registry string) string {
	if registry == "" {
		return "default"
	}
	return registry
}

// TestRespondMaintains: what must continue while a claim is refused continues, and nothing else
// changes.
func TestRespondMaintains(t *testing.T) {
	web, tls := Component{Name: "web", Object: deployment("web", "web:1")}, stored(secret(t, "tls", map[string]string{"tls.crt": "old"}))
	observed := map[string]*structpb.Struct{"web": madeHealthy(observe(web)), "tls": tls}
	due := proto.CloneOf(claimOf(nil).keep(tls))
	child(due, "data").Fields["tls.crt"] = structpb.NewStringValue("bmV3")
	cases := map[string]struct {
		reason   string
		maintain map[string]*structpb.Struct
		severity fnv1.Severity
		want     map[string]*structpb.Struct
	}{
		"Nothing": {reason: "While nothing is due Crossplane applies nothing.", severity: fnv1.Severity_SEVERITY_FATAL, want: map[string]*structpb.Struct{}},
		"Due": {
			reason: "A certificate is renewed, and all else stays as it is.", maintain: map[string]*structpb.Struct{"tls": due}, severity: fnv1.Severity_SEVERITY_WARNING,
			want: map[string]*structpb.Struct{"tls": due, "web": claimOf(nil).keep(observed["web"])},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := map[string]any{"phase": "Running", "readyGeneration": 1, "observedGeneration": 1, "endpoint": "x"}
			now := maps.Clone(before)
			now["conditions"] = []any{map[string]any{"type": "Ready", "status": "True"}}
			req := request(t, 1, now, observed)
			rsp := Respond(req, func(*Claim) (*Plan, error) {
				return &Plan{Maintain: func() (map[string]*structpb.Struct, error) { return tc.maintain, nil }}, Invalidf("a typo")
			}, SystemSource{})
			got := map[string]*structpb.Struct{}
			for n, r := range rsp.GetDesired().GetResources() {
				got[n] = r.GetResource()
			}
			if diff := cmp.Diff(tc.want, got, protocmp.Transform()); diff != "" {
				t.Errorf("%s\nRespond() resources: -want, +got:\n%s", tc.reason, diff)
			}
			if r := rsp.GetResults(); len(r) != 1 || r[0].GetSeverity() != tc.severity || r[0].GetMessage() != "a typo" {
				t.Errorf("%s\nRespond() results: got %v", tc.reason, r)
			}
			if c := rsp.GetConditions()[0]; c.GetType() != appsv1.TypeAccepted || c.GetStatus() != fnv1.Status_STATUS_CONDITION_FALSE {
				t.Errorf("%s\nRespond(): want Accepted False, got %v", tc.reason, c)
			}
			if len(tc.maintain) == 0 {
				return
			}
			if got := rsp.GetDesired().GetComposite().GetReady(); got != fnv1.Ready_READY_TRUE {
				t.Errorf("%s\nRespond(): a claim that is ready stays so, got %v", tc.reason, got)
			}
			s := rsp.GetDesired().GetComposite().GetResource().GetFields()["status"].GetStructValue()
			if diff := cmp.Diff(mustStruct(t, before), s, protocmp.Transform()); diff != "" {
				t.Errorf("%s\nRespond() status stays: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
