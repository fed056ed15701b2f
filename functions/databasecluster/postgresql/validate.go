package postgresql

import (
	"maps"
	"regexp"
	"slices"

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
	return names.Check(s, string(appsv1.PostgreSQL))
}

// names are those that PostgreSQL, Patroni or Storeplane use themselves.
var names = engine.Names{
	Users:      []string{engine.AppUser, instance.UserMonitoring, "patroni", "postgres", instance.UserRewind, instance.UserReplication, "public", "none"},
	UserPrefix: "pg_",
	Databases:  []string{engine.AppDatabase, "postgres", "template0", "template1"},
}

// ownParameters are set by Storeplane or Patroni, which depend on them.
var ownParameters = []string{
	"allow_alter_system", "archive_cleanup_command", "archive_command", "archive_mode", "cluster_name", "config_file", "data_directory", "external_pid_file",
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
