package mongodb

import (
	"context"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/engine"
)

// Serve starts a throw-away server of a Daemon, a FerretDB with SQLite, which runs until the
// Daemon is stopped.
func Serve(ctx context.Context, d *engine.Daemon, log io.Writer) error {
	ferretdb, err := engine.Look("ferretdb")
	if err != nil {
		return err
	}
	data := filepath.Join(d.Dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		return backup.Errorf(engine.ScratchReason(err.Error(), backup.ToolFailed), "cannot make a throw-away database: %w", err)
	}
	if d.User != nil {
		if err := os.Chown(data, int(d.User.Uid), int(d.User.Gid)); err != nil {
			return backup.Errorf(backup.ToolFailed, "cannot make a throw-away database: %w", err)
		}
	}
	socket := socketIn(d.Socket)
	s, err := at(d.Socket, log)
	if err != nil {
		return err
	}
	defer s.Close()
	ready := func(ctx context.Context) error {
		if _, err := os.Stat(socket); err != nil {
			return err
		}
		_, err := s.Version(ctx)
		return err
	}
	return d.Start(ctx, log, ready, ferretdb,
		"--handler=sqlite", "--sqlite-url=file:"+data+"/", "--state-dir="+d.Dir,
		"--listen-addr=", "--listen-unix="+socket, "--debug-addr=-", "--telemetry=disable", "--log-level=error")
}

func socketIn(folder string) string { return filepath.Join(folder, "mongodb.sock") }

// at opens the throw-away server whose socket is in a folder.
func at(folder string, log io.Writer) (*Server, error) {
	socket := strings.ReplaceAll(url.PathEscape(socketIn(folder)), "/", "%2F")
	return Open(engine.Connection{Hosts: socket, Params: url.Values{"directConnection": {"true"}}}, log)
}

// Attach connects to a throw-away server that the container beside runs.
func Attach(remote engine.Remote, log io.Writer) (*Server, error) {
	s, err := at(remote.Dir, log)
	if err != nil {
		return nil, err
	}
	s.remote = &remote
	return s, nil
}
