package mysql

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/instance/mysql/parameter"
)

const mebibyte = 1 << 20

// Memory of a server: serverMemory besides its buffer pool, once it is a member of a group, as a single one may
// become, leastPool of the pool, leastMemory of a container that a claim limits, and defaultMemory of one where
// it does not. Under the writes of suite mysql a member with a pool of 156 MiB has 506 to 566 MiB resident, and a
// single one for development 251 MiB. Each connection takes more.
const (
	serverMemory  = 640 * mebibyte
	leastPool     = 64 * mebibyte
	leastMemory   = 768 * mebibyte
	defaultMemory = 1024 * mebibyte
)

// option is a line of the file of options.
type option struct{ name, value string }

// base returns the options that do not depend on the claim's parameters. What a group relies on are
// arguments of the program, which no file overrides.
func (d cluster) base() []option {
	pool := d.bufferPool()
	out := []option{
		{"bind_address", "*"},
		{"log_error_verbosity", "2"},
		{"innodb_buffer_pool_size", strconv.FormatInt(pool, 10)},
		{"innodb_redo_log_capacity", strconv.FormatInt(redoLog(pool), 10)},
		{"max_binlog_size", "134217728"},
		{"binlog_expire_logs_seconds", "259200"},
		// Connections and tables can become more while the server runs.
		{"open_files_limit", "65536"},
	}
	if d.plain() {
		return append(out, option{"performance_schema", "OFF"}, option{"innodb_log_buffer_size", "8388608"})
	}
	return append(out, modest...)
}

// modest are options of servers with a performance schema. A server writes to all memory of its performance schema
// and log buffer as it starts. With these it has 180 MiB less resident, and starts the sooner: it keeps fewer
// statements, and no statistics of errors, of which it has those of each thread, account, user and host.
var modest = []option{
	{"innodb_log_buffer_size", "16777216"},
	{"performance_schema_digests_size", "2000"},
	{"performance_schema_error_size", "0"},
	{"performance_schema_events_stages_history_long_size", "1000"},
	{"performance_schema_events_statements_history_long_size", "1000"},
	{"performance_schema_events_transactions_history_long_size", "1000"},
	{"performance_schema_events_waits_history_long_size", "1000"},
}

// options returns the file of options that servers start with, in which those of the claim come last: those
// that need a start. Servers set the others, before they join their group and whenever they change: a value
// that MySQL refuses would keep a server from starting.
func (d cluster) options() string {
	lines := []string{"[mysqld]"}
	all := d.base()
	for _, k := range slices.Sorted(maps.Keys(d.Spec.Parameters)) {
		if parameter.NeedsStart(k) {
			all = append(all, option{k, d.Spec.Parameters[k]})
		}
	}
	for _, o := range all {
		// In quotes # begins no comment, and \ an escape
		// (https://dev.mysql.com/doc/refman/9.7/en/option-files.html).
		lines = append(lines, o.name+`="`+strings.ReplaceAll(o.value, `\`, `\\`)+`"`)
	}
	return strings.Join(lines, "\n") + "\n"
}

// variables returns the global variables that servers set while they run: the claim's parameters that need
// no start, and those of the base that such a parameter can have changed.
func (d cluster) variables() map[string]string {
	out := map[string]string{"max_user_connections": strconv.Itoa(mostOfOne(d.Spec.Parameters))}
	for _, o := range d.base() {
		if parameter.Allowed(o.name) && !parameter.NeedsStart(o.name) {
			out[o.name] = o.value
		}
	}
	for k, v := range d.Spec.Parameters {
		if !parameter.NeedsStart(k) {
			out[k] = v
		}
	}
	return out
}

// plain reports whether the server is without the performance schema: the only one, for development, whose claim does not ask
// for it. With a smaller log buffer too it has the least resident. Members of a group need it to know what they have received.
func (d cluster) plain() bool {
	asked := slices.Contains(on, strings.ToLower(d.Spec.Parameters["performance_schema"]))
	return d.Spec.Size == 1 && cmp.Or(d.Spec.Environment, appsv1.Development) == appsv1.Development && !asked
}

// bufferPool returns the size of the buffer pool in bytes, by the memory that the server may use: 60
// percent of what is left beside the rest of the server, and 64 MiB at least.
func (d cluster) bufferPool() int64 {
	rest := d.Memory - serverMemory
	return max(rest*6/10/mebibyte*mebibyte, leastPool)
}

// defaultConnections is the default of max_connections, and mostConnections and leastConnections are its bounds.
// spareConnections are those that no single user can have: servers connect to each other in the same way as clients.
const (
	defaultConnections = 151
	mostConnections    = 100000
	leastConnections   = 2 * spareConnections
	spareConnections   = 20
)

// mostOfOne returns how many connections one user can have at most, by a claim's parameters.
func mostOfOne(params map[string]string) int {
	most, err := strconv.Atoi(params["max_connections"])
	if err != nil {
		most = defaultConnections
	}
	return max(min(most, mostConnections)-spareConnections, 1)
}

// redoLog returns the capacity of the redo log in bytes: that of the buffer pool, but from 64 MiB to
// 8 GiB.
func redoLog(pool int64) int64 { return min(pool, 8<<30) }
