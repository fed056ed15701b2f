package databasecluster

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	appsv1 "github.com/storeplane/storeplane/apis/apps/v1"
	"github.com/storeplane/storeplane/internal/compose"
	"github.com/storeplane/storeplane/internal/profile"
)

// validate refuses what can not be done, and what is not done yet: a claim that
// asks for it must not believe that it has it.
func validate(s *appsv1.DatabaseClusterSpec, l *live) error {
	if err := Check(s); err != nil {
		return err
	}
	// Check has read it.
	want, _ := parseVersion(s.Version)
	return validateChange(want, l)
}

// Check returns an error for a claim that can not be made whatever there is.
func Check(s *appsv1.DatabaseClusterSpec) error {
	if s.Engine == appsv1.MySQL {
		return compose.Invalidf("engine mysql is not available yet: use engine postgresql")
	}
	if s.Size < 1 || s.Size > maxSize {
		return compose.Invalidf("size must be 1 to %d, is %d", maxSize, s.Size)
	}
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
	ownUsers     = []string{appUser, monitoringUser, "patroni", "postgres", "rewind", "standby", "public", "none"}
	ownDatabases = []string{appDatabase, "postgres", "template0", "template1"}
)

func validateUsers(s *appsv1.DatabaseClusterSpec) error {
	users := map[appsv1.Identifier]bool{appUser: true}
	for _, u := range s.Users {
		switch n := string(u.Name); {
		case slices.Contains(ownUsers, n) || strings.HasPrefix(n, "pg_"):
			return compose.Invalidf("users has %s, which is a name of its own in every cluster: choose another", n)
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
		case !users[appsv1.Identifier(owner(db))]:
			return compose.Invalidf("databases.%s.owner is %s, who is not among users", n, owner(db))
		}
		databases[db.Name] = true
	}
	return nil
}

// validateChange refuses a version that the data on the volumes does not fit.
func validateChange(want number, l *live) error {
	have, ok := l.running()
	if !ok || want.tag() == l.version() {
		// What was rolled out stays accepted, whatever the image says it is.
		return nil
	}
	switch {
	case want.major < have.major:
		return compose.Invalidf("version may not go back: %s → %s", have.tag(), want.tag())
	case want.major > have.major:
		return compose.Invalidf("version may not change its major: %s → %s: claim a new DatabaseCluster and move the data", have.tag(), want.tag())
	case want.hasMinor && have.hasMinor && want.minor < have.minor:
		return compose.Invalidf("version may not go back: %s → %s", have.tag(), want.tag())
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

// storage of each volume. A claim that says nothing keeps what it has when the
// environment's default changes.
func storage(s *appsv1.DatabaseClusterSpec, p *profile.Profile, l *live) (string, error) {
	want := s.StorageSize
	if want == "" {
		want = p.DatabaseStorage
	}
	wq, err := resource.ParseQuantity(want)
	if err != nil || wq.Sign() <= 0 {
		return "", compose.Invalidf("storageSize must be a quantity above zero, like 20Gi: is %q", want)
	}
	have, exists := l.storage()
	switch c := wq.Cmp(have); {
	case !exists:
		return want, nil
	case s.StorageSize == "" || c == 0:
		return have.String(), nil
	case c < 0:
		return "", compose.Invalidf("storageSize may not shrink: %s → %s", have.String(), want)
	default:
		return want, nil
	}
}
