package manager

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/storeplane/storeplane/internal/instance/manager/kube"
)

// A pod's token is refused once its pod's object is gone, which was deleted by force: the
// kubelet kills it in a moment. So it is once the ServiceAccount is gone, with the claim or
// the namespace, and then the pod has all of its grace period. The other servers tell the
// two apart: they have the same ServiceAccount.

// knownWithin is what a pod that is killed in a moment can wait for others.
const knownWithin = 800 * time.Millisecond

// serveKnown says no where the API server does not know this pod.
func (m *Manager) serveKnown(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), knownWithin)
	defer cancel()
	if _, err := m.kube.Self(ctx, m.Pod); kube.Unknown(err) || kube.Missing(err) {
		http.Error(w, "the API server does not know this pod", http.StatusGone)
	}
}

// known says whether the API server knows the pod of any other server, or may know it:
// where it is slow to answer it is not gone. All are asked at once.
func (s *stopper) known(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, knownWithin)
	defer cancel()
	members, err := s.patroni.Cluster(ctx)
	if err != nil {
		return false
	}
	answers := make(chan error, len(members.Members))
	asked := 0
	for _, other := range members.Members {
		if other.Name == s.Pod || other.Host == "" {
			continue
		}
		asked++
		go func() { answers <- s.sibling(other.Host).Known(ctx) }()
	}
	for range asked {
		if err := <-answers; err == nil || errors.Is(err, context.DeadlineExceeded) {
			return true
		}
	}
	return false
}
