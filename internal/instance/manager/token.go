package manager

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/storeplane/storeplane/internal/instance/manager/kube"
	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
)

// A pod's token is rejected once the pod's object is removed, as by a deletion by force: then
// the kubelet kills the pod in a moment. It is also rejected once the ServiceAccount is
// removed, with the claim or the namespace, and then the pod has all of its grace period. The
// other servers distinguish the two while their own tokens are valid, or still cached as
// valid: the API server caches that for ten seconds.

// knownWithin is how long a pod that is about to be killed can wait for the other servers.
const (
	knownWithin = 800 * time.Millisecond

	// hurriedWithin is longer: the manager answers after it has waited for the API server, and
	// then for the other servers.
	hurriedWithin = 2*knownWithin + 200*time.Millisecond
)

// serveGone answers whether a server's pod is gone or about to be killed.
func (m *Manager) serveGone(w http.ResponseWriter, r *http.Request) {
	asked := patroni.Asked{}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&asked); err != nil || m.ordinal(asked.Pod) < 0 {
		http.Error(w, "cannot read which pod is asked for", http.StatusBadRequest)
		return
	}
	if asked.Pod == m.Pod && asked.UID == "" {
		_ = json.NewEncoder(w).Encode(m.ending(r.Context())) //nolint:errchkjson // the client that asked is gone then
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), knownWithin)
	defer cancel()
	pod, err := m.Kube.Pod(ctx, asked.Pod)
	answer := patroni.Answer{Gone: kube.Missing(err)}
	switch {
	case kube.Unknown(err):
		http.Error(w, "the API server does not know this pod either", http.StatusGone)
		return
	case errors.Is(err, context.DeadlineExceeded) || err != nil && ctx.Err() != nil:
		http.Error(w, "the API server does not answer in time", http.StatusGatewayTimeout)
		return
	case err != nil && !answer.Gone:
		http.Error(w, "cannot ask for the pod", http.StatusBadGateway)
		return
	case err == nil:
		_, hurried := hurriedBy(pod)
		answer.Gone = hurried || asked.UID != "" && string(pod.UID) != asked.UID
	}
	_ = json.NewEncoder(w).Encode(answer) //nolint:errchkjson // the client that asked is gone then
}

// ending returns whether this server's own pod is gone or about to be killed. If the API
// server rejects its token, the pod may have been deleted by force: the other servers are
// asked.
func (m *Manager) ending(ctx context.Context) patroni.Answer {
	self, cancel := context.WithTimeout(ctx, knownWithin)
	defer cancel()
	pod, err := m.Kube.Self(self, m.Pod)
	switch {
	case err == nil:
		grace, hurried := hurriedBy(pod)
		return patroni.Answer{Gone: hurried, Seconds: int64(grace / time.Second)}
	case kube.Missing(err):
		return patroni.Answer{Gone: true}
	case kube.Unknown(err):
		gone, slow := m.gone(ctx)
		return patroni.Answer{Gone: gone || slow}
	case self.Err() != nil:
		// A slow API server says nothing about this pod, which may have all of its grace
		// period.
		gone, _ := m.gone(ctx)
		return patroni.Answer{Gone: gone}
	}
	return patroni.Answer{}
}

// gone reports whether another server finds that this one's pod is gone. All servers are asked
// at once, and the first answer decides. slow is true if no server found out, at least one
// request timed out, there or at the API server, and no server reported that its own token is
// rejected too.
func (m *Manager) gone(ctx context.Context) (gone, slow bool) {
	ctx, cancel := context.WithTimeout(ctx, knownWithin)
	defer cancel()
	members, err := m.patroni.Cluster(ctx)
	if err != nil {
		return false, false
	}
	type answer struct {
		gone bool
		err  error
	}
	answers := make(chan answer, len(members.Members))
	asked := 0
	for _, other := range members.Members {
		if other.Name == m.Pod || other.Host == "" {
			continue
		}
		asked++
		go func() {
			answered, err := m.sibling(other.Manager(m.apiPort())).Gone(ctx, patroni.Asked{Pod: m.Pod, UID: m.Kube.UID()})
			answers <- answer{gone: answered.Gone, err: err}
		}()
	}
	strangers := false
	for range asked {
		a := <-answers
		if a.err == nil {
			return a.gone, false
		}
		strangers = strangers || errors.Is(a.err, patroni.ErrStranger)
		slow = slow || errors.Is(a.err, context.DeadlineExceeded) || errors.Is(a.err, patroni.ErrSlow)
	}
	return false, slow && !strangers
}
