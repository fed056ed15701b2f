package main

// The names of the scripts that are compared.
const (
	ours = "ours.sh"
	pipe = "pipe.sh"
)

// scripts are run by sh of the backup image. measure.sh runs one of the others and prints its
// times and its memory.
var scripts = map[string]string{
	// The kernel records the highest memory usage of the container.
	"measure.sh": `set -eu
from=$(date +%s.%N)
. "$1"
to=$(date +%s.%N)
peak=$(cat /sys/fs/cgroup/memory.peak 2>/dev/null || cat /sys/fs/cgroup/memory/memory.max_usage_in_bytes)
echo "measured $from $to $peak"
`,
	ours: `/usr/local/bin/backup
`,
	pipe: `uri=$(cat /etc/storeplane/source/uri)
export PGSSLROOTCERT=/etc/storeplane/source/ca.crt
set -o pipefail
pg_dump --format=custom --compress=0 --dbname="$uri" | zstd --quiet | data put --keys=/etc/storeplane/store "$ENDPOINT" backups "pipe/$(date +%s)"
`,
}
