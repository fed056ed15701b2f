package gate

import (
	"context"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/controller"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Gate that opens once kinds are served, not as soon as their definitions are
// established: that is what an API server says first, and for a moment after it
// the kind is in none of its lists, so that a controller which began then could
// not find what it is to watch.
type Gate struct {
	controller.Gate

	ctx    context.Context //nolint:containedctx // What waits at the gate lives as long as it, and Register takes none.
	served Lookup
	log    logging.Logger
}

// New behind another one, which opens when definitions are established. Its
// callbacks are called no more once ctx is done.
func New(ctx context.Context, established controller.Gate, served Lookup, log logging.Logger) *Gate {
	return &Gate{Gate: established, ctx: ctx, served: served, log: log}
}

// Register a callback for when all kinds are served.
func (g *Gate) Register(callback func(), kinds ...schema.GroupVersionKind) {
	g.Gate.Register(func() {
		// It runs in a goroutine of its own.
		if g.await(kinds) == nil {
			callback()
		}
	}, kinds...)
}

// patience grows, since a kind that is not served after seconds was most likely
// deleted again.
func patience() wait.DelayFunc {
	return wait.Backoff{Duration: 100 * time.Millisecond, Factor: 1.5, Cap: 5 * time.Second, Steps: 20}.DelayFunc()
}

// await all kinds, for as long as it takes. An API server that does not answer is
// asked again.
func (g *Gate) await(kinds []schema.GroupVersionKind) error {
	said := ""
	return patience().Until(g.ctx, true, true, func(context.Context) (bool, error) {
		why := g.missing(kinds)
		if why != "" && why != said {
			g.log.Debug("A controller waits", "reason", why)
		}
		said = why
		return why == "", nil
	})
}

// missing says which of the kinds is not served, or "".
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
