package plan

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRestartParameters: the list has every parameter that a PostgreSQL on this machine only reads
// when it starts, and none that it reloads.
func TestRestartParameters(t *testing.T) {
	programs, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil || len(programs) == 0 {
		t.Skip("needs PostgreSQL: apt-get install postgresql")
	}
	for _, program := range programs {
		t.Run(filepath.Base(filepath.Dir(filepath.Dir(program))), func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), program, "--describe-config").Output()
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for line := range strings.Lines(string(out)) {
				fields := strings.Split(line, "\t")
				if len(fields) < 2 {
					continue
				}
				name, atStart := fields[0], fields[1] == "postmaster"
				if atStart {
					n++
				}
				if atStart && !needsRestart[name] {
					t.Errorf("%s needs a restart, and postmaster.txt does not have it", name)
				}
				// PostgreSQL 18 reloads autovacuum_max_workers, which earlier versions do not.
				if !atStart && needsRestart[name] && name != "autovacuum_max_workers" {
					t.Errorf("%s is reloaded (%s), and postmaster.txt has it", name, fields[1])
				}
			}
			if n < 30 {
				t.Errorf("want at least 30 parameters that need a restart, got %d", n)
			}
		})
	}
}
