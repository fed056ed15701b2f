package volume

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFits(t *testing.T) {
	cases := map[string]struct {
		reason            string
		used, total, more uint64
		want              bool
	}{
		"Room":     {reason: "There is room.", used: 30, total: 100, more: 30, want: true},
		"Edge":     {reason: "Up to where the filling is reported.", used: 40, total: 100, more: 40, want: true},
		"NoRoom":   {reason: "Beyond that the volume would be nearly full.", used: 41, total: 100, more: 40},
		"HalfFull": {reason: "A volume that is half full has no room for as much again.", used: 50, total: 100, more: 50},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := fits(tc.used, tc.total, tc.more); got != tc.want {
				t.Errorf("%s\nfits(...): got %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

// TestSetAside: the folder is renamed with all its data, and its old path is free.
func TestSetAside(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pgdata")
	if err := os.MkdirAll(filepath.Join(dir, "base"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "base", "1"), []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	aside, err := SetAside(dir, "other")
	if err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(aside, "base", "1")); string(data) != "data" {
		t.Errorf("SetAside(...): got %q, %v, want the data", data, err)
	}
	if _, err := os.Stat(dir); err == nil || !strings.HasPrefix(aside, dir+"-other-") {
		t.Errorf("SetAside(...): it is at %s, and its place is taken: %v", aside, err)
	}
	if _, err := SetAside(dir, "other"); err == nil {
		t.Error("SetAside(...): it sets aside what is not there")
	}
}
