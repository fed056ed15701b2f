package volume

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/storeplane/storeplane/internal/instance/manager/kube"
)

// askAgain is the pause before more storage is requested again after a refusal: the StorageClass may
// allow expansion by then.
const askAgain = time.Minute

// Grower requests more storage for one volume claim. Its zero value is ready to use.
type Grower struct {
	// asked is when storage was requested last, size is how much, and last is the error. refusal is
	// why it was refused, or "".
	asked   time.Time
	size    string
	last    error
	refusal string
}

// Grow requests more storage by patch, if the claim has less than size, a quantity. Request is true
// in what it returns if storage was requested. An error is one of the API server's, and the claim is
// as before.
func (g *Grower) Grow(ctx context.Context, claim *corev1.PersistentVolumeClaim, size string, patch func(ctx context.Context, claim, size string) error) (Growth, error) {
	growth, err := Decide(claim, size)
	if err != nil || !growth.Request {
		return growth, err
	}
	if size == g.size && g.refusal != "" && time.Since(g.asked) < askAgain {
		return g.refused(), g.last
	}
	err = patch(ctx, claim.Name, size)
	if g.size != size || err == nil {
		g.refusal = ""
	}
	g.asked, g.size, g.last = time.Now(), size, err
	if err != nil && kube.Refused(err) {
		g.refusal = kube.Reason(err)
	}
	// A refusal stands until the API server gives another answer.
	if g.refusal != "" {
		return g.refused(), err
	}
	return growth, err
}

// refused returns what is known of a volume for which the API server refuses more storage.
func (g *Grower) refused() Growth {
	return Growth{Refused: true, Message: Refusal(g.size, g.refusal)}
}
