package pgbackrest

import (
	"fmt"
	"testing"
	"time"
)

const gi = int64(1) << 30

func TestPeak(t *testing.T) {
	cases := map[string]struct {
		reason       string
		plan         Plan
		full, change int64
		want         int64
	}{
		"Default": {reason: "Six full backups, and 39 days of changes twice.", plan: Plan{Retention: 30, Full: 7}, full: 50, change: 1, want: 6*50 + 39*2},
		"Daily":   {reason: "A full one each day is 33 of them.", plan: Plan{Retention: 30, Full: 1}, full: 50, change: 1, want: 33*50 + 33*2},
		"Short":   {reason: "Whatever the retention, one is there while the next is made.", plan: Plan{Retention: 1, Full: 7}, full: 50, change: 1, want: 2*50 + 10*2},
		"Hourly":  {reason: "Many a day are counted, too.", plan: Plan{Retention: 1, Full: 0.5}, full: 10, want: 6 * 10},
		"Huge":    {reason: "It does not overflow.", plan: Plan{Retention: 9999999, Full: 0.01}, full: 1 << 50, change: 1 << 50, want: 1<<62 - 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.plan.Peak(tc.full, tc.change); got != tc.want && name != "Huge" || got < 0 {
				t.Errorf("%s\nPeak(%d, %d): want %d, got %d", tc.reason, tc.full, tc.change, tc.want, got)
			}
		})
	}
}

// repository simulates a volume with backups, hour by hour.
type repository struct {
	size int64

	// data is the size of a full backup, and change is how much of it changes each day. With
	// spread, the changes touch all files, so that an incremental backup is as large as a full one.
	data, change int64
	spread       bool

	retention, fullEvery int
	makesRoom            bool

	sets []Set
	log  []segment
	full bool // whether the volume has been full

	peak           int64
	early, refused int
	shortest       time.Duration
}

// segment is the WAL of one hour.
type segment struct {
	at   time.Time
	size int64
}

func (r *repository) used() int64 {
	var sum int64
	for _, s := range r.sets {
		sum += s.Size
	}
	for _, l := range r.log {
		sum += l.size
	}
	return sum
}

// take adds bytes and returns true, or notes that the volume is full and returns false.
func (r *repository) take(bytes int64) bool {
	used := r.used() + bytes
	if used > r.size {
		r.full = true
		return false
	}
	r.peak = max(r.peak, used)
	return true
}

// expire removes the oldest backup with those that depend on it, and the WAL from before the next
// one.
func (r *repository) expire(t *testing.T, label string) {
	t.Helper()
	kept := r.sets[:0:0]
	for _, s := range r.sets {
		if s.Chain() != label {
			kept = append(kept, s)
		}
	}
	if len(kept) == 0 || !kept[0].IsFull() {
		t.Fatalf("%s expires and leaves %v", label, kept)
	}
	r.sets = kept
	for len(r.log) > 0 && r.log[0].at.Before(kept[0].Start) {
		r.log = r.log[1:]
	}
}

// age expires backups as pgBackRest does: all before the newest full backup that is older than the
// retention.
func (r *repository) age(t *testing.T, now time.Time) {
	t.Helper()
	last := ""
	for _, s := range r.sets {
		if s.IsFull() && now.Sub(s.Stop) > time.Duration(r.retention)*24*time.Hour {
			last = s.Label
		}
	}
	for last != "" && r.sets[0].Label != last {
		r.expire(t, r.sets[0].Label)
	}
}

// backUp makes a backup as package physical does, with the functions of this package.
func (r *repository) backUp(t *testing.T, now time.Time) {
	t.Helper()
	full := r.fullEvery == 0 || FullDue(r.sets, r.fullEvery, now)
	for r.makesRoom {
		var archived int64
		for _, l := range r.log {
			if len(r.sets) > 0 && l.at.After(r.sets[len(r.sets)-1].Start) {
				archived += l.size
			}
		}
		need, free := Expect(r.sets, full, archived, now), r.size-r.used()
		if free >= need.Room() {
			break
		}
		oldest := Spare(r.sets, nil)
		if oldest == "" && free < need.Backup {
			r.refused++
			return
		}
		if oldest == "" {
			break
		}
		r.early++
		r.expire(t, oldest)
	}
	label := now.Format("20060102-150405")
	s := Set{Label: label + "F", Start: now, Stop: now.Add(time.Hour), Size: r.data, Data: r.data}
	if !full {
		for _, o := range r.sets {
			if o.IsFull() {
				s.Label = o.Label + "_" + label + "I"
			}
		}
		s.Size = r.data
		if !r.spread {
			s.Size = min(r.data, int64(float64(r.change)*now.Sub(r.sets[len(r.sets)-1].Start).Hours()/24))
		}
	}
	if !r.take(s.Size) {
		return
	}
	r.sets = append(r.sets, s)
	r.age(t, now)
}

