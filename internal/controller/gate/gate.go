package gate

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Gate is a gate that opens once kinds are served, not as soon as their definitions are
// established. The API server reports a definition as established first, and for a moment after
// that the kind is missing in discovery: a controller that started then could not find the kind
// that it watches.
type Gate struct {
	controller.Gate

	ctx    context.Context //nolint:containedctx // Callbacks wait at the gate for as long as it lives, and Register takes no context.
	served Lookup
	log    logging.Logger
}

// New returns a Gate behind another one, which opens when definitions are established. No callback
// is called once ctx is done.
func New(ctx context.Context, established controller.Gate, served Lookup, log logging.Logger) *Gate {
	return &Gate{Gate: established, ctx: ctx, served: served, log: log}
}

// Register registers a callback that is called once all kinds are served.
func (g *Gate) Register(callback func(), kinds ...schema.GroupVersionKind) {
	g.Gate.Register(func() {
		// The other gate runs this in a goroutine of its own, so it may wait.
		if g.await(kinds) == nil {
			callback()
		}
	}, kinds...)
}

// backoff returns the pauses between two lookups. They grow to 5 seconds, since a kind that is not
// served after seconds was most likely deleted again.
func backoff() wait.DelayFunc {
	return wait.Backoff{Duration: 100 * time.Millisecond, Factor: 1.5, Cap: 5 * time.Second, Steps: 20}.DelayFunc()
}

// await waits until all kinds are served, for as long as it takes, or until the Gate's context is
// done, which is an error. A lookup that fails is retried.
func (g *Gate) await(kinds []schema.GroupVersionKind) error {
	said := ""
	return backoff().Until(g.ctx, true, true, func(context.Context) (bool, error) {
		why := g.missing(kinds)
		if why != "" && why != said {
			g.log.Debug("A controller waits", "reason", why)
		}
		said = why
		return why == "", nil
	})
}

// missing returns why the first kind that is not served cannot be used yet, or "" if all are
// served.
func (g *Gate) missing(kinds []schema.GroupVersionKind) string {
	for _, k := range kinds {
		is, err := g.served(k)
		if err != nil {
			return err.Error()
		}
		if !is {
			return k.Kind + " is established and not served yet"
		}
	}
	return ""
}
