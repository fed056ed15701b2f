package recovery

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// controlNames are the parameters that must not be smaller than on the server of which the backup
// was taken, and those that decide which data is kept, each with its name in the control file and
// the default.
var controlNames = []struct{ parameter, word, initial string }{
	{"max_connections", "max_connections setting", "100"},
	{"max_worker_processes", "max_worker_processes setting", "8"},
	{"max_wal_senders", "max_wal_senders setting", "10"},
	{"max_prepared_transactions", "max_prepared_xacts setting", "0"},
	{"max_locks_per_transaction", "max_locks_per_xact setting", "64"},
	// Without it, the timestamps of all commits would be removed.
	{"track_commit_timestamp", "track_commit_timestamp setting", "off"},
	{"wal_log_hints", "wal_log_hints setting", "on"},
}

func controlLimits(dataDir string) (map[string]string, error) {
	cmd := exec.Command("pg_controldata", dataDir) //nolint:gosec,noctx // it reads one file
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot read what the backup's server was like: %w", err)
	}
	return parseControl(string(out)), nil
}

func parseControl(out string) map[string]string {
	said := map[string]string{}
	for line := range strings.Lines(out) {
		if k, v, ok := strings.Cut(line, ":"); ok {
			said[k] = strings.TrimSpace(v)
		}
	}
	limits := map[string]string{}
	for _, n := range controlNames {
		limits[n.parameter] = n.initial
		if v := said[n.word]; v != "" {
			limits[n.parameter] = v
		}
	}
	return limits
}
