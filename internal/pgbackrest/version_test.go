package pgbackrest

import "testing"

func TestHasBlocks(t *testing.T) {
	for version, want := range map[string]bool{
		"pgBackRest 2.45\n": false, "pgBackRest 2.54.2\n": false, "pgBackRest 2.55.1\n": true, "pgBackRest 2.100\n": true, "pgBackRest 3.0\n": true, "": false, "pgBackRest dev": false,
	} {
		if got := hasBlocks(version); got != want {
			t.Errorf("hasBlocks(%q): want %t, got %t", version, want, got)
		}
	}
}
