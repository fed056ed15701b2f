package pgbackrest

import "testing"

func TestHasBlocks(t *testing.T) {
	for version, want := range map[string]bool{
		"pgBackRest 2.45": false, "pgBackRest 2.54.2": false, "pgBackRest 2.55.1": true, "pgBackRest 2.100": true, "pgBackRest 3.0": true, "": false, "pgBackRest dev": false,
	} {
		if got := HasBlocks(version); got != want {
			t.Errorf("HasBlocks(%q): want %t, got %t", version, want, got)
		}
	}
}
