package manager

import (
	"os"
	"path/filepath"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
)

// recheckAfter is how long a running standby may not follow before Patroni is made to check
// again which server it follows.
const recheckAfter = memberPeriod

// recheckUpstream makes Patroni check which server its standby follows, while the standby runs and
// does not follow. Patroni reads that from the server only when the configuration file is newer
// than at the last check. If it checks just after it has written the file, and before the server
// has read it, it takes the old value for the current one and never checks again: a standby that
// was configured to follow no server for a moment, because there was no leader, would wait for
// ever. A newer file makes Patroni check.
func (b *member) recheckUpstream(status *patroni.Status, now time.Time) {
	if status == nil || !status.Idle() {
		b.idle = time.Time{}
		return
	}
	if b.idle.IsZero() {
		b.idle = now
		return
	}
	if now.Sub(b.idle) < recheckAfter {
		return
	}
	b.idle = now
	b.Note("have Patroni check which server its own follows", os.Chtimes(filepath.Join(b.Volume, instance.DataFolder, "postgresql.conf"), now, now))
}
