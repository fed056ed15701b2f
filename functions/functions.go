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

// idleWorkers is the number of idle goroutines that are kept for the next calls: more than the
// calls that Crossplane usually makes at once.
const idleWorkers = 32

// maxCalls is the number of calls that are composed at once; further calls wait. Crossplane makes
// up to --max-concurrent-reconciles, 100, calls at once for each kind. A call that its caller has
// cancelled counts until it has ended, so that slow calls do not fill the memory.
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

	// admitsAll applies changes of a release at once, whatever the maintenance windows and waves.
	admitsAll bool

	observe func(kind, result string, took time.Duration)
}

// Option configures a Function.
type Option func(*Function)

// WithReview is for offline review: results contain placeholders instead of random values, and do
// not depend on the time, so that they can be read and compared.
func WithReview() Option { return func(f *Function) { f.source = compose.ReviewSource{} } }

// WithSource takes random values and the time from s instead of the system.
func WithSource(s compose.Source) Option { return func(f *Function) { f.source = s } }

// WithImages sets Storeplane's own images. The settings of an installation
// may replace their registry.
func WithImages(s images.Set) Option { return func(f *Function) { f.images = s } }

// WithoutWaiting applies changes of a release at once, without waiting for a maintenance window or
// a wave: for a plan, which shows what they are.
func WithoutWaiting() Option { return func(f *Function) { f.admitsAll = true } }

// WithLogger logs each call.
func WithLogger(l logging.Logger) Option { return func(f *Function) { f.log = l } }

// WithObserver calls o after each call with the composite's kind, how the call ended (ok, invalid
// or error), and how long it took.
func WithObserver(o func(kind, result string, took time.Duration)) Option {
	return func(f *Function) { f.observe = o }
}

// MaxCalls returns the number of calls that are composed at once.
func MaxCalls() int { return maxCalls }

// Running returns the number of calls that are being composed now, including those that
// their callers have cancelled.
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

// RunFunction implements the function protocol. A failure is a result of the response, never an
// error of the call: Crossplane shows results to users.
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

// compose runs a call as soon as fewer than maxCalls are running. It returns a refusal if ctx
// ends before the call has.
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

// run finds and runs the intent of the composite's kind. A panic becomes an error of that one
// claim, so that the server, which all claims share, continues.
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

// whileAwaited makes an intent return the error of ctx once the caller has cancelled, so that
// nothing is decided on its plan.
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
