package physical

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/storeplane/storeplane/internal/pgbackrest"
)

// TestVerifyExpired: a backup that expires while it is verified is not damaged. One that lacks
// files and stays is.
func TestVerifyExpired(t *testing.T) {
	c := filled(t, 2)
	c.backUp("full")
	sets, err := c.tool.Sets(t.Context())
	if err != nil || len(sets) < 2 {
		t.Fatalf("want two backups, got %v, %v", sets, err)
	}
	program, err := exec.LookPath(pgbackrest.Program)
	if err != nil {
		t.Fatal(err)
	}
	// The first verification finds the backup without its files, and the backup is no longer listed
	// when it ends.
	bundle, gone := filepath.Join(c.path("repo/backup/"+c.stanza), sets[0].Label, "bundle"), c.path("gone")
	if err := os.Rename(bundle, gone); err != nil {
		t.Fatal(err)
	}
	if err := c.tool.Verify(t.Context(), c.stanza); !errors.Is(err, pgbackrest.ErrCorrupt) {
		t.Fatalf("Verify() of a backup without files: got %v", err)
	}
	bin := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\n'%[1]s' \"$@\" || exit\ncase \"$*\" in *' verify '*) [ -e '%[2]s' ] || '%[1]s' \"$1\" \"$2\" expire --set=%[3]s >&2; touch '%[2]s';; esac\n", program, filepath.Join(bin, "expired"), sets[0].Label)
	if err := os.WriteFile(filepath.Join(bin, pgbackrest.Program), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	if err := c.tool.Verify(t.Context(), c.stanza); err != nil {
		t.Errorf("Verify() beside an expiry: got %v", err)
	}
	if after, err := c.tool.Sets(t.Context()); err != nil || len(after) != len(sets)-1 {
		t.Errorf("want one backup less, got %v, %v", after, err)
	}
}
