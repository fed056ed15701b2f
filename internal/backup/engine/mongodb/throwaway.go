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

// ThrowAway starts a FerretDB with SQLite in the scratch folder. Its Close removes
// it.
func ThrowAway(ctx context.Context, scratch string, log io.Writer) (*Server, error) {
	d, err := engine.NewDaemon(scratch)
	if err != nil {
		return nil, err
	}
	s, err := throwAway(ctx, d, log)
	if err != nil {
		d.Stop()
		return nil, err
	}
	s.daemon = d
	return s, nil
}

func throwAway(ctx context.Context, d *engine.Daemon, log io.Writer) (*Server, error) {
	ferretdb, err := engine.Look("ferretdb")
	if err != nil {
		return nil, err
	}
	data := filepath.Join(d.Dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		return nil, backup.Errorf(engine.ScratchReason(err.Error(), backup.ToolFailed), "cannot make a throw-away database: %w", err)
	}
	if d.User != nil {
		if err := os.Chown(data, int(d.User.Uid), int(d.User.Gid)); err != nil {
			return nil, backup.Errorf(backup.ToolFailed, "cannot make a throw-away database: %w", err)
		}
	}
	socket := filepath.Join(d.Socket, "mongodb.sock")
	s, err := Open(engine.Connection{Hosts: strings.ReplaceAll(url.PathEscape(socket), "/", "%2F"), Params: url.Values{"directConnection": {"true"}}}, log)
	if err != nil {
		return nil, err
	}
	ready := func(ctx context.Context) error {
		if _, err := os.Stat(socket); err != nil {
			return err
		}
		_, err := s.Version(ctx)
		return err
	}
	err = d.Start(ctx, log, ready, ferretdb,
		"--handler=sqlite", "--sqlite-url=file:"+data+"/", "--state-dir="+d.Dir,
		"--listen-addr=", "--listen-unix="+socket, "--debug-addr=-", "--telemetry=disable", "--log-level=error")
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}
