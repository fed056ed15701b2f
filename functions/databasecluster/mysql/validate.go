package mysql

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/functions/databasecluster/engine"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/gtid"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/mysql/parameter"
)

// maxSize is the largest number of servers of a group that stays odd and within MySQL's limit of nine
// (https://dev.mysql.com/doc/refman/9.7/en/group-replication-limitations.html).
const maxSize = 7

// Check returns an error for a spec that MySQL cannot have.
func (Engine) Check(s *appsv1.DatabaseClusterSpec) error {
	if _, err := parseVersion(s.Version); err != nil {
		return compose.Invalidf("%v", err)
	}
	switch {
	case s.Size > maxSize:
		return compose.Invalidf("size must be 1, 3, 5 or 7 with engine mysql, is %d", s.Size)
	case s.Size%2 == 0:
		return compose.Invalidf("size must be odd with engine mysql, is %d: a group of %d survives the loss of no more servers than one of %d, since a majority has to be left", s.Size, s.Size, s.Size-1)
	case s.Synchronous != nil && !*s.Synchronous && s.Size > 1:
		return compose.Invalidf("synchronous cannot be false with engine mysql: a majority of the servers has every write before it is acknowledged")
	case s.Synchronous != nil && *s.Synchronous && s.Size == 1:
		return compose.Invalidf("synchronous needs a size of at least 3 with engine mysql, is 1")
	case s.SynchronousMode == appsv1.Strict:
		return compose.Invalidf("synchronousMode strict is not available with engine mysql: a group continues as long as a majority of its servers is left: use quorum")
	}
	if err := validateRestore(s.RestoreFrom); err != nil {
		return err
	}
	if err := validateMemory(s.Resources); err != nil {
		return err
	}
	if err := validateParameters(s.Parameters); err != nil {
		return err
	}
	if err := validateSchema(s); err != nil {
		return err
	}
	if err := validateExpiry(s); err != nil {
		return err
	}
	if err := validateExtensions(s); err != nil {
		return err
	}
	return names.Check(s, string(appsv1.MySQL))
}

// validateRestore refuses what cannot be restored from: servers cannot mount a volume with backups.
func validateRestore(from *appsv1.RestoreFrom) error {
	switch {
	case from == nil:
		return nil
	case !isTransaction(from.BeforeTransaction):
		return compose.Invalidf("restoreFrom.beforeTransaction %s is not the GTID of one transaction", from.BeforeTransaction)
	case from.Destination != nil && from.Destination.Type == string(backupv1.Volume):
		return compose.Invalidf("restoreFrom.destination.type volume is not available with engine mysql: create the claim again with a physical backup in an object store, or without restoreFrom to restore a dump with a Restore")
	}
	return nil
}

// isTransaction reports whether a text is the GTID of one transaction, or empty.
func isTransaction(text string) bool {
	set, err := gtid.Parse(text)
	return err == nil && (text == "" || set.Len() == 1)
}

// leastExpiry is how long binary logs are kept at least that are archived, in seconds: the store may be away for as
// long.
const leastExpiry = 24 * 60 * 60

// validateExpiry refuses to have binary logs deleted soon that are to be archived. 0 keeps them for ever.
func validateExpiry(s *appsv1.DatabaseClusterSpec) error {
	text, ok := s.Parameters["binlog_expire_logs_seconds"]
	if !ok || s.Backup == nil || s.Backup.Method != string(backupv1.Physical) {
		return nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 && n < leastExpiry {
		return compose.Invalidf("parameters.binlog_expire_logs_seconds must be at least %d with backup.method physical, is %s: binary logs are lost that are not archived by then", leastExpiry, text)
	}
	return nil
}

// on are the values by which an option is turned on (https://dev.mysql.com/doc/refman/9.7/en/option-modifiers.html). MySQL may
// take any other one for off.
var on = []string{"1", "on", "true"}

// validateSchema refuses to have members without the performance schema, by which they know what they have received.
func validateSchema(s *appsv1.DatabaseClusterSpec) error {
	if schema, set := s.Parameters["performance_schema"]; set && s.Size > 1 && !slices.Contains(on, strings.ToLower(schema)) {
		return compose.Invalidf("parameters.performance_schema must be ON with engine mysql and a size of more than 1, is %q: members of a group need it", schema)
	}
	return nil
}

// validateMemory refuses a limit with which the kernel would kill each server as it joins its group.
func validateMemory(r *corev1.ResourceRequirements) error {
	if r == nil {
		return nil
	}
	if limit, ok := r.Limits[corev1.ResourceMemory]; ok && limit.Value() < leastMemory {
		return compose.Invalidf("resources.limits.memory must be at least %dMi with engine mysql, is %s", leastMemory/mebibyte, limit.String())
	}
	return nil
}

// names are those that MySQL or Storeplane use themselves. A user has at most 32 characters
// (https://dev.mysql.com/doc/refman/9.7/en/user-names.html).
var names = engine.Names{
	Users:       []string{engine.AppUser, instance.UserMonitoring, instance.MySQLSuperuser, "mysql", instance.MySQLBackupUser, instance.MySQLReplicationUser},
	LongestUser: 32,
	Databases:   append([]string{engine.AppDatabase}, instance.MySQLDatabases()...),
}

func validateExtensions(s *appsv1.DatabaseClusterSpec) error {
	for _, db := range s.Databases {
		if len(db.Extensions) > 0 {
			return compose.Invalidf("databases.%s.extensions is not available with engine mysql: leave it out", db.Name)
		}
	}
	return nil
}

// value matches the value of an option: a file of options has one in a line.
var value = regexp.MustCompile(`^[^[:cntrl:]"]*$`)

func validateParameters(params map[string]string) error {
	for _, k := range slices.Sorted(maps.Keys(params)) {
		switch {
		case !parameter.Allowed(k):
			return compose.Invalidf("parameters.%s cannot be set with engine mysql: it is no option of MySQL, or one that Storeplane sets. Write options in lower case, with _", k)
		case !value.MatchString(params[k]):
			return compose.Invalidf("parameters.%s has a quotation mark or a control character, which no value of an option may have", k)
		}
	}
	if n, err := strconv.Atoi(params["max_connections"]); err == nil && n < leastConnections {
		return compose.Invalidf("parameters.max_connections must be at least %d with engine mysql, is %d: %d of them are kept from any one user, for the servers themselves, backups and metrics", leastConnections, n, spareConnections)
	}
	most := mostOfOne(params)
	if n, err := strconv.Atoi(params["max_user_connections"]); err == nil && (n < 1 || n > most) {
		return compose.Invalidf("parameters.max_user_connections must be from 1 to %d with engine mysql, is %d: %d of max_connections are kept from any one user, for the servers themselves, backups and metrics", most, n, spareConnections)
	}
	return nil
}
