package server

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/storeplane/storeplane/internal/instance"
)

// User is the user as which servers connect to each other.
const User = instance.MySQLReplicationUser

// recovery is the channel by which a server receives what it has missed, and by whose user it
// connects to its group.
const recovery = "group_replication_recovery"

// component has the server with the most transactions elected
// (https://dev.mysql.com/doc/refman/9.7/en/group-replication-component-elect-prefers-most-updated.html).
const component = "file://component_group_replication_elect_prefers_most_updated"

// Membership is how a server takes part in its group.
type Membership struct {
	// Name is the name of the group, a UUID, and Address that at which the server's members
	// reach it, host:port. Seeds are those of the servers to join by.
	Name, Address string
	Seeds         []string
}

func (m Membership) statements() []string {
	return []string{
		fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_USER = '%s' FOR CHANNEL '%s'", User, recovery),
		fmt.Sprintf("SET GLOBAL group_replication_group_name = '%s'", m.Name),
		fmt.Sprintf("SET GLOBAL group_replication_local_address = '%s'", m.Address),
		fmt.Sprintf("SET GLOBAL group_replication_group_seeds = '%s'", strings.Join(m.Seeds, ",")),
	}
}

// Bootstrap founds a group with what the server holds. No client can connect until Open: the server takes writes before MySQL
// has ended the statement, and until then they go past the group.
func (s Server) Bootstrap(ctx context.Context, m Membership) error {
	err := s.execute(ctx, changeTimeout, append(m.statements(),
		"SET GLOBAL offline_mode = ON",
		"SET GLOBAL group_replication_bootstrap_group = ON",
		"START GROUP_REPLICATION")...)
	// Another start must not found a second group.
	off := s.execute(context.WithoutCancel(ctx), readTimeout, "SET GLOBAL group_replication_bootstrap_group = OFF")
	if err != nil {
		return err
	}
	return off
}

// StandAlone has the server take writes without a group. No client can connect until Open. The server must have executed
// all that it has received: it does not do so without a group.
func (s Server) StandAlone(ctx context.Context, m Membership) error {
	return s.execute(ctx, changeTimeout, append(m.statements(),
		"SET GLOBAL offline_mode = ON",
		"SET GLOBAL read_only = OFF")...)
}

const (
	// refuseSeconds is how long a standalone server waits for statements that write before it refuses writes, in each of
	// the four steps in which MySQL does so. Others that write wait behind it. refuseTimeout is more than all of that: MySQL
	// would go on without its client.
	refuseSeconds = 2
	refuseTimeout = 15 * time.Second

	// lockWaitTimeout is MySQL's number of the error of a statement that has waited too long for a lock.
	lockWaitTimeout = 1205
)

// Refuse has a standalone server take no more writes. It returns false if a statement that writes does not end in time: the
// server takes writes again, then, as after an error.
func (s Server) Refuse(ctx context.Context) (bool, error) {
	err := s.execute(ctx, refuseTimeout, fmt.Sprintf("SET SESSION lock_wait_timeout = %d", refuseSeconds), "SET GLOBAL super_read_only = ON")
	if err == nil {
		return true, nil
	}
	// MySQL has turned read_only on first, which stays.
	undone := s.execute(context.WithoutCancel(ctx), readTimeout, "SET GLOBAL read_only = OFF")
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok && e.Number == lockWaitTimeout {
		return false, undone
	}
	return false, errors.Join(err, undone)
}

// Open lets clients connect to a server that has founded a group or is standalone, and has the server with the most
// transactions elected from now on. That the component for it cannot be loaded is an error, but clients
// can connect all the same.
func (s Server) Open(ctx context.Context) error {
	installed := s.install(ctx)
	return errors.Join(s.Admit(ctx), installed)
}

// install installs the component, unless it is.
func (s Server) install(ctx context.Context) error {
	return s.with(ctx, changeTimeout, func(ctx context.Context, conn *sql.Conn) error {
		var n int
		if err := conn.QueryRowContext(ctx, "SELECT count(*) FROM mysql.component WHERE component_urn = ?", component).Scan(&n); err != nil {
			return fmt.Errorf("cannot read which components there are: %w", err)
		}
		if n > 0 {
			return nil
		}
		if _, err := conn.ExecContext(ctx, fmt.Sprintf("INSTALL COMPONENT '%s'", component)); err != nil {
			return fmt.Errorf("cannot install %s: %w", component, err)
		}
		return nil
	})
}

// always is the number of missing transactions from which on a server copies another one whatever it
// has, and usually the default, at which it does if a member lacks the binary logs.
const (
	always  = 1
	usually = 9223372036854775807
)

// Join joins a group. A server that copies another one first ends with code 16 once it has.
func (s Server) Join(ctx context.Context, m Membership, byCopy bool) error {
	threshold := int64(usually)
	if byCopy {
		threshold = always
	}
	return s.execute(ctx, changeTimeout, append(m.statements(),
		"SET GLOBAL group_replication_bootstrap_group = OFF",
		// It is, but after a standalone server could not be stopped from taking writes.
		"SET GLOBAL super_read_only = ON",
		"SET GLOBAL offline_mode = OFF",
		fmt.Sprintf("SET GLOBAL group_replication_clone_threshold = %d", threshold),
		"START GROUP_REPLICATION")...)
}

// Leave leaves the group. The server accepts no writes afterwards.
func (s Server) Leave(ctx context.Context) error {
	return errors.Join(s.execute(ctx, changeTimeout, "STOP GROUP_REPLICATION"), s.execute(ctx, changeTimeout, "SET GLOBAL super_read_only = ON"))
}

// Shut ends the sessions of clients and lets no new ones in, until Admit, or until the server is started again or
// joins a group: it could not end while clients write.
func (s Server) Shut(ctx context.Context) error {
	return s.execute(ctx, readTimeout, "SET GLOBAL offline_mode = ON")
}

// Admit lets clients connect again.
func (s Server) Admit(ctx context.Context) error {
	return s.execute(ctx, readTimeout, "SET GLOBAL offline_mode = OFF")
}

// HandOver makes another member the primary, by its UUID. It waits for transactions that run for at
// most some seconds, then ends them.
func (s Server) HandOver(ctx context.Context, server string) error {
	return s.execute(ctx, changeTimeout, fmt.Sprintf("SELECT group_replication_set_as_primary('%s', %d)", server, handOverSeconds))
}

// handOverSeconds is how long running transactions may take to end at a planned hand-over.
const handOverSeconds = 10

// ReloadCertificates has new connections use the certificates that are in the files now. Those that
// cannot be used are an error, and the server goes on with the ones before.
func (s Server) ReloadCertificates(ctx context.Context) error {
	return s.execute(ctx, readTimeout, "ALTER INSTANCE RELOAD TLS")
}
