package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/engine"
)

// clonePrivilege is the privilege of a user that copies a server.
const clonePrivilege = "BACKUP_ADMIN"

// MayClone returns an error unless the user may copy the server by its plugin clone.
//
// https://dev.mysql.com/doc/refman/9.7/en/clone-plugin-remote.html
func (s *Server) MayClone(ctx context.Context) error {
	grants, err := s.names(ctx, "cannot read the privileges of the user", "SHOW GRANTS")
	if err != nil {
		return err
	}
	if !mayEverywhere(grants, clonePrivilege) {
		return backup.Errorf(backup.SourceDenied, "user %s has no privilege %s, without which it cannot copy the server: the servers of a DatabaseCluster grant it once they run this release", s.conn.User, clonePrivilege)
	}
	var status string
	err = s.db.QueryRowContext(ctx, "SELECT plugin_status FROM information_schema.plugins WHERE plugin_name = 'clone'").Scan(&status)
	if errors.Is(err, sql.ErrNoRows) || err == nil && status != "ACTIVE" {
		return backup.Errorf(backup.SourceDenied, "the server cannot be copied: its plugin clone is not active. The servers of a DatabaseCluster load it when they start")
	}
	return failed(ctx, "cannot read the plugins of the server", err)
}

// allDatabases matches what SHOW GRANTS returns for privileges that are not limited to a database.
var allDatabases = regexp.MustCompile(`^GRANT (.+) ON \*\.\* TO `)

// mayEverywhere reports whether a user with these grants has a privilege that is not limited to a database.
func mayEverywhere(grants []string, privilege string) bool {
	for _, g := range grants {
		m := allDatabases.FindStringSubmatch(g)
		if m == nil {
			continue
		}
		for p := range strings.SplitSeq(m[1], ",") {
			if p = strings.TrimSpace(p); p == privilege || p == "ALL PRIVILEGES" {
				return true
			}
		}
	}
	return false
}

// Clone has a throw-away server copy the data of another one, the donor, into a folder that does not exist. The
// authority is the file of the donor's certificate authority, which the throw-away server reads: it sends the password
// to no other server. The data of the throw-away server itself stays as it is.
//
// A copy has the certificate of its donor verified by the authority, and not the name in it: that is all that the
// plugin can do. The connection of the donor itself has verified the name.
func (s *Server) Clone(ctx context.Context, donor *Server, folder, authority string) error {
	statement, err := donor.cloneStatement(folder)
	if err != nil {
		return err
	}
	settings, err := donor.cloneSettings(ctx)
	if err != nil {
		return err
	}
	settings = append(settings, setting{"clone_valid_donor_list", donor.address()}, setting{"clone_ssl_ca", authority})
	for _, v := range settings {
		if _, err := s.db.ExecContext(ctx, "SET GLOBAL "+v.name+" = "+literal(v.value)); err != nil {
			return s.Failed(failed(ctx, "cannot set "+v.name+" of the throw-away database", err))
		}
	}
	_, err = s.db.ExecContext(ctx, statement)
	if _, ok := errors.AsType[*mysql.MySQLError](err); err == nil || ok && ctx.Err() == nil {
		return cloneFailed(donor.address(), err)
	}
	return s.Failed(failed(ctx, "cannot copy the server "+donor.address(), err))
}

// A setting is a variable of a server.
type setting struct{ name, value string }

// cloneSettings returns the variables in which a server that copies this one has to agree with it.
func (s *Server) cloneSettings(ctx context.Context) ([]setting, error) {
	out := []setting{{name: "character_set_server"}, {name: "collation_server"}, {name: "character_set_filesystem"}}
	for i := range out {
		if err := s.db.QueryRowContext(ctx, "SELECT @@GLOBAL."+out[i].name).Scan(&out[i].value); err != nil {
			return nil, failed(ctx, "cannot read the settings of the server", err)
		}
	}
	return out, nil
}

// address returns host and port of the server. The plugin compares names in small letters.
func (s *Server) address() string {
	host, port := s.conn.Host("3306")
	return net.JoinHostPort(strings.ToLower(host), port)
}

