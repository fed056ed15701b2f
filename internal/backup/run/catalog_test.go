package run

import (
	"testing"
	"time"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/store"
)

func TestChoose(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	made := func(at time.Time, err error) store.Item {
		return store.Item{ID: at.Format(backup.IDFormat) + "-abcdef", Manifest: &backup.Manifest{Started: at}, Err: err}
	}
	broken := backup.Errorf(backup.BackupCorrupt, "an object is missing")
	first, second := made(noon.Add(700*time.Millisecond), nil), made(noon.Add(time.Hour), nil)
	cases := map[string]struct {
		reason string
		items  []store.Item
		task   backup.Task
		want   string
		fault  backup.Reason
	}{
		"Newest":      {reason: "The newest is taken.", items: []store.Item{first, second}, want: second.ID},
		"ID":          {reason: "Or the one that is named.", items: []store.Item{first, second}, task: backup.Task{ID: first.ID}, want: first.ID},
		"Time":        {reason: "Or the newest up to a time.", items: []store.Item{first, second}, task: backup.Task{Time: new(noon.Add(time.Minute))}, want: first.ID},
		"SameSecond":  {reason: "A time in a status has no parts of a second.", items: []store.Item{first, second}, task: backup.Task{Time: new(noon)}, want: first.ID},
		"TooEarly":    {reason: "There is none before the first.", items: []store.Item{first, second}, task: backup.Task{Time: new(noon.Add(-time.Second))}, fault: backup.BackupMissing},
		"UnknownID":   {reason: "There is none of that name.", items: []store.Item{first}, task: backup.Task{ID: "x"}, fault: backup.BackupMissing},
		"None":        {reason: "There is none at all.", fault: backup.BackupMissing},
		"Broken":      {reason: "An older one is not taken in its stead.", items: []store.Item{first, made(noon.Add(2*time.Hour), broken)}, fault: backup.BackupCorrupt},
		"BrokenLater": {reason: "What is broken and not asked for is in nobody's way.", items: []store.Item{first, made(noon.Add(2*time.Hour), broken)}, task: backup.Task{Time: new(noon.Add(time.Hour))}, want: first.ID},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := choose(&store.Listing{Items: tc.items}, tc.task)
			if got.ID != tc.want || (tc.fault != "") != (err != nil) || err != nil && backup.ReasonOf(err) != tc.fault {
				t.Errorf("%s\nwant %q %s, got %q %v", tc.reason, tc.want, tc.fault, got.ID, err)
			}
		})
	}
}
