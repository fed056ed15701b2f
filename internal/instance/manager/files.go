package manager

import (
	"context"
	"os"
	"path/filepath"
	"time"
)

// followFiles has the server read files that have changed. The kubelet swaps
// the target of a link when it writes them; so no file is read to know that. It
// also happens once at the start, since a file may have changed while this
// program was away.
func (m *Manager) followFiles(ctx context.Context) {
	var config, credentials, certificate string
	for ctx.Err() == nil {
		c, s, t := version(m.PatroniDir), version(m.Credentials), version(m.TLSDir)
		// Patroni need not reload again while the certificate waits for its server to start.
		if (c != config || s != credentials) && m.note("reload Patroni", m.patroni.Reload(ctx)) {
			config, credentials = c, s
		}
		// Patroni tells the server only what has changed in its own files.
		if t != certificate && m.note("reload the certificate", m.server.Reload(ctx)) {
			certificate = t
		}
		wait(ctx, 2*time.Second)
	}
}

// version of the files in a mounted folder.
func version(dir string) string {
	target, err := os.Readlink(filepath.Join(dir, "..data"))
	if err != nil {
		return ""
	}
	return target
}
