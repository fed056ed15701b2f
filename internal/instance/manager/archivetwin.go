package manager

import (
	"context"
	"fmt"
	"time"

	"github.com/storeplane/storeplane/internal/instance/manager/postgres"
	"github.com/storeplane/storeplane/internal/pgbackrest/wal"
)

const (
	// twinPeriod is how often another cluster is looked for that archives to the same place, and
	// twinAgain is the pause before the same is found again: until then it may be a server of this
	// cluster that takes over.
	twinPeriod = 5 * time.Minute
	twinAgain  = time.Minute
)

// twin is what shows that another cluster archives to the same place: a copy of the volumes that leads
// elsewhere, with the same system identifier. A server that is promoted takes the number after the
// last one in the archive, so no archive has a timeline beyond that of its primary. The twin's files
// have other names than this cluster's until that one is promoted, too, and no write conflicts.
type twin struct {
	// asked is when the archive was last asked, and suspect the timeline that it had beyond the
	// primary's. timeline is that once it is certain, and 0 without a twin.
	asked             time.Time
	suspect, timeline uint32
}

func (a *archiving) lookForTwin(ctx context.Context, now time.Time, s postgres.Archiver) {
	period := twinPeriod
	if a.twin.suspect != 0 {
		period = twinAgain
	}
	if !a.created || now.Sub(a.twin.asked) < period {
		return
	}
	own, ok := wal.Parse(s.Current)
	last, err := a.timeline(ctx)
	if a.twin.asked = now; !a.Note("ask the archive for its timelines", err) || !ok {
		return
	}
	switch {
	case last <= own.Timeline:
		a.twin.suspect, a.twin.timeline = 0, 0
	case a.twin.suspect == 0:
		a.twin.suspect = last
	default:
		a.twin.suspect, a.twin.timeline = last, last
	}
}

// message says what is wrong, and what to do.
func (t twin) message(current string) string {
	own, _ := wal.Parse(current)
	return fmt.Sprintf("another cluster with this one's system identifier archives to the same place: timeline %d is in the archive, and this cluster is on %d, so a restore would follow the other one: give the other one another prefix in backup.destination, and this one, too, since that timeline stays here", t.timeline, own.Timeline)
}
