package manager

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/archive"
)

// ownerFile on a volume has the UID of the DatabaseCluster whose data is on it.
const ownerFile = "owner"

// errOccupied is of a volume with data that a restored cluster can not go on with.
var errOccupied = errors.New("the volume holds data of another DatabaseCluster")

// own the volume before PostgreSQL starts on it, or say why not. A claim that is
// deleted may leave its volumes behind, and the next one of its name goes on with
// their data. One that is restored from a backup must not: its first server would
// start with the old data, and nobody would be told that nothing was restored;
// another one would follow the first with data that has parted from it.
func (b *member) own(ctx context.Context) (refusal string) {
	if b.owned.Load() {
		return ""
	}
	_, desired, ok := b.target()
	owner := b.cluster(ctx)
	if !ok || owner == nil {
		// Without the API server nothing is begun anyway.
		b.owned.Store(time.Since(b.started) >= startWithin)
		return ""
	}
	err := own(b.Volume, string(owner.UID), desired)
	if errors.Is(err, errOccupied) {
		return fmt.Sprintf("nothing is restored over the data on volume claim %s, which a deleted DatabaseCluster of this name has left: delete that volume claim and pod %s if nobody needs the data, file the claim without restoreFrom to go on with it, or restore under another name",
			b.volumeName(), b.Pod)
	}
	// A volume that is full, say, must not keep its server from starting.
	b.note("own the volume", err)
	b.owned.Store(true)
	return ""
}

// own a volume in the name of a DatabaseCluster.
func own(volume, uid string, d *instance.Desired) error {
	name := filepath.Join(volume, ownerFile)
	before, err := os.ReadFile(name) //nolint:gosec // the volume is the pod's
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot read whose the volume is: %w", err)
	}
	if string(before) == uid {
		return nil
	}
	data, err := os.ReadDir(archive.Config{Volume: volume}.DataDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot look at the data folder: %w", err)
	}
	// Volumes that are older than this rule have no owner, and may be those of a
	// cluster that was restored then.
	if len(data) > 0 && (d.Restoring || d.Restored && len(before) > 0) {
		return errOccupied
	}
	// How a restore went for somebody else is no news.
	if err := os.Remove(filepath.Join(volume, instance.RestoreStateFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot forget an earlier restore: %w", err)
	}
	if err := os.WriteFile(name, []byte(uid), 0o600); err != nil {
		return fmt.Errorf("cannot write whose the volume is: %w", err)
	}
	return nil
}
