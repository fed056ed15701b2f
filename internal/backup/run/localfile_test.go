package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLocalFile: a dump that requests a file of the client's pod, where the store's credentials
// are, is refused. Users who can write to a store, or own the server that was backed up, could
// write such a dump.
func TestLocalFile(t *testing.T) {
	long(t)
	s := startMariaDB(t)
	createDatabase(t, s, "shop")
	file := filepath.Join(t.TempDir(), "secretAccessKey")
	must(t, os.WriteFile(file, []byte("s3cret\n"), 0o600))
	server := s.server(t)
	dump := "CREATE TABLE taken (line TEXT);\nLOAD DATA LOCAL INFILE '" + file + "' INTO TABLE taken;\n"
	if err := server.Restore(t.Context(), "shop", "shop", strings.NewReader(dump)); err == nil {
		t.Error("want a dump refused that asks for a file of the pod")
	}
	rows, err := server.Count(t.Context(), "shop")
	must(t, err)
	if rows["taken"] != 0 {
		t.Errorf("%d lines of the pod's file are in the database", rows["taken"])
	}
}
