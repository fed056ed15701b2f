package mysql

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/engine"
	"github.com/storeplane/storeplane/internal/gtid"
)

// streamPrivilege is the privilege of a user that receives binary logs, as SHOW GRANTS and the server's errors name it.
const streamPrivilege = "REPLICATION SLAVE"

// MayStream returns an error unless the user may receive the binary logs of the server.
func (s *Server) MayStream(ctx context.Context) error {
	grants, err := s.names(ctx, "cannot read the privileges of the user", "SHOW GRANTS")
	if err != nil {
		return err
	}
	if !mayEverywhere(grants, streamPrivilege) {
		return backup.Errorf(backup.SourceDenied, "user %s has no privilege %s, without which it receives no binary logs: the servers of a DatabaseCluster grant it once they run this release", s.conn.User, streamPrivilege)
	}
	return nil
}

// Executed returns the transactions that the server has executed.
func (s *Server) Executed(ctx context.Context) (gtid.Set, error) {
	return s.set(ctx, "gtid_executed")
}

// Purged returns the transactions of which the server has no binary logs any more.
func (s *Server) Purged(ctx context.Context) (gtid.Set, error) { return s.set(ctx, "gtid_purged") }

// Reconnect has the next question open a connection: an open one may be to a server that is the primary no more.
func (s *Server) Reconnect() {
	s.db.SetMaxIdleConns(0)
	s.db.SetMaxIdleConns(idle)
}

// idle is the number of connections that are kept, the default of package sql.
const idle = 2

// Name returns the UUID by which the server is distinguished from others of its group. A server of a DatabaseCluster has
// another one each time that it starts.
func (s *Server) Name(ctx context.Context) (string, error) {
	var name string
	err := s.db.QueryRowContext(ctx, "SELECT @@GLOBAL.server_uuid").Scan(&name)
	return name, failed(ctx, "cannot read the UUID of the server", err)
}

// Now returns the time of the server.
func (s *Server) Now(ctx context.Context) (time.Time, error) {
	var micro int64
	// The zone of the server is of no account.
	err := s.db.QueryRowContext(ctx, "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))").Scan(&micro)
	return time.UnixMicro(micro).UTC(), failed(ctx, "cannot read the time of the server", err)
}

// IsPrimary returns an error if the server accepts no writes: one that was the primary, or has left its group, keeps its
// connections, and knows nothing of what is written elsewhere.
func (s *Server) IsPrimary(ctx context.Context) error {
	var readOnly bool
	if err := s.db.QueryRowContext(ctx, "SELECT @@GLOBAL.super_read_only").Scan(&readOnly); err != nil {
		return failed(ctx, "cannot read whether the server is the primary", err)
	}
	if readOnly {
		return backup.Errorf(backup.SourceUnreachable, "the server is not the primary any more, or not yet")
	}
	return nil
}

func (s *Server) set(ctx context.Context, variable string) (gtid.Set, error) {
	var text string
	if err := s.db.QueryRowContext(ctx, "SELECT @@GLOBAL."+variable).Scan(&text); err != nil {
		return gtid.Set{}, failed(ctx, "cannot read which transactions the server has", err)
	}
	return gtid.Parse(text)
}

// Stream receives the binary logs of the server, in files of their names in a folder, and goes on with what is written
// until ctx ends or the connection is lost. It leaves out the transactions of a set. MySQL's own tool asks the server
// for all others by their GTIDs, and the server refuses if it has no binary logs of one
// (https://dev.mysql.com/doc/refman/9.7/en/mysqlbinlog.html).
func (s *Server) Stream(ctx context.Context, folder string, without gtid.Set) error {
	program, err := engine.Look("mysqlbinlog")
	if err != nil {
		return err
	}
	options, err := s.private.Write("mysqlbinlog.cnf", s.streamOptions())
	if err != nil {
		return err
	}
	return engine.Tool{
		Name: program, Log: s.log, Reason: streamReason,
		Args: []string{
			"--defaults-file=" + options, "--read-from-remote-source=BINLOG-DUMP-GTIDS", "--raw", "--stop-never",
			"--exclude-gtids=" + without.String(), "--result-file=" + folder + string(filepath.Separator),
			// Without a name the server finds the first file by the GTIDs.
			"",
		},
	}.Run(ctx)
}

// streamOptions returns the option file of mysqlbinlog.
func (s *Server) streamOptions() string {
	var b strings.Builder
	b.WriteString("[mysqlbinlog]\nprotocol=tcp\n")
	host, port := s.conn.Host("3306")
	for _, o := range []setting{{"user", s.conn.User}, {"password", s.conn.Password}, {"host", host}, {"port", port}, {"ssl-ca", s.conn.CA}} {
		if o.value != "" {
			fmt.Fprintf(&b, "%s=\"%s\"\n", o.name, optionEscape.Replace(o.value))
		}
	}
	switch {
	case s.conn.CA != "":
		b.WriteString("ssl-mode=VERIFY_IDENTITY\n")
	case tlsOff(s.conn):
		b.WriteString("ssl-mode=DISABLED\n")
	}
	return b.String()
}

// streamReason returns the reason of the tool's error output.
func streamReason(words string) backup.Reason {
	switch {
	case engine.Contains(words, "Access denied"):
		return backup.SourceDenied
	case engine.Contains(words, "Failed on connect", "Lost connection", "has gone away", "Got error reading packet from server"):
		return backup.SourceUnreachable
	case engine.Contains(words, "No space left on device", "(OS errno 28"):
		return backup.NoSpace
	}
	return ""
}