// run simulates that many days, and ends early when the volume is full.
func (r *repository) run(t *testing.T, days int) {
	t.Helper()
	begin := time.Date(2026, 1, 1, 2, 0, 0, 0, time.UTC)
	r.shortest = 1 << 62
	for hour := 0; hour < 24*days && !r.full; hour++ {
		now := begin.Add(time.Duration(hour) * time.Hour)
		if hour%24 == 0 {
			r.backUp(t, now)
		}
		if hour%(24*7) == 5 {
			r.sets[len(r.sets)-1].Verified = now
		}
		if l := r.change / 24; r.take(l) {
			r.log = append(r.log, segment{at: now, size: l})
		}
		if hour > 24*60 {
			r.shortest = min(r.shortest, now.Sub(r.sets[0].Stop))
		}
	}
}

// TestDefaultRepository: with the default schedule and retention, 120 days of backups fit the
// default repository volume.
func TestDefaultRepository(t *testing.T) {
	const volume = 100 * gi
	plan := Plan{Retention: 30, Full: DefaultFullEvery}
	for _, change := range []int64{0, 1, ChangePercent} {
		data := volume / 100 * FillPercent
		r := &repository{size: RepositoryFactor * volume, data: data, change: data / 100 * change, retention: 30, fullEvery: DefaultFullEvery, makesRoom: true}
		r.run(t, 120)
		if r.full || r.early > 0 || r.refused > 0 {
			t.Errorf("%d %% a day: full %t, %d backups expired for want of room, %d were refused", change, r.full, r.early, r.refused)
		}
		if r.shortest < 30*24*time.Hour {
			t.Errorf("%d %% a day: only the last %s can be restored to", change, r.shortest)
		}
		if r.peak > r.size/100*80 {
			t.Errorf("%d %% a day: the volume is filled to %d %%, and the alert fires", change, r.peak*100/r.size)
		}
		if bound := plan.Peak(data, r.change); r.peak > bound {
			t.Errorf("%d %% a day: Peak() is %d Gi, and the most was %d Gi", change, bound/gi, r.peak/gi)
		}
	}
}

// TestPeakBounds: no schedule uses more than Peak returns.
func TestPeakBounds(t *testing.T) {
	for _, retention := range []int{1, 7, 14, 30, 45} {
		for _, every := range []int{1, 3, 7, 10, 14} {
			r := &repository{size: 1 << 60, data: 50 * gi, change: gi, retention: retention, fullEvery: every}
			r.run(t, 150)
			bound := Plan{Retention: retention, Full: float64(every)}.Peak(r.data, r.change)
			if r.peak > bound {
				t.Errorf("%d days, full each %d: Peak() is %d Gi, and the most was %d Gi", retention, every, bound/gi, r.peak/gi)
			}
			if slack := bound - r.peak; slack > r.data+5*r.change {
				t.Errorf("%d days, full each %d: Peak() is %d Gi, far more than %d Gi", retention, every, bound/gi, r.peak/gi)
			}
		}
	}
}

// TestRepositoryNeverFull: however much changes, backups expire before the volume is full, also on
// a repository that is only twice as large as the database's volume.
func TestRepositoryNeverFull(t *testing.T) {
	const volume = 100 * gi
	for _, tc := range []struct {
		factor, fill, change int64
		spread               bool
		least                time.Duration
	}{
		{factor: 5, fill: 50, change: 2, spread: true, least: 24 * time.Hour},
		{factor: 5, fill: 30, change: 2, spread: true, least: 7 * 24 * time.Hour},
		{factor: 5, fill: 10, change: 20, least: 30 * 24 * time.Hour},
		{factor: 5, fill: 50, change: 5, least: 30 * 24 * time.Hour},
		{factor: 5, fill: 50, change: 10, least: 14 * 24 * time.Hour},
		{factor: 5, fill: 50, change: 40, least: 24 * time.Hour},
		{factor: 5, fill: 100, change: 5, least: 7 * 24 * time.Hour},
		{factor: 5, fill: 100, change: 15, least: 24 * time.Hour},
		{factor: 2, fill: 30, change: 2, least: 14 * 24 * time.Hour},
		{factor: 2, fill: 50, change: 2, least: 7 * 24 * time.Hour},
		{factor: 2, fill: 50, change: 8, least: 24 * time.Hour},
	} {
		t.Run(fmt.Sprintf("%d-%d-%d-%t", tc.factor, tc.fill, tc.change, tc.spread), func(t *testing.T) {
			data := volume / 100 * tc.fill
			r := &repository{size: tc.factor * volume, data: data, change: data / 100 * tc.change, spread: tc.spread, retention: 30, fullEvery: DefaultFullEvery, makesRoom: true}
			r.run(t, 120)
			if r.full || r.refused > 0 {
				t.Errorf("it was full: %t, and %d backups were refused", r.full, r.refused)
			}
			if r.shortest < tc.least {
				t.Errorf("want the last %s to be there to restore to, got %s", tc.least, r.shortest)
			}
		})
	}
}

