package mysql

import (
	"context"
	"io"
	"path/filepath"
	"slices"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/engine"
)

// superuser of a throw-away server: it has no password, and nobody else reaches
// the socket.
const superuser = "root"

// ThrowAway starts a server in the scratch folder. Its Close removes it.
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
	install, err := engine.Look("mariadb-install-db")
	if err != nil {
		return nil, err
	}
	mariadbd, err := engine.Look("mariadbd", "/usr/sbin/mariadbd")
	if err != nil {
		return nil, err
	}
	data := filepath.Join(d.Dir, "data")
	common := []string{"--no-defaults", "--datadir=" + data, "--tmpdir=" + d.Dir, "--innodb-log-file-size=16M", "--innodb-flush-log-at-trx-commit=0"}
	t := engine.Tool{
		Name: install, Args: append(common, "--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"),
		Dir: d.Dir, User: d.User, Env: []string{"TMPDIR=" + d.Dir, "HOME=" + d.Dir}, Stdout: log, Log: log,
		Reason: func(words string) backup.Reason { return engine.ScratchReason(words, "") },
	}
	if err := t.Run(ctx); err != nil {
		return nil, err
	}
	socket := filepath.Join(d.Socket, "s")
	s, err := open(engine.Connection{User: superuser}, socket, log)
	if err != nil {
		return nil, err
	}
	ready := func(ctx context.Context) error {
		_, err := s.Version(ctx)
		return err
	}
	args := slices.Concat(common, []string{
		"--socket=" + socket, "--pid-file=" + filepath.Join(d.Dir, "pid"), "--skip-networking", "--skip-log-bin",
		// Nothing of it needs to outlive a crash, and it shares the pod's memory.
		"--innodb-doublewrite=0", "--innodb-buffer-pool-size=128M", "--key-buffer-size=16M", "--aria-pagecache-buffer-size=16M",
		"--max-connections=10", "--performance-schema=OFF", "--max-allowed-packet=1G",
		// Events of the dump are restored, and must not run.
		"--event-scheduler=OFF", "--log-bin-trust-function-creators=1", "--local-infile=0", "--character-set-server=utf8mb4"})
	if err := d.Start(ctx, log, ready, mariadbd, args...); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}
