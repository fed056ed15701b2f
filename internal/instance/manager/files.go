package manager

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/storeplane/storeplane/internal/instance/control"
)

// followFiles has the server read files that have changed. The kubelet swaps
// the target of a link when it writes them; so no file is read to know that. It
// also happens once at the start, since a file may have changed while this
// program was away.
func (m *Manager) followFiles(ctx context.Context) {
	var config, credentials, certificate string
	shown := shown{by: m.control()}
	for ctx.Err() == nil {
		// A reload in which Patroni finds another configuration leaves its certificate
		// as it is.
		if shown.stale(m.patroni.Shown(), time.Now()) {
			m.note("reload Patroni's certificate", m.patroni.Reload(ctx))
		}
		c, s, t := version(m.PatroniDir), version(m.Credentials), version(m.TLSDir)
		if (c != config || s != credentials || t != certificate) && m.note("reload Patroni", m.patroni.Reload(ctx)) {
			config, credentials = c, s
			// Patroni tells the server only what has changed in its own files.
			if t == certificate || m.note("reload the certificate", m.server.Reload(ctx)) {
				certificate = t
			}
		}
		wait(ctx, 2*time.Second)
	}
}

// reloadAgain is how long Patroni has to take up a certificate: it reloads in its next turn.
const reloadAgain = 15 * time.Second

// shown is the certificate of Patroni's API that was looked at last.
type shown struct {
	by control.TLS

	version string
	last    []byte
	is      bool
	tried   time.Time
}

// stale says whether Patroni is to reload, since it shows another certificate than the one
// that is mounted. One that cannot be read is left to the next look.
func (s *shown) stale(now []byte, at time.Time) bool {
	if now == nil {
		return false
	}
	if v := version(s.by.Dir); v != s.version || !bytes.Equal(s.last, now) {
		is, err := s.by.Mounted(now)
		if err != nil {
			return false
		}
		s.version, s.last, s.is = v, now, is
	}
	if s.is || at.Sub(s.tried) < reloadAgain {
		return false
	}
	s.tried = at
	return true
}

// version of the files in a mounted folder.
func version(dir string) string {
	target, err := os.Readlink(filepath.Join(dir, "..data"))
	if err != nil {
		return ""
	}
	return target
}
