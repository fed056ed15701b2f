package functions

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/storeplane/storeplane/internal/compose"
)

var widget = schema.GroupKind{Group: "test.example.com", Kind: "Widget"}

// serving returns a Function that serves one more intent, and the calls that its observer counted.
func serving(intent compose.Intent) (*Function, *[]string) {
	calls := &[]string{}
	f := New(WithObserver(func(kind, result string, _ time.Duration) { *calls = append(*calls, kind+" "+result) }))
	f.intents[widget] = intent
	return f, calls
}

func requestFor(t testing.TB, apiVersion, kind string, observed ...string) *fnv1.RunFunctionRequest {
	t.Helper()
	xr, err := structpb.NewStruct(map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "w", "namespace": "team"}, "spec": map[string]any{}})
	if err != nil {
		t.Fatal(err)
	}
	req := &fnv1.RunFunctionRequest{Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: xr}, Resources: map[string]*fnv1.Resource{}}}
	for _, n := range observed {
		req.Observed.Resources[n] = &fnv1.Resource{Resource: proto.CloneOf(xr)}
	}
	return req
}

func TestRunFunctionErrors(t *testing.T) {
	const fatal, warning = fnv1.Severity_SEVERITY_FATAL, fnv1.Severity_SEVERITY_WARNING
	type want struct {
		severity     fnv1.Severity
		text, reason string
		call         string
	}
	var broken *structpb.Struct

	cases := map[string]struct {
		reason string
		intent compose.Intent
		req    *fnv1.RunFunctionRequest
		want   want
	}{
		"Panic": {
			reason: "A panic is a fatal result of that one claim, which tells users whom to tell and nothing else.",
			intent: func(*compose.Claim) (*compose.Plan, error) { panic("secret in a panic") },
			req:    requestFor(t, "test.example.com/v1", "Widget"),
			want:   want{fatal, "cannot compose Widget: the function panicked: please report this with the function's log", "InternalError", "Widget error"},
		},
		"PanicWhileRunning": {
			reason: "Also while something runs.",
			intent: func(*compose.Claim) (*compose.Plan, error) { _ = broken.Fields["x"]; panic(errors.New("x")) },
			req:    requestFor(t, "test.example.com/v1", "Widget", "web"),
			want:   want{fatal, "cannot compose Widget: the function panicked: please report this with the function's log", "InternalError", "Widget error"},
		},
		"PanicInStatus": {
			reason: "Wherever it happens.",
			intent: func(*compose.Claim) (*compose.Plan, error) {
				return &compose.Plan{Status: func(compose.Outcome) any { panic("x") }}, nil
			},
			req:  requestFor(t, "test.example.com/v1", "Widget"),
			want: want{fatal, "cannot compose Widget: the function panicked: please report this with the function's log", "InternalError", "Widget error"},
		},
		"Invalid": {
			reason: "An error of the claim is a warning while nothing exists.",
			intent: func(*compose.Claim) (*compose.Plan, error) { return nil, compose.Invalidf("size is too big") },
			req:    requestFor(t, "test.example.com/v1", "Widget"),
			want:   want{warning, "size is too big", "Invalid", "Widget invalid"},
		},
		"InvalidWhileRunning": {
			reason: "And fatal while something does.",
			intent: func(*compose.Claim) (*compose.Plan, error) { return nil, compose.Invalidf("size is too big") },
			req:    requestFor(t, "test.example.com/v1", "Widget", "web"),
			want:   want{fatal, "size is too big", "Invalid", "Widget invalid"},
		},
		"UnknownKind": {
			reason: "A kind that no function serves is named with its group.",
			req:    requestFor(t, "other.example.com/v1", "Widget"),
			want:   want{fatal, "cannot compose Widget.other.example.com: this function serves no such kind", "InternalError", "Widget error"},
		},
		"KindOfAnotherGroup": {
			reason: "A kind of ours in another group is another kind.",
			req:    requestFor(t, "platform.example.com/v1", "WebApp"),
			want:   want{fatal, "cannot compose WebApp.platform.example.com: this function serves no such kind", "InternalError", "WebApp error"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f, calls := serving(tc.intent)
			rsp, err := f.RunFunction(context.Background(), tc.req)
			if err != nil {
				t.Fatalf("%s\nRunFunction(): what goes wrong is a result, not an error: %v", tc.reason, err)
			}
			r := rsp.GetResults()
			if len(r) != 1 {
				t.Fatalf("%s\nRunFunction(): want one result, got %v", tc.reason, r)
			}
			got := want{r[0].GetSeverity(), r[0].GetMessage(), r[0].GetReason(), ""}
			if len(*calls) == 1 {
				got.call = (*calls)[0]
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s\nRunFunction(): -want, +got:\n%s", tc.reason, diff)
			}
			if len(rsp.GetDesired().GetResources()) > 0 {
				t.Errorf("%s\nRunFunction(): want nothing applied", tc.reason)
			}
			if c := rsp.GetConditions(); len(c) == 0 || c[0].GetType() != "Accepted" || c[0].GetStatus() != fnv1.Status_STATUS_CONDITION_FALSE {
				t.Errorf("%s\nRunFunction(): want condition Accepted False, got %v", tc.reason, c)
			}
		})
	}
}

