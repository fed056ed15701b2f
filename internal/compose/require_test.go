package compose

import (
	"errors"
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/structpb"
)

// secretNamed selects one Secret of the claim's namespace.
func secretNamed(name string) *fnv1.ResourceSelector {
	return &fnv1.ResourceSelector{ApiVersion: "v1", Kind: "Secret", Namespace: new("team"), Match: &fnv1.ResourceSelector_MatchName{MatchName: name}}
}

func TestClaimRequire(t *testing.T) {
	one, two := secret(t, "a", map[string]string{"k": "1"}), secret(t, "b", map[string]string{"k": "2"})
	items := func(objs ...*structpb.Struct) *fnv1.Resources {
		out := &fnv1.Resources{}
		for _, o := range objs {
			out.Items = append(out.Items, &fnv1.Resource{Resource: o})
		}
		return out
	}
	type want struct {
		found   []*structpb.Struct
		fetched bool
	}
	cases := map[string]struct {
		reason   string
		required map[string]*fnv1.Resources
		want     want
	}{
		"Nothing":  {reason: "Before Crossplane has looked nothing is known."},
		"Others":   {reason: "What was asked for under another name is something else.", required: map[string]*fnv1.Resources{"settings": items(one)}},
		"None":     {reason: "That there is none is an answer.", required: map[string]*fnv1.Resources{"mine": items()}, want: want{fetched: true}},
		"NilValue": {reason: "Crossplane sends none as nothing at all.", required: map[string]*fnv1.Resources{"mine": nil}, want: want{fetched: true}},
		"One":      {reason: "What was found.", required: map[string]*fnv1.Resources{"mine": items(one)}, want: want{found: []*structpb.Struct{one}, fetched: true}},
		"Two":      {reason: "In Crossplane's order.", required: map[string]*fnv1.Resources{"mine": items(two, one)}, want: want{found: []*structpb.Struct{two, one}, fetched: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := request(t, 1, nil, nil)
			req.RequiredResources = tc.required
			c := NewClaim(req, nil)
			var got want
			got.found, got.fetched = c.Require("mine", secretNamed("a"))
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{}), cmpopts.EquateEmpty(), protocmp.Transform()); diff != "" {
				t.Errorf("%s\nRequire(): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(map[string]*fnv1.ResourceSelector{"mine": secretNamed("a")}, c.asked, protocmp.Transform()); diff != "" {
				t.Errorf("%s\nRequire() asks always, or Crossplane would not watch any more: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestClaimHasKind(t *testing.T) {
	object := &structpb.Struct{Fields: map[string]*structpb.Value{"type": structpb.NewStringValue("object")}}
	cases := map[string]struct {
		reason   string
		schemas  map[string]*fnv1.Schema
		observed map[string]*structpb.Struct
		want     bool
	}{
		"Nothing":   {reason: "An older Crossplane sends no schemas."},
		"Others":    {reason: "Another kind is another.", schemas: map[string]*fnv1.Schema{"servicemonitor": {OpenapiV3: object}}},
		"NotFound":  {reason: "Crossplane sends an empty one for what it does not find.", schemas: map[string]*fnv1.Schema{"podmonitor": {}}},
		"NilValue":  {reason: "Or none.", schemas: map[string]*fnv1.Schema{"podmonitor": nil}},
		"NoContent": {reason: "A schema that says nothing is none.", schemas: map[string]*fnv1.Schema{"podmonitor": {OpenapiV3: &structpb.Struct{}}}},
		"Found":     {reason: "The cluster has the kind.", schemas: map[string]*fnv1.Schema{"podmonitor": {OpenapiV3: object}}, want: true},
		"Composed":  {reason: "What has been composed is of a kind that exists, whatever discovery finds now.", observed: map[string]*structpb.Struct{"monitor": applied(t, configMap("monitor", ""))}, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := request(t, 1, nil, tc.observed)
			req.RequiredSchemas = tc.schemas
			if got := NewClaim(req, nil).HasKind("podmonitor", "monitor"); got != tc.want {
				t.Errorf("%s\nHasKind(): want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

// TestRespondRequirements: the response contains what the intent requires, however it ends: what is
// missing in a claim that is refused now may exist in a later call.
func TestRespondRequirements(t *testing.T) {
	db := Component{Name: "db", Object: deployment("db", "db:1")}
	ask := func(names []string, err error) Intent {
		return func(c *Claim) (*Plan, error) {
			for _, n := range names {
				c.Require(n, secretNamed(n))
			}
			if err != nil {
				return nil, err
			}
			return &Plan{Components: []Component{db}, Status: func(Outcome) any { return &struct{}{} }}, nil
		}
	}
	two := map[string]*fnv1.ResourceSelector{"a": secretNamed("a"), "b": secretNamed("b")}
	cases := map[string]struct {
		reason string
		intent Intent
		want   map[string]*fnv1.ResourceSelector
	}{
		"Nothing":  {reason: "Who asks for nothing has no requirements, and is called once.", intent: ask(nil, nil)},
		"Composed": {reason: "With a plan.", intent: ask([]string{"a", "b"}, nil), want: two},
		"Pending":  {reason: "Without one yet.", intent: ask([]string{"a", "b"}, ErrPending), want: two},
		"Invalid":  {reason: "Refused.", intent: ask([]string{"a", "b"}, Invalidf("there is no Secret a")), want: two},
		"Ours":     {reason: "Failed.", intent: ask([]string{"a", "b"}, errors.New("a bug")), want: two},
		"Twice":    {reason: "To ask twice is to ask once.", intent: ask([]string{"a", "b", "a"}, nil), want: two},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, observed := range []map[string]*structpb.Struct{{"db": observe(db)}, {"db": madeHealthy(observe(db))}} {
				rsp := Respond(request(t, 1, nil, observed), tc.intent, ReviewSource{})
				if diff := cmp.Diff(tc.want, rsp.GetRequirements().GetResources(), protocmp.Transform()); diff != "" {
					t.Errorf("%s\nRespond() requirements: -want, +got:\n%s", tc.reason, diff)
				}
				if (rsp.GetRequirements() == nil) != (tc.want == nil) {
					t.Errorf("%s\nRespond() requirements: got %v", tc.reason, rsp.GetRequirements())
				}
			}
		})
	}
}

// TestRespondPending: while required resources are fetched nothing is created, changed or removed,
// and nothing is reported: Crossplane calls the function again at once.
func TestRespondPending(t *testing.T) {
	web, db := Component{Name: "web", Object: deployment("web", "web:1")}, Component{Name: "db", Object: deployment("db", "db:1"), HoldsData: true}
	pending := func(c *Claim) (*Plan, error) {
		c.Require("a", secretNamed("a"))
		return nil, ErrPending
	}
	wrapped := func(c *Claim) (*Plan, error) {
		c.Require("a", secretNamed("a"))
		return nil, errors.Join(errors.New("cannot read a"), ErrPending)
	}
	cases := map[string]struct {
		reason   string
		intent   Intent
		observed map[string]*structpb.Struct
	}{
		"NothingExists":   {reason: "Of a new claim nothing is applied.", intent: pending},
		"SomethingExists": {reason: "What exists stays, healthy or not, with data or without.", intent: pending, observed: map[string]*structpb.Struct{"web": broken(observe(web)), "db": madeHealthy(observe(db)), "conf": stored(applied(t, configMap("conf", "x")))}},
		"Wrapped":         {reason: "The error may have been wrapped.", intent: wrapped, observed: map[string]*structpb.Struct{"web": observe(web)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := request(t, 1, map[string]any{"phase": "Running"}, tc.observed)
			before := proto.CloneOf(req)
			rsp := Respond(req, tc.intent, ReviewSource{})
			if len(rsp.GetResults()) > 0 || len(rsp.GetConditions()) > 0 {
				t.Errorf("%s\nRespond() says nothing, got %v and %v", tc.reason, rsp.GetResults(), rsp.GetConditions())
			}
			if diff := cmp.Diff(names(tc.observed), names(rsp.GetDesired().GetResources()), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\nRespond() resources: -want, +got:\n%s", tc.reason, diff)
			}
			for n, r := range rsp.GetDesired().GetResources() {
				if diff := cmp.Diff(claimOf(nil).keep(tc.observed[n]), r.GetResource(), protocmp.Transform()); diff != "" {
					t.Errorf("%s\nRespond() keeps %s as it is: -want, +got:\n%s", tc.reason, n, diff)
				}
				if r.GetReady() == fnv1.Ready_READY_TRUE {
					t.Errorf("%s\nRespond() knows nothing of %s, and calls it ready", tc.reason, n)
				}
			}
			if !proto.Equal(before, req) {
				t.Errorf("%s\nRespond() changed the request", tc.reason)
			}
		})
	}
}

// TestRespondMaintenanceAsks: what must continue while a claim is refused may require resources.
// Until they are fetched nothing changes, and no result is fatal.
func TestRespondMaintenanceAsks(t *testing.T) {
	web := Component{Name: "web", Object: deployment("web", "web:1")}
	intent := func(c *Claim) (*Plan, error) {
		return &Plan{Maintain: func() (map[string]*structpb.Struct, error) {
			if _, fetched := c.Require("a", secretNamed("a")); !fetched {
				return nil, ErrPending
			}
			return map[string]*structpb.Struct{}, nil
		}}, Invalidf("a typo")
	}
	asked := map[string]*fnv1.ResourceSelector{"a": secretNamed("a")}
	req := request(t, 1, nil, map[string]*structpb.Struct{"web": madeHealthy(observe(web))})
	rsp := Respond(req, intent, SystemSource{})
	if diff := cmp.Diff(asked, rsp.GetRequirements().GetResources(), protocmp.Transform()); diff != "" {
		t.Errorf("Respond() requirements: -want, +got:\n%s", diff)
	}
	if len(rsp.GetResults()) > 0 || len(rsp.GetConditions()) > 0 || rsp.GetDesired().GetResources()["web"] == nil {
		t.Errorf("Respond() while it waits: want nothing said and all kept, got %v", rsp)
	}

	req.RequiredResources = map[string]*fnv1.Resources{"a": {}}
	rsp = Respond(req, intent, SystemSource{})
	if r := rsp.GetResults(); len(r) != 1 || r[0].GetSeverity() != fnv1.Severity_SEVERITY_FATAL || r[0].GetMessage() != "a typo" {
		t.Errorf("Respond() with nothing due: want the refusal, got %v", r)
	}
	if diff := cmp.Diff(asked, rsp.GetRequirements().GetResources(), protocmp.Transform()); diff != "" {
		t.Errorf("Respond() asks for the same again: -want, +got:\n%s", diff)
	}
}
