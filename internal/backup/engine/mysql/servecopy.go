package mysql

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/engine"
)

// CopyFolder is the name of the folder of a copy, in the folder that the two containers share.
const CopyFolder = "copy"

// openWithin is how long a server may take to start from a copy: it may have much to recover. The deadline of the Job
// ends one that hangs.
const openWithin = 24 * time.Hour

// A CopyServing runs the servers that a copy of another server needs, in the container without Secrets.
type CopyServing struct {
	Daemon *engine.Daemon

	// Stage is where the container beside reads how far the servers are.
	Stage *engine.Stage

	// Scratch is the folder that the two containers share.
	Scratch string

	Log io.Writer
}

func (c CopyServing) folder() string { return filepath.Join(c.Scratch, CopyFolder) }

// relays returns the folder of relay logs: the other container writes binary logs there, for the server to apply.
func (c CopyServing) relays() string { return filepath.Join(c.Scratch, "relay") }

// Serve runs the servers for the action of the container beside. For a backup it is an empty one, which copies another
// server on request; for a verification none, since the other container makes the folder. Then it is a server on the
// copy, which proves that one starts from it. Each runs until it is shut down by the other container. The folder is
// removed in the end, when ctx ends or a server fails.
func (c CopyServing) Serve(ctx context.Context, action backup.Action) error {
	program, err := engine.Look("mysqld", "/usr/sbin/mysqld")
	if err != nil {
		return err
	}
	if err := c.own(c.Scratch); err != nil {
		return err
	}
	defer func() { _ = errors.Join(os.RemoveAll(c.folder()), os.RemoveAll(c.relays())) }()
	switch action {
	case backup.Backup:
		err = c.receive(ctx, program)
	case backup.Verify:
		err = c.await(ctx)
	default:
		err = backup.Errorf(backup.InvalidTask, "cannot serve the action %q: copies are made and verified", action)
	}
	if err != nil {
		return err
	}
	if err := c.open(ctx, program); err != nil {
		return c.cannotOpen(action, err)
	}
	if err := c.Stage.Opened(); err != nil {
		return err
	}
	if err := c.Daemon.WaitShutdown(ctx); err != nil {
		return err
	}
	if err := c.Stage.Closed(); err != nil {
		return err
	}
	// The other container reads the folder.
	<-ctx.Done()
	return nil
}

// own gives a folder to the user that servers run as, if that is another one.
func (c CopyServing) own(dir string) error {
	u := c.Daemon.User
	if u == nil {
		return nil
	}
	return os.Lchown(dir, int(u.Uid), int(u.Gid))
}

// clonePlugins are the plugins of the servers of a DatabaseCluster: a server that copies one of them needs all.
var clonePlugins = []string{"--plugin-load-add=mysql_clone.so", "--plugin-load-add=group_replication.so"}

// gtids are the options by which a server has an identifier for each transaction.
var gtids = []string{"--gtid-mode=ON", "--enforce-gtid-consistency=ON"}

// receive runs an empty server that copies another one, and waits until there is a copy.
func (c CopyServing) receive(ctx context.Context, program string) error {
	k := mySQL(program)
	k.serving = slices.Concat(k.serving, clonePlugins, gtids, []string{
		"--loose-group-replication-start-on-boot=OFF",
		// Each thread takes a connection, of which the user has 10.
		"--loose-clone-max-concurrency=4",
	})
	if err := k.serve(ctx, c.Daemon, c.Log); err != nil {
		return err
	}
	if err := c.Stage.Ready(); err != nil {
		return err
	}
	if err := c.Daemon.WaitShutdown(ctx); err != nil {
		return err
	}
	// Its data is of no use any more, and takes room.
	if err := os.RemoveAll(dataDir(c.Daemon)); err != nil {
		return fmt.Errorf("cannot remove the data of the throw-away database: %w", err)
	}
	if _, err := os.Lstat(c.folder()); err != nil {
		return backup.Errorf(backup.ToolFailed, "there is no copy: %w", err)
	}
	return nil
}

// await waits until the other container has made the folder.
func (c CopyServing) await(ctx context.Context) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := os.Lstat(c.folder())
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return backup.Errorf(backup.ToolFailed, "cannot find the copy: %w", err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
	return filepath.WalkDir(c.folder(), func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, c.own(path))
	})
}

// open starts a server from the copy.
func (c CopyServing) open(ctx context.Context, program string) error {
	s, err := at(c.Daemon.Socket, c.Log)
	if err != nil {
		return err
	}
	defer s.Close()
	ready := func(ctx context.Context) error {
		_, err := s.Version(ctx)
		if backup.ReasonOf(err) == backup.SourceDenied {
			// It runs, and the other container reports that it cannot connect.
			return nil
		}
		return err
	}
	if err := os.MkdirAll(c.relays(), 0o700); err != nil {
		return fmt.Errorf("cannot create the folder of relay logs: %w", err)
	}
	if err := c.own(c.relays()); err != nil {
		return err
	}
	d := c.Daemon
	d.StartWithin = openWithin
	return d.Start(ctx, c.Log, ready, program, slices.Concat([]string{
		"--no-defaults", "--persisted-globals-load=OFF", "--datadir=" + c.folder(), "--tmpdir=" + d.Dir, "--secure-file-priv=NULL",
		"--socket=" + s.socket, "--pid-file=" + filepath.Join(d.Dir, "pid"), "--skip-networking", "--mysqlx=OFF",
		// It changes nothing in the data, and runs no events and no replication of it.
		"--super-read-only=ON", "--event-scheduler=OFF", "--skip-replica-start=ON", "--loose-group-replication-start-on-boot=OFF",
		"--skip-log-bin", "--relay-log=" + filepath.Join(c.relays(), "relay"), "--local-infile=0", "--lower-case-table-names=0",
		// It leaves nothing of its own in the folder.
		"--auto-generate-certs=OFF", "--loose-caching-sha2-password-auto-generate-rsa-keys=OFF",
		"--loose-sha256-password-auto-generate-rsa-keys=OFF", "--innodb-buffer-pool-dump-at-shutdown=OFF", "--innodb-buffer-pool-load-at-startup=OFF",
		// The files are archived once it has shut down, or removed, and it shares the pod's memory.
		"--innodb-flush-log-at-trx-commit=0", "--innodb-doublewrite=0", "--innodb-redo-log-capacity=64M", "--innodb-buffer-pool-size=128M",
		"--performance-schema=OFF", "--max-connections=10",
	}, clonePlugins, gtids)...)
}

// cannotOpen returns the error of a server that does not start from a copy. The files of a backup are what was written,
// and a server has started from them before, so only words of the server show that they are the cause.
func (c CopyServing) cannotOpen(action backup.Action, err error) error {
	reason := backup.ReasonOf(backup.WithReason(backup.ToolFailed, err))
	if action == backup.Verify && reason == backup.ToolFailed && engine.Contains(err.Error(), "corrupt", "Corrupt") {
		reason = backup.BackupCorrupt
	}
	return backup.Errorf(reason, "cannot start a server from the copy: %s", err.Error())
}