// TestRunFunctionEmpty: an empty request gets a response with a fatal result.
func TestRunFunctionEmpty(t *testing.T) {
	rsp, err := New().RunFunction(context.Background(), &fnv1.RunFunctionRequest{})
	if err != nil || len(rsp.GetResults()) != 1 || rsp.GetResults()[0].GetSeverity() != fnv1.Severity_SEVERITY_FATAL {
		t.Errorf("want a fatal result, got %v, %v", rsp, err)
	}
}

// TestRunFunctionServesOn: after a panic the next claim is composed as usual.
func TestRunFunctionServesOn(t *testing.T) {
	f, calls := serving(func(c *compose.Claim) (*compose.Plan, error) {
		if c.Observed("web") != nil {
			panic("x")
		}
		return &compose.Plan{Status: func(compose.Outcome) any { return &struct{}{} }}, nil
	})
	for _, observed := range [][]string{{}, {"web"}, {}} {
		if _, err := f.RunFunction(context.Background(), requestFor(t, "test.example.com/v1", "Widget", observed...)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"Widget ok", "Widget error", "Widget ok"}, *calls); diff != "" {
		t.Errorf("-want, +got:\n%s", diff)
	}
}

// TestRunFunctionDeadline: a call that is stuck gets its response when its context ends, by a
// deadline or because the caller hung up.
func TestRunFunctionDeadline(t *testing.T) {
	cases := map[string]struct {
		reason  string
		context func() (context.Context, context.CancelFunc)
		want    string
	}{
		"Deadline": {
			reason: "The deadline has passed.",
			context: func() (context.Context, context.CancelFunc) {
				return context.WithTimeout(context.Background(), time.Millisecond)
			},
			want: "cannot compose in time: context deadline exceeded",
		},
		"Cancelled": {
			reason: "The caller has hung up.",
			context: func() (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(context.Background())
				cancel()
				return ctx, cancel
			},
			want: "cannot compose in time: context canceled",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			release, ended := make(chan struct{}), make(chan struct{})
			f, calls := serving(func(*compose.Claim) (*compose.Plan, error) {
				defer close(ended)
				<-release
				return &compose.Plan{Status: func(compose.Outcome) any { return &struct{}{} }}, nil
			})
			req := requestFor(t, "test.example.com/v1", "Widget", "web")
			// The state that an earlier function desired is shared by the response in time and by
			// the one that comes too late.
			req.Desired = &fnv1.State{Composite: &fnv1.Resource{Resource: &structpb.Struct{Fields: map[string]*structpb.Value{
				"status": structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{"cost": structpb.NewStringValue("3 EUR")}}),
			}}}}

			ctx, cancel := tc.context()
			defer cancel()
			rsp, err := f.RunFunction(ctx, req)
			if err != nil {
				t.Fatal(err)
			}
			// The stuck call continues while the response is marshaled.
			close(release)
			for range 100 {
				if _, err := proto.Marshal(rsp); err != nil {
					t.Fatal(err)
				}
			}
			<-ended
			if r := rsp.GetResults(); len(r) != 1 || r[0].GetSeverity() != fnv1.Severity_SEVERITY_FATAL || r[0].GetMessage() != tc.want {
				t.Errorf("%s\nRunFunction(): want a fatal result %q, got %v", tc.reason, tc.want, r)
			}
			if diff := cmp.Diff([]string{"Widget error"}, *calls); diff != "" {
				t.Errorf("%s\nThe call is observed once: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRunFunctionBound: the number of stuck calls is bounded. One call more is refused when its
// caller gives up, and is composed once one of the stuck calls has ended.
func TestRunFunctionBound(t *testing.T) {
	release, begun := make(chan struct{}), make(chan struct{}, maxCalls)
	f, _ := serving(func(*compose.Claim) (*compose.Plan, error) {
		begun <- struct{}{}
		<-release
		return &compose.Plan{Status: func(compose.Outcome) any { return &struct{}{} }}, nil
	})
	req := requestFor(t, "test.example.com/v1", "Widget")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	call := func(ctx context.Context) string {
		rsp, err := f.RunFunction(ctx, proto.CloneOf(req))
		if err != nil {
			t.Error(err)
		}
		if r := rsp.GetResults(); len(r) > 0 {
			return r[0].GetMessage()
		}
		return ""
	}
	f.observe = func(string, string, time.Duration) {}
	for range maxCalls {
		if got := call(over); got != "cannot compose in time: context canceled" {
			t.Fatalf("want a call that its caller has given up refused, got %q", got)
		}
		<-begun
	}
	if got, want := call(over), fmt.Sprintf("cannot compose in time: %d calls are running already: context canceled", maxCalls); got != want {
		t.Errorf("one more: want %q, got %q", want, got)
	}
	if got := f.Running(); got != maxCalls {
		t.Errorf("Running(): want abandoned calls counted, %d, got %d", maxCalls, got)
	}
	waiting := make(chan string)
	go func() { waiting <- call(t.Context()) }()
	close(release)
	if got := <-waiting; got != "" {
		t.Errorf("once the others have ended: want it composed, got %q", got)
	}
}
