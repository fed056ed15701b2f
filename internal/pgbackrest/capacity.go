package pgbackrest

import "math"

// A Plan is what a schedule keeps in a repository, in days.
type Plan struct {
	// Retention is the age at which a full backup expires, once a younger one
	// is as old.
	Retention int

	// Full is the time between two full backups.
	Full float64
}

// Peak is the most that a repository holds, in bytes: while a full backup is made
// nothing has expired for it yet. A full backup takes full bytes, and change bytes
// are changed each day, which are kept twice: in backups and as WAL.
func (p Plan) Peak(full, change int64) int64 {
	// A full backup that is as old as the retention expires once the next one is,
	// and with the next backup of any kind: a day later at most.
	retention := float64(p.Retention)
	kept := math.Floor((retention+1)/p.Full) + 1
	days := retention + p.Full + 2
	peak := (kept+1)*float64(full) + days*2*float64(change)
	return int64(math.Min(peak, math.MaxInt64/2))
}

// RepositoryFactor is how many times the database's volume a repository's own
// volume is, where no size is given. At FillPercent and ChangePercent the default
// schedule and retention take three quarters of it.
const RepositoryFactor = 5

// What a repository is planned for: database volumes that are filled to
// FillPercent, of which ChangePercent changes each day, and nothing of it can be
// compressed.
const (
	FillPercent   = 50
	ChangePercent = 2
)

// PeakOf the plan for a database whose volumes have a size in bytes.
func (p Plan) PeakOf(volume int64) int64 {
	full := volume / 100 * FillPercent
	return p.Peak(full, full/100*ChangePercent)
}

// DefaultFullEvery is how many days lie between two full backups where a schedule
// does not say.
const DefaultFullEvery = 7
