package postgresql

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/functions/databasecluster/engine"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/instance"
)

// Check returns an error for a spec that PostgreSQL cannot have.
func (Engine) Check(s *appsv1.DatabaseClusterSpec) error {
	version, err := parseVersion(s.Version)
	if err != nil {
		return compose.Invalidf("%v", err)
	}
	if version.major < oldestMajor || version.major > newestMajor {
		return compose.Invalidf("version %s is not supported: PostgreSQL %d to %d are", s.Version, oldestMajor, newestMajor)
	}
	if s.Synchronous != nil && *s.Synchronous && s.Size < 2 {
		return compose.Invalidf("synchronous needs a size of at least 2, is %d", s.Size)
	}
	if err := validateParameters(s.Parameters); err != nil {
		return err
	}
	return validateUsers(s)
}

// Names that PostgreSQL, Patroni or Storeplane use themselves.
var (
	ownUsers     = []string{engine.AppUser, instance.UserMonitoring, "patroni", "postgres", instance.UserRewind, instance.UserReplication, "public", "none"}
	ownDatabases = []string{engine.AppDatabase, "postgres", "template0", "template1"}
)

func validateUsers(s *appsv1.DatabaseClusterSpec) error {
	users := map[appsv1.Identifier]bool{engine.AppUser: true}
	for _, u := range s.Users {
		switch n := string(u.Name); {
		case slices.Contains(ownUsers, n) || strings.HasPrefix(n, "pg_"):
			return compose.Invalidf("users has %s, which is a reserved user name: choose another", n)
		case strings.HasSuffix(n, "_"):
			return compose.Invalidf("users has %s: a name may not end with _, since a Secret is named after it", n)
		case users[u.Name]:
			return compose.Invalidf("users has %s twice", n)
		}
		users[u.Name] = true
	}
	databases := map[appsv1.Identifier]bool{}
	for _, db := range s.Databases {
		switch n := string(db.Name); {
		case slices.Contains(ownDatabases, n):
			return compose.Invalidf("databases has %s, which every cluster has: choose another", n)
		case databases[db.Name]:
			return compose.Invalidf("databases has %s twice", n)
		case !users[appsv1.Identifier(engine.Owner(db))]:
			return compose.Invalidf("databases.%s.owner is %s, which is not in users: add it", n, engine.Owner(db))
		}
		databases[db.Name] = true
	}
	return nil
}

// ownParameters are set by Storeplane or Patroni, which depend on them.
var ownParameters = []string{
	"archive_cleanup_command", "archive_command", "archive_mode", "cluster_name", "config_file", "data_directory", "external_pid_file",
	"hba_file", "hot_standby", "ident_file", "listen_addresses", "log_destination", "logging_collector", "max_replication_slots",
	"max_wal_senders", "password_encryption", "port", "primary_conninfo", "primary_slot_name", "recovery_target", "recovery_target_timeline", "restore_command",
	"recovery_end_command", "recovery_target_action", "recovery_target_inclusive", "recovery_target_lsn", "recovery_target_name", "recovery_target_time", "recovery_target_xid", "promote_trigger_file",
	"ssl", "ssl_ca_file", "ssl_cert_file", "ssl_key_file", "ssl_passphrase_command", "synchronous_standby_names", "unix_socket_directories",
	"wal_level", "wal_log_hints",
}

var parameterName = regexp.MustCompile(`^[a-z0-9_]+(\.[a-z0-9_]+)?$`)

func validateParameters(params map[string]string) error {
	for _, k := range slices.Sorted(maps.Keys(params)) {
		if slices.Contains(ownParameters, k) {
			return compose.Invalidf("parameters.%s is set by Storeplane: leave it out", k)
		}
		if !parameterName.MatchString(k) {
			return compose.Invalidf("parameters has %q, which is no name of a PostgreSQL parameter", k)
		}
	}
	return nil
}
