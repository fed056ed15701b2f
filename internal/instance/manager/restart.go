package manager

import (
	"os"
	"path/filepath"
	"time"

	"github.com/storeplane/storeplane/internal/instance/manager/patroni"
)

// nudgeAfter is how long a standby that is up may not follow before Patroni is
// made to look again at whom it follows.
const nudgeAfter = memberPeriod

// nudge Patroni while its server is a standby that is up and does not follow.
// Patroni asks the server whom it follows only when the configuration file is
// newer than the last time. If it asks just after it has written the file, and
// before the server has read it, it takes what was for what is, and never asks
// again: a standby that was told to follow nobody for a moment, because nobody
// led, would wait for ever. A file that is newer has Patroni ask.
func (b *member) nudge(status *patroni.Status, now time.Time) {
	if status == nil || !status.Idle() {
		b.idle = time.Time{}
		return
	}
	if b.idle.IsZero() {
		b.idle = now
		return
	}
	if now.Sub(b.idle) < nudgeAfter {
		return
	}
	b.idle = now
	b.note("have Patroni look whom its server follows", os.Chtimes(filepath.Join(b.Volume, "pgdata", "postgresql.conf"), now, now))
}
