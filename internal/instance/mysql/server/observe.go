package server

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/storeplane/storeplane/internal/gtid"
	"github.com/storeplane/storeplane/internal/instance/mysql/group"
)

// applier is the channel that applies what the group has sent.
const applier = "group_replication_applier"

// Observe adds to a report what the server says about itself. One that is writable without a group is reported as
// Standalone, and otherwise as every server without a group.
func (s Server) Observe(ctx context.Context, r *group.Report) error {
	return s.with(ctx, readTimeout, func(ctx context.Context, conn *sql.Conn) error {
		var executed, purged, version string
		var readOnly, refuses bool
		// GTIDs are read before the state: a server that is offline then gets no more of them.
		row := conn.QueryRowContext(ctx, "SELECT @@server_uuid, @@version, @@super_read_only, @@read_only, COALESCE(@@group_replication_group_name, ''), @@gtid_executed, @@gtid_purged")
		if err := row.Scan(&r.Server, &version, &readOnly, &refuses, &r.Group, &executed, &purged); err != nil {
			return fmt.Errorf("cannot read the server's state: %w", err)
		}
		r.Version, _, _ = strings.Cut(version, "-")
		received, shown, err := received(ctx, conn)
		if err != nil {
			return err
		}
		own, err := gtid.Parse(executed)
		if err != nil {
			return err
		}
		r.Transactions = own.Union(received)
		if r.Purged, err = gtid.Parse(purged); err != nil {
			return err
		}
		if err := members(ctx, conn, r); err != nil {
			return err
		}
		if r.State == group.Offline {
			r.Standalone = !refuses
			if r.Behind = !own.Contains(received); !shown {
				if r.Behind, err = wasMember(ctx, conn); err != nil {
					return err
				}
			}
		}
		r.Primary = r.Primary && !readOnly
		r.Running = true
		return nil
	})
}

// received returns what the server has received from its group, and has applied or will apply. shown is false if the
// server does not show that: it has received nothing, or has no performance schema, or cannot read its relay logs.
func received(ctx context.Context, conn *sql.Conn) (set gtid.Set, shown bool, err error) {
	var text string
	err = conn.QueryRowContext(ctx, "SELECT received_transaction_set FROM performance_schema.replication_connection_status WHERE channel_name = ?", applier).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return set, false, nil
	}
	if err != nil {
		return set, false, fmt.Errorf("cannot read what the server has received: %w", err)
	}
	set, err = gtid.Parse(text)
	return set, true, err
}

// wasMember reports whether the server was in a group before, and may have received something.
func wasMember(ctx context.Context, conn *sql.Conn) (bool, error) {
	var was bool
	if err := conn.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM mysql.slave_relay_log_info WHERE channel_name = ?)", applier).Scan(&was); err != nil {
		return false, fmt.Errorf("cannot read whether the server was in a group: %w", err)
	}
	return was, nil
}

// members reads the view of the group that the server has.
func members(ctx context.Context, conn *sql.Conn, r *group.Report) error {
	r.State, r.Primary, r.View, r.Members = group.Offline, false, "", nil
	rows, err := conn.QueryContext(ctx, "SELECT member_id, member_host, COALESCE(member_port, 0), member_state, member_role, member_version FROM performance_schema.replication_group_members")
	if err != nil {
		return fmt.Errorf("cannot read the members of the group: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var m group.Member
		var host, port, state, role string
		if err := rows.Scan(&m.Server, &host, &port, &state, &role, &m.Version); err != nil {
			return fmt.Errorf("cannot read the members of the group: %w", err)
		}
		m.Address, m.State, m.Primary = net.JoinHostPort(host, port), group.State(state), role == "PRIMARY"
		if m.Server == r.Server || m.Server == "" {
			r.State, r.Primary = m.State, m.Primary
		}
		if m.Server != "" && m.State != group.Offline {
			r.Members = append(r.Members, m)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("cannot read the members of the group: %w", err)
	}
	slices.SortFunc(r.Members, func(a, b group.Member) int { return strings.Compare(a.Server, b.Server) })
	if r.State == group.Offline || r.State == group.Failed {
		r.Members = nil
		return nil
	}
	err = conn.QueryRowContext(ctx, "SELECT view_id FROM performance_schema.replication_group_member_stats WHERE member_id = ?", r.Server).Scan(&r.View)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("cannot read the view of the group: %w", err)
	}
	return nil
}

// Copied reports whether the server has completed a copy of another one since it was initialized.
func (s Server) Copied(ctx context.Context) (bool, error) {
	var n int
	err := s.with(ctx, readTimeout, func(ctx context.Context, conn *sql.Conn) error {
		return conn.QueryRowContext(ctx, "SELECT count(*) FROM performance_schema.clone_status WHERE state = 'Completed'").Scan(&n)
	})
	return n > 0, err
}