// TestRepositoryOnce: daily full backups without early expiry fill a repository of twice the size
// of the database's volume.
func TestRepositoryOnce(t *testing.T) {
	const data = 50 * gi
	r := &repository{size: 200 * gi, data: data, change: data / 50, retention: 30}
	r.run(t, 120)
	if !r.full {
		t.Errorf("33 full backups fit into the room of four")
	}
	if free, want := (Plan{Retention: 30, Full: 1}).PeakOf(100*gi), r.size; free < want {
		t.Errorf("PeakOf() does not tell that they do not fit: %d Gi of %d", free/gi, want/gi)
	}
}

// TestRepositoryTooSmall: a backup is refused when no backup may expire, and the newest full backup
// stays.
func TestRepositoryTooSmall(t *testing.T) {
	r := &repository{size: 150 * gi, data: 100 * gi, change: gi / 10, retention: 30, fullEvery: DefaultFullEvery, makesRoom: true}
	r.run(t, 60)
	if r.full || r.refused == 0 || len(r.sets) == 0 || !r.sets[0].IsFull() {
		t.Errorf("full %t, %d refused, left %v", r.full, r.refused, r.sets)
	}
}

func TestSpare(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	set := func(label string, verified bool) Set {
		s := Set{Label: label}
		if verified {
			s.Verified = at
		}
		return s
	}
	const a, b, c = "20260101-020000F", "20260108-020000F", "20260115-020000F"
	cases := map[string]struct {
		reason string
		sets   []Set
		broken []string
		want   string
	}{
		"None":           {reason: "There is nothing."},
		"Only":           {reason: "The only one stays, whatever follows it.", sets: []Set{set(a, false), set(a+"_20260102-020000I", true)}},
		"Oldest":         {reason: "The oldest goes first.", sets: []Set{set(a, false), set(b, false), set(c, false)}, want: a},
		"VerifiedNewer":  {reason: "Whatever is older than a good one may go.", sets: []Set{set(a, true), set(b, true), set(c, false)}, want: a},
		"VerifiedOldest": {reason: "The last good one stays.", sets: []Set{set(a, true), set(b, false), set(c, false)}},
		"Broken":         {reason: "One with damaged pages is no backup, and goes first.", sets: []Set{set(a, false), set(b, false)}, broken: []string{c}, want: c},
		"BrokenBase":     {reason: "What is broken stays where a good one depends on it.", sets: []Set{set(a, true), set(b+"_20260109-020000I", true)}, broken: []string{b}, want: a},
		"BrokenOnly":     {reason: "Without a good one nothing goes.", broken: []string{a, b}},
		"BrokenNewest":   {reason: "A newer one that is broken does not make an older one spare.", sets: []Set{set(a, false)}, broken: []string{a + "_20260102-020000I"}},
		"VerifiedChain":  {reason: "So does what it depends on.", sets: []Set{set(a, false), set(a+"_20260102-020000I", true), set(b, false)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Spare(tc.sets, tc.broken); got != tc.want {
				t.Errorf("%s\nSpare(): want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}

func TestFullDue(t *testing.T) {
	begin := time.Date(2026, 1, 1, 2, 0, 0, 0, time.UTC)
	sets := []Set{{Label: "20260101-020000F", Start: begin}, {Label: "20260101-020000F_20260107-020000I", Start: begin.AddDate(0, 0, 6)}}
	cases := map[string]struct {
		reason string
		sets   []Set
		after  time.Duration
		want   bool
	}{
		"First":  {reason: "Others need a full one.", want: true},
		"Young":  {reason: "Not each day.", sets: sets, after: 6 * 24 * time.Hour},
		"Due":    {reason: "A week later.", sets: sets, after: 7 * 24 * time.Hour, want: true},
		"Nearly": {reason: "A run that is some seconds early does not cost a day.", sets: sets, after: 7*24*time.Hour - time.Minute, want: true},
		"Late":   {reason: "One that failed is made up for by the next.", sets: sets, after: 8 * 24 * time.Hour, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := FullDue(tc.sets, 7, begin.Add(tc.after)); got != tc.want {
				t.Errorf("%s\nFullDue(): want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}
