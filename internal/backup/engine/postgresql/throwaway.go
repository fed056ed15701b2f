package postgresql

import (
	"context"
	"io"
	"net/url"
	"path/filepath"

	"github.com/jackc/pgx/v5"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/engine"
)

// superuser is the user of a throw-away server.
const superuser = "postgres"

// settings are those of a throw-away server: its data need not survive a crash, it shares the
// pod's memory with this program, and no other program reaches it.
var settings = []string{
	"listen_addresses=", "unix_socket_permissions=0700",
	"fsync=off", "synchronous_commit=off", "full_page_writes=off",
	"wal_level=minimal", "max_wal_senders=0", "archive_mode=off", "max_wal_size=256MB", "min_wal_size=32MB",
	"shared_buffers=64MB", "maintenance_work_mem=64MB", "max_connections=20", "max_locks_per_transaction=256",
	"max_parallel_workers_per_gather=0", "max_parallel_maintenance_workers=0",
	"autovacuum=off", "logging_collector=off", "log_min_messages=warning", "jit=off",
	// A server that crashed because it could not write must not restart again and again.
	"restart_after_crash=off",
}

// Serve starts a throw-away server of a Daemon, which runs until the Daemon is stopped.
func Serve(ctx context.Context, d *engine.Daemon, log io.Writer) error {
	initdb, err := engine.Look("initdb")
	if err != nil {
		return err
	}
	postgres, err := engine.Look("postgres")
	if err != nil {
		return err
	}
	data := filepath.Join(d.Dir, "data")
	t := engine.Tool{
		Name: initdb, Args: []string{"--pgdata=" + data, "--username=" + superuser, "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"},
		Dir: d.Dir, User: d.User, Log: log, Reason: func(words string) backup.Reason { return engine.ScratchReason(words, "") },
	}
	if err := t.Run(ctx); err != nil {
		return err
	}
	s, err := at(d.Socket, log)
	if err != nil {
		return err
	}
	defer s.Close()
	args := []string{"-D", data, "-c", "unix_socket_directories=" + d.Socket}
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	ready := func(ctx context.Context) error {
		_, err := s.Version(ctx)
		return err
	}
	return d.Start(ctx, log, ready, postgres, args...)
}

// at opens the throw-away server with a socket in a folder.
func at(socket string, log io.Writer) (*Server, error) {
	return Open(engine.Connection{User: superuser, Params: url.Values{"host": {socket}, "sslmode": {"disable"}}}, log)
}

// Attach connects to a throw-away server that the container beside runs, and creates the roles
// that a dump may name.
func Attach(ctx context.Context, remote engine.Remote, roles []string, log io.Writer) (*Server, error) {
	s, err := at(remote.Dir, log)
	if err != nil {
		return nil, err
	}
	s.remote = &remote
	if err := s.createRoles(ctx, roles); err != nil {
		s.Close()
		return nil, remote.Failed(err)
	}
	return s, nil
}

func (s *Server) createRoles(ctx context.Context, roles []string) error {
	return s.with(ctx, maintenance, func(c *pgx.Conn) error {
		for _, role := range roles {
			if role == superuser {
				continue
			}
			if _, err := c.Exec(ctx, "CREATE ROLE "+pgx.Identifier{role}.Sanitize()); err != nil {
				return failed(ctx, "cannot create role "+role, err)
			}
		}
		return nil
	})
}

// Failed explains an error of a throw-away server with the server's own output.
func (s *Server) Failed(err error) error {
	if s.remote == nil || err == nil {
		return err
	}
	return s.remote.Failed(err)
}
