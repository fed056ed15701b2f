package run

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/store"
)

// TestCatalogUnsealed: a plain backup counts as one from before encryption was turned on only if
// its manifest and the store both date it before the first sealed backup, or if no backup is
// sealed.
func TestCatalogUnsealed(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	hour := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Hour) }
	item := func(at, written time.Time, recipient string, err error) store.Item {
		return store.Item{ID: at.Format(backup.IDFormat) + "-abcdef", Manifest: &backup.Manifest{Started: at, Recipient: recipient}, Written: written, Err: err}
	}
	sealed := func(n int) store.Item { return item(hour(n), hour(n), "age1", nil) }
	foreign := backup.Errorf(backup.BackupNotAuthentic, "it was not written with the key")
	plain := func(n, written int) store.Item { return item(hour(n), hour(written), "", foreign) }
	damaged := item(hour(2), hour(2), "age1", backup.Errorf(backup.BackupCorrupt, "an object is missing"))
	type said struct {
		Unsealed     int
		NotAuthentic []string
	}
	one := func(i store.Item) said { return said{NotAuthentic: []string{i.ID}} }
	cases := map[string]struct {
		reason string
		items  []store.Item
		want   said
	}{
		"Older":     {reason: "It was there before.", items: []store.Item{plain(0, 1), sealed(2), sealed(3)}, want: said{Unsealed: 1}},
		"Newer":     {reason: "It is to stand in for a sealed one.", items: []store.Item{sealed(2), plain(3, 3)}, want: one(plain(3, 3))},
		"Between":   {reason: "One that is sealed is older.", items: []store.Item{sealed(2), plain(3, 3), sealed(4)}, want: one(plain(3, 3))},
		"Backdated": {reason: "It says to be older, and was written later.", items: []store.Item{plain(0, 3), sealed(2), sealed(4)}, want: one(plain(0, 3))},
		"Postdated": {reason: "It says to be newer, so it would be taken for the newest.", items: []store.Item{sealed(2), plain(5, 0)}, want: one(plain(5, 0))},
		"Rewritten": {reason: "A sealed one that is written once more is as old as its seal.", items: []store.Item{plain(0, 3), item(hour(2), hour(5), "age1", nil)}, want: one(plain(0, 3))},
		"Timeless":  {reason: "When it was written is not known.", items: []store.Item{item(hour(0), time.Time{}, "", foreign), sealed(2)}, want: one(plain(0, 0))},
		"Stripped":  {reason: "It is encrypted, and its seal is none.", items: []store.Item{item(hour(0), hour(0), "age1", foreign), sealed(2)}, want: one(plain(0, 0))},
		"Damaged":   {reason: "One that is damaged has its seal, and its time.", items: []store.Item{damaged, plain(3, 3)}, want: one(plain(3, 3))},
		"Foreign":   {reason: "One with another's seal has neither.", items: []store.Item{item(hour(0), hour(0), "age1", foreign), plain(1, 1), sealed(2)}, want: said{Unsealed: 1, NotAuthentic: []string{plain(0, 0).ID}}},
		"None":      {reason: "None is sealed yet.", items: []store.Item{plain(0, 1)}, want: said{Unsealed: 1}},
		"Plain":     {reason: "There is no key, and all are good.", items: []store.Item{item(hour(0), hour(0), "", nil)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := catalog(&store.Listing{Items: tc.items})
			if diff := cmp.Diff(tc.want, said{Unsealed: c.Unsealed, NotAuthentic: c.NotAuthentic}); diff != "" {
				t.Errorf("%s\ncatalog(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestChoose(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	made := func(at time.Time, err error) store.Item {
		return store.Item{ID: at.Format(backup.IDFormat) + "-abcdef", Manifest: &backup.Manifest{Started: at}, Err: err}
	}
	broken := backup.Errorf(backup.BackupCorrupt, "an object is missing")
	first, second := made(noon.Add(700*time.Millisecond), nil), made(noon.Add(time.Hour), nil)
	forged := func(recipient, seal string, reason backup.Reason) store.Item {
		i := made(noon, backup.Errorf(reason, "it was not written with the key"))
		i.Manifest.Recipient, i.Manifest.Seal = recipient, seal
		return i
	}
	sealed := made(noon.Add(700*time.Millisecond), nil)
	sealed.Manifest.Recipient = "age1"
	accept := backup.Task{Action: backup.Restore, ID: forged("", "", "").ID, AcceptUnsealed: true}
	with := func(change func(*backup.Task)) backup.Task {
		t := accept
		change(&t)
		return t
	}
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
		"Unsealed":    {reason: "One of a release before seals is not restored by its name alone.", items: []store.Item{forged("age1", "", backup.BackupNotAuthentic)}, task: with(func(t *backup.Task) { t.AcceptUnsealed = false }), fault: backup.BackupNotAuthentic},
		"Accepted":    {reason: "It is where a person accepts it.", items: []store.Item{forged("age1", "", backup.BackupNotAuthentic)}, task: accept, want: accept.ID},
		"Unnamed":     {reason: "But only by its name.", items: []store.Item{sealed, forged("age1", "", backup.BackupNotAuthentic)}, task: with(func(t *backup.Task) { t.ID = "" }), want: sealed.ID},
		"Verified":    {reason: "To verify it would say that it is good.", items: []store.Item{forged("age1", "", backup.BackupNotAuthentic)}, task: with(func(t *backup.Task) { t.Action = backup.Verify }), fault: backup.BackupNotAuthentic},
		"Changed":     {reason: "One with a seal was changed since.", items: []store.Item{forged("age1", "00", backup.BackupNotAuthentic)}, task: accept, fault: backup.BackupNotAuthentic},
		"Plain":       {reason: "A plain one needs no key.", items: []store.Item{forged("", "", backup.BackupNotAuthentic)}, task: accept, fault: backup.BackupNotAuthentic},
		"Damaged":     {reason: "What is damaged cannot be accepted.", items: []store.Item{forged("age1", "", backup.BackupCorrupt)}, task: accept, fault: backup.BackupCorrupt},
		"Foreign":     {reason: "Nor can what no key reads.", items: []store.Item{forged("age1", "", backup.KeyMissing)}, task: accept, fault: backup.KeyMissing},
		"PlainBeside": {reason: "Without the key of the others a plain one may be forged.", items: []store.Item{forged("age1", "00", backup.KeyMissing), first}, task: backup.Task{Action: backup.Restore}, fault: backup.KeyMissing},
		"PlainNamed":  {reason: "It is restored by its name.", items: []store.Item{forged("age1", "00", backup.KeyMissing), second}, task: backup.Task{Action: backup.Restore, ID: second.ID}, want: second.ID},
		"BrokenLater": {reason: "What is broken and not asked for prevents no restore.", items: []store.Item{first, made(noon.Add(2*time.Hour), broken)}, task: backup.Task{Time: new(noon.Add(time.Hour))}, want: first.ID},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := choose(&store.Listing{Items: tc.items}, tc.task)
			if err == nil && got.ID != tc.want || (tc.fault != "") != (err != nil) || err != nil && backup.ReasonOf(err) != tc.fault {
				t.Errorf("%s\nwant %q %s, got %q %v", tc.reason, tc.want, tc.fault, got.ID, err)
			}
		})
	}
}
