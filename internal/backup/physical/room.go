package physical

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/instance/manager/volume"
	"github.com/storeplane/storeplane/internal/pgbackrest"
)

// makeRoom makes room on a volume before a backup: the oldest backups expire while less room is
// left than the backup, and the WAL after it, are expected to take. Without it a full volume
// would stay full, since only a successful backup expires others. A backup that still does not
// fit is refused, because it would take the room that WAL needs.
func (j *job) makeRoom(ctx context.Context, full bool) error {
	if j.task.Destination.Type != backupv1.Volume {
		return nil
	}
	for {
		sets, err := j.catalog(ctx)
		if err != nil {
			return err
		}
		sets = pgbackrest.Of(j.task.Stanza, sets)
		need := pgbackrest.Expect(sets, full, j.archivedSince(sets), j.now())
		free, size, err := j.room()
		if err != nil || free >= need.Room() {
			return err
		}
		expired, err := j.expireOldest(ctx, sets)
		switch {
		case err != nil:
			return err
		case expired:
		case free >= need.Backup:
			return nil
		default:
			return fail(backup.StoreFull, fmt.Errorf("cannot make a backup: it takes about %s, volume claim %s has %s of %s left, and no older backup may expire: %s",
				readable(need.Backup), j.task.Destination.Bucket, readable(free), readable(size), j.wayOut()))
		}
	}
}

// wayOut returns what to do about a volume that is too small. Backups of other databases, such as one
// that had the cluster's name before, are not this one's to expire.
func (j *job) wayOut() string {
	const larger = "enlarge it, by backup.storageSize of the DatabaseCluster if Storeplane created it, or choose another backup.destination"
	dirs, _ := filepath.Glob(filepath.Join(j.path(), "backup", "*"))
	var names []string
	var sum int64
	for _, dir := range dirs {
		if name := filepath.Base(dir); name != j.task.Stanza {
			names = append(names, name)
			sum += bytesIn(dir, time.Time{}) + bytesIn(filepath.Join(j.path(), "archive", name), time.Time{})
		}
	}
	if len(names) == 0 {
		return larger
	}
	return fmt.Sprintf("%s. Backups of other databases take %s of it, of system identifier %s: once nothing of them is needed, remove their folders below %s/backup and %s/archive",
		larger, readable(sum), strings.Join(names, ", "), j.path(), j.path())
}

// expireOldest expires the oldest backup that may expire, and reports whether there was one.
func (j *job) expireOldest(ctx context.Context, sets []pgbackrest.Set) (bool, error) {
	broken, err := j.tool.Broken(ctx, j.task.Stanza)
	if err != nil {
		return false, err
	}
	label := pgbackrest.Spare(sets, broken)
	if label == "" {
		return false, nil
	}
	_, _ = fmt.Fprintf(j.log, "Room is short: backup %s and those that depend on it expire\n", label)
	return true, j.tool.Expire(ctx, j.task.Stanza, label)
}

// pack writes the backup into the repository. If the backup is larger than those before it and
// fills the volume, it is removed, and retried as long as older ones may expire for it. If a standby
// answers but does not follow the primary, the primary is read instead.
func (j *job) pack(ctx context.Context, options []string) error {
	for {
		known := j.unfinished()
		_, err := j.tool.Run(ctx, j.task.Stanza, "backup", options...)
		if i := slices.Index(options, fromStandby); i >= 0 && ctx.Err() == nil && pgbackrest.StandbyBehind(err) {
			_, _ = fmt.Fprintf(j.log, "The standby does not follow the primary, which is read instead: %v\n", err)
			options = slices.Delete(slices.Clone(options), i, i+1)
			continue
		}
		// If another backup is running, that one makes room itself.
		if err == nil || ctx.Err() != nil || pgbackrest.Locked(err) || !j.filled() {
			return err
		}
		for _, dir := range j.unfinished() {
			if !slices.Contains(known, dir) {
				err = errors.Join(err, os.RemoveAll(dir))
			}
		}
		sets, listErr := j.catalog(ctx)
		if listErr != nil {
			return errors.Join(err, listErr)
		}
		expired, expireErr := j.expireOldest(ctx, pgbackrest.Of(j.task.Stanza, sets))
		if expireErr != nil {
			return errors.Join(err, expireErr)
		}
		if !expired {
			return fail(backup.StoreFull, fmt.Errorf("cannot make a backup: volume claim %s is full, and no older backup may expire: %s: %w", j.task.Destination.Bucket, j.wayOut(), err))
		}
	}
}

// filled reports whether the repository's volume is full. pgBackRest's error does not always show
// that, and may also be about the volume of a server.
func (j *job) filled() bool {
	if j.task.Destination.Type != backupv1.Volume {
		return false
	}
	used, size, err := volume.Usage(j.path())
	const sliver = 50
	return err == nil && size-used < size/sliver
}

// path returns the path of the repository on the volume.
func (j *job) path() string {
	if j.places.path != "" {
		return j.places.path
	}
	return pgbackrest.Repository{Destination: j.task.Destination, Namespace: j.task.Namespace, Name: j.task.Name}.Path()
}

// room returns the free room on the volume, and the size of the volume, in bytes. An unfinished
// backup counts as free, since the next one removes it.
func (j *job) room() (free, size int64, err error) {
	used, total, err := volume.Usage(j.path())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, 0, notSetUp(err)
	case err != nil:
		return 0, 0, fail(backup.BucketMissing, err)
	}
	size = int64(total)       //nolint:gosec // no volume has that many bytes
	free = size - int64(used) //nolint:gosec // the same
	for _, dir := range j.unfinished() {
		free += bytesIn(dir, time.Time{})
	}
	return free, size, nil
}

// unfinished returns the folders of backups without a manifest.
func (j *job) unfinished() []string {
	dirs, _ := filepath.Glob(filepath.Join(j.path(), "backup", j.task.Stanza, "[0-9]*"))
	return slices.DeleteFunc(dirs, func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, "backup.manifest"))
		return err == nil
	})
}

// archivedSince returns the bytes of WAL archived since the newest backup began.
func (j *job) archivedSince(sets []pgbackrest.Set) int64 {
	if len(sets) == 0 {
		return 0
	}
	return bytesIn(filepath.Join(j.path(), "archive", j.task.Stanza), sets[len(sets)-1].Start)
}

// bytesIn returns the bytes of the files below a folder that were written since a time. Files
// that are deleted meanwhile do not count.
func bytesIn(dir string, since time.Time) int64 {
	var sum int64
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil //nolint:nilerr // the file was deleted meanwhile
		}
		if info, err := d.Info(); err == nil && info.ModTime().After(since) {
			sum += info.Size()
		}
		return nil
	})
	return sum
}

// readable formats a size, rounded up.
func readable(bytes int64) string {
	const enough = 10
	unit := int64(1)
	for _, u := range []int64{1 << 10, 1 << 20, 1 << 30} {
		if bytes >= enough*u {
			unit = u
		}
	}
	return resource.NewQuantity((bytes+unit-1)/unit*unit, resource.BinarySI).String()
}
