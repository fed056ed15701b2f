package mysqld

import (
	"os"
	"path/filepath"
	"testing"
)

func TestJoined(t *testing.T) {
	f := Files{Volume: t.TempDir()}
	expect := func(what string, want Joined) {
		t.Helper()
		if got, err := f.Joined(); got != want || err != nil {
			t.Errorf("%s: %+v, %v; want %+v", what, got, err, want)
		}
	}
	expect("a new volume", Joined{})
	for _, j := range []Joined{{Address: "a:1"}, {Address: "a:1", Seen: true}, {Address: "A:1"}} {
		if err := f.SetJoined(j); err != nil {
			t.Fatal(err)
		}
		expect("what was recorded", j)
	}
	if err := os.WriteFile(filepath.Join(f.Volume, joinedFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect("a file of another's", Joined{})
}
