package manager

import (
	"context"
	"os"
	"path/filepath"
	"time"
)

// followFiles reloads Patroni and PostgreSQL when mounted files have changed. The kubelet
// replaces the target of a link when it writes them, so that no file is read to notice that.
// It also reloads once at the start, since a file may have changed while this program did not
// run.
func (m *Manager) followFiles(ctx context.Context) {
	var config, credentials, certificate string
	for ctx.Err() == nil {
		c, s, t := version(m.PatroniDir), version(m.Credentials), version(m.TLSDir)
		// Patroni does not reload again while the reload of the certificate fails because
		// PostgreSQL has not started.
		if (c != config || s != credentials) && m.note("reload Patroni", m.patroni.Reload(ctx)) {
			config, credentials = c, s
		}
		// Patroni has PostgreSQL reload only for changes of its own files.
		if t != certificate && m.note("reload the certificate", m.server.Reload(ctx)) {
			certificate = t
		}
		wait(ctx, 2*time.Second)
	}
}

// version returns a text that changes with the files of a mounted directory.
func version(dir string) string {
	target, err := os.Readlink(filepath.Join(dir, "..data"))
	if err != nil {
		return ""
	}
	return target
}
