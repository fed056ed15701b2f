package store

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
)

// TestFolders: the backups of each method have a folder of their own, and only logical ones are in one of older
// versions.
func TestFolders(t *testing.T) {
	cases := map[string]struct {
		reason string
		method backupv1.Method
		all    []string
		of     string
	}{
		"Logical":  {reason: "Older versions wrote them into the folder itself.", method: backupv1.Logical, all: []string{"p/shop/ledger", "p/shop/ledger/logical"}, of: "p/shop/ledger/logical"},
		"None":     {reason: "A method that is not named is logical.", all: []string{"p/shop/ledger", "p/shop/ledger/logical"}, of: "p/shop/ledger/logical"},
		"Logs":     {reason: "Nor of binary logs.", method: backup.BinaryLog, all: []string{"p/shop/ledger/binlog"}, of: "p/shop/ledger/binlog"},
		"Physical": {reason: "Older versions had none.", method: backupv1.Physical, all: []string{"p/shop/ledger/physical"}, of: "p/shop/ledger/physical"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFolders("p/shop/ledger", tc.method)
			if diff := cmp.Diff(tc.all, f.all()); diff != "" {
				t.Errorf("%s\nall(): -want, +got:\n%s", tc.reason, diff)
			}
			if got := f.of("20260101T000000Z-new/manifest.json"); got != tc.of {
				t.Errorf("%s\nof() a new one: want %s, got %s", tc.reason, tc.of, got)
			}
			for _, folder := range f.all() {
				f.found("20260101T000000Z-abcdef", folder)
				if got := f.of("20260101T000000Z-abcdef/manifest.json"); folder != tc.of && got != folder {
					t.Errorf("%s\nof() one that was found in %s: got %s", tc.reason, folder, got)
				}
			}
		})
	}
}
