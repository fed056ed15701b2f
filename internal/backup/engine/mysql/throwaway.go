package mysql

import (
	"context"
	"io"
	"path/filepath"
	"slices"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/engine"
)

// superuser is the user of a throw-away server. It has no password, as no other program reaches
// the socket.
const superuser = "root"

// Serve starts a throw-away server of a Daemon, which runs until the Daemon is stopped.
func Serve(ctx context.Context, d *engine.Daemon, log io.Writer) error {
	install, err := engine.Look("mariadb-install-db")
	if err != nil {
		return err
	}
	mariadbd, err := engine.Look("mariadbd", "/usr/sbin/mariadbd")
	if err != nil {
		return err
	}
	data := filepath.Join(d.Dir, "data")
	common := []string{"--no-defaults", "--datadir=" + data, "--tmpdir=" + d.Dir, "--innodb-log-file-size=16M", "--innodb-flush-log-at-trx-commit=0"}
	t := engine.Tool{
		Name: install, Args: append(common, "--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"),
		Dir: d.Dir, User: d.User, Env: []string{"TMPDIR=" + d.Dir, "HOME=" + d.Dir}, Stdout: log, Log: log,
		Reason: func(words string) backup.Reason { return engine.ScratchReason(words, "") },
	}
	if err := t.Run(ctx); err != nil {
		return err
	}
	s, err := at(d.Socket, log)
	if err != nil {
		return err
	}
	defer s.Close()
	ready := func(ctx context.Context) error {
		_, err := s.Version(ctx)
		return err
	}
	args := slices.Concat(common, []string{
		"--socket=" + s.socket, "--pid-file=" + filepath.Join(d.Dir, "pid"), "--skip-networking", "--skip-log-bin",
		// No data needs to survive a crash, and the server shares the pod's memory.
		"--innodb-doublewrite=0", "--innodb-buffer-pool-size=128M", "--key-buffer-size=16M", "--aria-pagecache-buffer-size=16M",
		"--max-connections=10", "--performance-schema=OFF", "--max-allowed-packet=1G",
		// Events of the dump are restored, but must not run.
		"--event-scheduler=OFF", "--log-bin-trust-function-creators=1", "--local-infile=0", "--character-set-server=utf8mb4"})
	return d.Start(ctx, log, ready, mariadbd, args...)
}

// at opens the throw-away server whose socket is in a folder.
func at(folder string, log io.Writer) (*Server, error) {
	return open(engine.Connection{User: superuser}, filepath.Join(folder, "s"), log)
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
