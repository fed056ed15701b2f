package manager

import (
	"context"
	"time"

	"github.com/storeplane/storeplane/internal/instance/manager/mounted"
	"github.com/storeplane/storeplane/internal/instance/manager/pace"
)

// followFiles reloads Patroni and PostgreSQL when mounted files have changed. It also reloads once at the start, since a file may have changed while this program did not
// run.
func (m *Manager) followFiles(ctx context.Context) {
	var config, credentials, certificate string
	for ctx.Err() == nil {
		c, s, t := mounted.Version(m.PatroniDir), mounted.Version(m.Credentials), mounted.Version(m.TLSDir)
		// Patroni does not reload again while the reload of the certificate fails because
		// PostgreSQL has not started.
		if (c != config || s != credentials) && m.Note("reload Patroni", m.patroni.Reload(ctx)) {
			config, credentials = c, s
		}
		// Patroni has PostgreSQL reload only for changes of its own files.
		if t != certificate && m.Note("reload the certificate", m.server.Reload(ctx)) {
			certificate = t
		}
		pace.Wait(ctx, 2*time.Second)
	}
}
