package functions

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/crossplane/function-sdk-go/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	platformv1 "github.com/storeplane/storeplane/apis/platform/v1"
	"github.com/storeplane/storeplane/functions/databasecluster"
	"github.com/storeplane/storeplane/functions/ecommerceplatform"
	"github.com/storeplane/storeplane/functions/webapp"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/health"
	"github.com/storeplane/storeplane/internal/images"
	"github.com/storeplane/storeplane/internal/settings"
)

// idleWorkers is how many goroutines are kept for the next calls: more than
// Crossplane makes at once on most days.
const idleWorkers = 32

// maxCalls is how many calls are composed at once; more wait. Crossplane makes up to its
// --max-reconcile-rate, 100, for each kind. A call that its caller has given up counts until it has
// ended, so that calls which take too long do not fill the memory.
const maxCalls = 300

// Function is the gRPC service that Crossplane calls.
type Function struct {
	fnv1.UnimplementedFunctionRunnerServiceServer

	intents map[schema.GroupKind]compose.Intent
	source  compose.Source
	workers *workers
	running chan struct{}
	images  images.Set
	log     logging.Logger

	// admitsAll has no change wait for a maintenance window.
	admitsAll bool

	observe func(kind, result string, took time.Duration)
}

// Option of a Function.
type Option func(*Function)

// WithReview prints placeholders where a value would be drawn at random, so
// that a result can be read and compared.
func WithReview() Option { return func(f *Function) { f.source = compose.ReviewSource{} } }

// WithSource draws what is random, and reads the time, from elsewhere than the
// system.
func WithSource(s compose.Source) Option { return func(f *Function) { f.source = s } }

// WithImages names Storeplane's own images. An installation's settings may say that
// they are pulled from another registry.
func WithImages(s images.Set) Option { return func(f *Function) { f.images = s } }

// WithoutWaiting applies changes of a release at once, whatever the maintenance windows: to see
// what they are.
func WithoutWaiting() Option { return func(f *Function) { f.admitsAll = true } }

// WithLogger logs each call.
func WithLogger(l logging.Logger) Option { return func(f *Function) { f.log = l } }

// WithObserver is told of each call: the composite's kind, how it ended (ok,
// invalid or error), and how long it took.
func WithObserver(o func(kind, result string, took time.Duration)) Option {
	return func(f *Function) { f.observe = o }
}

// MaxCalls is how many calls are composed at once.
func MaxCalls() int { return maxCalls }

// Running is how many calls are being composed now, those counted that their callers have
// given up.
func (f *Function) Running() int { return len(f.running) }

// New returns a Function that serves every intent.
func New(opts ...Option) *Function {
	f := &Function{
		source:  compose.SystemSource{},
		workers: newWorkers(idleWorkers),
		running: make(chan struct{}, maxCalls),
		images:  images.Set{Registry: images.DefaultRegistry},
		log:     logging.NewNopLogger(),
		observe: func(string, string, time.Duration) {},
	}
	for _, o := range opts {
		o(f)
	}
	defaults := settings.Settings{ImageRegistry: f.images.Registry, Digests: f.images.Digests, Version: f.images.Version, AdmitAll: f.admitsAll}
	f.intents = map[schema.GroupKind]compose.Intent{
		{Group: platformv1.GroupVersion.Group, Kind: platformv1.EcommercePlatformKind}: ecommerceplatform.Intent(defaults),
		{Group: appsv1.GroupVersion.Group, Kind: appsv1.DatabaseClusterKind}:           databasecluster.Intent(defaults),
		{Group: appsv1.GroupVersion.Group, Kind: appsv1.WebAppKind}:                    webapp.Intent(defaults),
	}
	return f
}

// RunFunction implements the function protocol. What goes wrong is a result of
// the response, never an error of the call: Crossplane shows results to users.
func (f *Function) RunFunction(ctx context.Context, req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	start := time.Now()
	claim := compose.NewClaim(req, f.source)
	log := f.log.WithValues("kind", claim.Kind(), "namespace", claim.Namespace(), "name", claim.Name())

	rsp := f.compose(ctx, req, log)
	took, result := time.Since(start), ending(rsp)
	f.observe(claim.Kind(), result, took)
	if result != "ok" {
		log.Info("Refused a claim", "result", result, "reason", rsp.GetResults()[0].GetMessage(), "took", took)
		return rsp, nil
	}
	log.Debug("Composed a claim", "resources", len(rsp.GetDesired().GetResources()), "took", took)
	return rsp, nil
}

// compose runs a call once there is room for one more, and as long as its caller waits.
func (f *Function) compose(ctx context.Context, req *fnv1.RunFunctionRequest, log logging.Logger) *fnv1.RunFunctionResponse {
	select {
	case f.running <- struct{}{}:
	default:
		select {
		case f.running <- struct{}{}:
		case <-ctx.Done():
			return compose.Refuse(req, fmt.Errorf("cannot compose in time: %d calls are running already: %w", cap(f.running), ctx.Err()))
		}
	}
	done := make(chan *fnv1.RunFunctionResponse, 1)
	f.workers.start(func() {
		defer func() { <-f.running }()
		done <- f.run(ctx, req, log)
	})
	select {
	case rsp := <-done:
		return rsp
	case <-ctx.Done():
		return compose.Refuse(req, fmt.Errorf("cannot compose in time: %w", ctx.Err()))
	}
}

// run finds and runs the intent. A panic is an error of that one claim, not the
// end of the server that all claims share.
func (f *Function) run(ctx context.Context, req *fnv1.RunFunctionRequest, log logging.Logger) (rsp *fnv1.RunFunctionResponse) {
	gk := health.GroupKind(req.GetObserved().GetComposite().GetResource())
	defer func() {
		if p := recover(); p != nil {
			log.Info("Recovered from a panic", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			rsp = compose.Refuse(req, fmt.Errorf("cannot compose %s: the function panicked: please report this with the function's log", gk.Kind))
		}
	}()

	intent, ok := f.intents[gk]
	if !ok {
		return compose.Refuse(req, fmt.Errorf("cannot compose %s: this function serves no such kind", gk))
	}
	return compose.Respond(req, whileAwaited(ctx, intent), f.source)
}

// whileAwaited ends a call that nothing waits for before what it declares is decided on.
func whileAwaited(ctx context.Context, intent compose.Intent) compose.Intent {
	return func(c *compose.Claim) (*compose.Plan, error) {
		plan, err := intent(c)
		if err == nil {
			err = ctx.Err()
		}
		return plan, err
	}
}

func ending(rsp *fnv1.RunFunctionResponse) string {
	for _, r := range rsp.GetResults() {
		switch {
		case r.GetReason() == appsv1.ReasonInvalid:
			return "invalid"
		case r.GetSeverity() == fnv1.Severity_SEVERITY_FATAL:
			return "error"
		}
	}
	return "ok"
}
