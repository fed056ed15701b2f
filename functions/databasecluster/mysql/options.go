package mysql

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
)

const mebibyte = 1 << 20

// Memory of a server: serverMemory besides its buffer pool, once it is a member of a group, as a server
// that stands alone is too, leastPool of the pool, leastMemory of a container that a claim limits, and
// defaultMemory of one where it does not. A member with the least pool had 647 MiB resident right
// after its start, and one for development 337 MiB.
const (
	serverMemory  = 640 * mebibyte
	leastPool     = 64 * mebibyte
	leastMemory   = 768 * mebibyte
	defaultMemory = 1024 * mebibyte
)

// options returns the file of options, in which those of the claim come last. What a group relies on
// are arguments of the program, which no file overrides.
func (d cluster) options() string {
	pool := d.bufferPool()
	lines := []string{
		"[mysqld]",
		"bind-address=*",
		"log-error-verbosity=2",
		fmt.Sprintf("innodb-buffer-pool-size=%d", pool),
		fmt.Sprintf("innodb-redo-log-capacity=%d", redoLog(pool)),
		"max-binlog-size=134217728",
		"binlog-expire-logs-seconds=259200",
		fmt.Sprintf("max-user-connections=%d", d.userConnections()),
	}
	if d.single() {
		lines = append(lines, "performance-schema=OFF", "innodb-log-buffer-size=8388608")
	}
	for _, k := range slices.Sorted(maps.Keys(d.Spec.Parameters)) {
		// In quotes # begins no comment, and \ an escape
		// (https://dev.mysql.com/doc/refman/9.7/en/option-files.html).
		lines = append(lines, k+`="`+strings.ReplaceAll(d.Spec.Parameters[k], `\`, `\\`)+`"`)
	}
	return strings.Join(lines, "\n") + "\n"
}

// single reports whether the server is the only one, and for development: without the performance schema, and with a
// smaller log buffer, it has 300 MiB less resident. Members of a group need it to know what they have received.
func (d cluster) single() bool {
	return d.Spec.Size == 1 && cmp.Or(d.Spec.Environment, appsv1.Development) == appsv1.Development
}

// bufferPool returns the size of the buffer pool in bytes, by the memory that the server may use: 60
// percent of what is left beside the rest of the server, and 64 MiB at least.
func (d cluster) bufferPool() int64 {
	rest := d.Memory - serverMemory
	return max(rest*6/10/mebibyte*mebibyte, leastPool)
}

// defaultConnections is the default of max_connections, and spareConnections are those that no single
// user can have: servers connect to each other in the same way as clients.
const (
	defaultConnections = 151
	spareConnections   = 20
)

// userConnections returns how many connections one user can have.
func (d cluster) userConnections() int {
	most, err := strconv.Atoi(d.Spec.Parameters["max_connections"])
	if err != nil {
		most = defaultConnections
	}
	return max(most-spareConnections, 1)
}

// redoLog returns the capacity of the redo log in bytes: that of the buffer pool, but from 64 MiB to
// 8 GiB.
func redoLog(pool int64) int64 { return min(pool, 8<<30) }