// cloneStatement returns the statement that copies the server. It contains the password: it is neither logged nor part
// of an error.
func (s *Server) cloneStatement(folder string) (string, error) {
	host, port := s.conn.Host("3306")
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return "", backup.Errorf(backup.InvalidTask, "cannot read the connection: %q is no port", port)
	}
	return fmt.Sprintf("CLONE INSTANCE FROM %s@%s:%d IDENTIFIED BY %s DATA DIRECTORY = %s REQUIRE SSL",
		literal(s.conn.User), literal(strings.ToLower(host)), number, literal(s.conn.Password), literal(folder)), nil
}

// literal quotes a text in SQL, for a server with the default sql_mode.
func literal(text string) string { return "'" + literalEscape.Replace(text) + "'" }

var literalEscape = strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\x00", `\0`, "\n", `\n`, "\r", `\r`, "\x1a", `\Z`)

// Secrets returns the forms in which statements contain the password of the connection.
func Secrets(c engine.Connection) []string {
	quoted := literalEscape.Replace(c.Password)
	return []string{quoted, strings.ReplaceAll(quoted, `\'`, `''`)}
}

// Error numbers of CLONE.
const (
	errSyntax          = 1064
	errCloneDonor      = 3862
	errCloneDiskSpace  = 3873
	errCloneInProgress = 3874
)

// cloneHints explain errors of CLONE by their numbers.
var cloneHints = map[uint16]string{
	3863:               "the two servers do not understand each other",
	3864:               "the throw-away server is of another version of MySQL than the server",
	3865:               "the throw-away server runs on another operating system than the server",
	3866:               "the throw-away server runs on another platform than the server",
	3867:               "the throw-away server does not know a character set of the server",
	3868:               "the throw-away server has other settings than the server",
	3869:               "the throw-away server has other settings than the server",
	3870:               "the server has a plugin that the throw-away server does not have",
	3872:               "the server has encrypted tables, which are not copied without TLS",
	errCloneInProgress: "the server is being copied already: the next backup is made once that has ended",
	3875:               "the server cannot be copied now",
}

// nested matches the donor's own error in a message of errCloneDonor.
var nested = regexp.MustCompile(`\b(\d{4}) ?: `)

// cloneFailed returns the error of a copy, with its reason.
func cloneFailed(address string, err error) error {
	if err == nil {
		return nil
	}
	what := "cannot copy the server " + address
	code, message := number(err), err.Error()
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		message = e.Message
	}
	switch {
	case code == errSyntax:
		// The message contains a part of the statement.
		return backup.Errorf(backup.ToolFailed, "%s: the throw-away server does not know the statement CLONE, or cannot read the name of the server", what)
	case code == errCloneDiskSpace, engine.ScratchReason(message, "") != "":
		return backup.Errorf(backup.NoSpace, "%s: the copy does not fit on the disk of the throw-away server: %w", what, err)
	case code == errCloneDonor:
		return &backup.Error{Reason: donorReason(message), Err: fmt.Errorf("%s: %w", what, err)}
	case isNetwork(code):
		return backup.Errorf(backup.SourceUnreachable, "%s: the connection to it was lost: %w", what, err)
	}
	if hint := cloneHints[code]; hint != "" {
		what += ": " + hint
	}
	return backup.Errorf(backup.ToolFailed, "%s: %w", what, err)
}

// isNetwork reports whether an error number of a server is about a connection.
func isNetwork(code uint16) bool {
	// Packets out of order, and errors and timeouts of reading and writing.
	return code >= 1153 && code <= 1161 || code == 1184
}

// donorReason returns the reason of an error that the donor has returned, or that connecting to it has.
func donorReason(message string) backup.Reason {
	m := nested.FindStringSubmatch(message)
	if m == nil {
		return backup.ToolFailed
	}
	code, err := strconv.ParseUint(m[1], 10, 16)
	if err != nil {
		return backup.ToolFailed
	}
	if isNetwork(uint16(code)) {
		return backup.SourceUnreachable
	}
	if reason := codeReason(uint16(code)); reason != backup.TargetNotEmpty {
		return reason
	}
	return backup.ToolFailed
}
