package pgbackrest

import "math"

// A Plan is what a schedule keeps in a repository. Its times are in days.
type Plan struct {
	// Retention is the age at which a full backup expires, provided that a younger one has that
	// age too.
	Retention int

	// Full is the time between two full backups.
	Full float64
}

// Peak returns the most that a repository holds, in bytes, which is while a full backup is
// running and nothing has expired for it yet. A full backup takes full bytes. Of the data, change
// bytes change each day, and are stored twice: in backups and as WAL.
func (p Plan) Peak(full, change int64) int64 {
	// A full backup as old as the retention expires when the next one is too, by the first backup
	// of any kind after that: a day later at most.
	retention := float64(p.Retention)
	kept := math.Floor((retention+1)/p.Full) + 1
	days := retention + p.Full + 2
	peak := (kept+1)*float64(full) + days*2*float64(change)
	return int64(math.Min(peak, math.MaxInt64/2))
}

// RepositoryFactor is how many times as large as the database's volume a repository's own volume
// is, if no size is given. With FillPercent and ChangePercent, the default schedule and retention
// take three quarters of it.
const RepositoryFactor = 5

// Repositories are planned for database volumes that are filled to FillPercent, of which
// ChangePercent changes each day, and for data that cannot be compressed.
const (
	FillPercent   = 50
	ChangePercent = 2
)

// PeakOf returns the peak for a database whose volume has a size in bytes.
func (p Plan) PeakOf(volume int64) int64 {
	full := volume / 100 * FillPercent
	return p.Peak(full, full/100*ChangePercent)
}

// DefaultFullEvery is how many days are between two full backups, unless a schedule sets that.
const DefaultFullEvery = 7
