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

// A kind of throw-away server.
type kind struct {
	// server is the program of the server, and install that which creates its data.
	server, install string

	// common are the options of both, creating those of install alone, and serving those of server.
	common, creating, serving []string
}

// MariaDB has a program of its own that creates the data.
var mariaDB = kind{
	server: "mariadbd", install: "mariadb-install-db",
	common:   []string{"--innodb-log-file-size=16M"},
	creating: []string{"--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"},
	serving:  []string{"--key-buffer-size=16M", "--aria-pagecache-buffer-size=16M"},
}

// MySQL's server is called mysqld in images of MySQL, and so it is on a machine with MariaDB: the name
// does not decide.
func mySQL(program string) kind {
	return kind{
		server: program, install: program,
		common:   []string{"--innodb-redo-log-capacity=32M", "--secure-file-priv=NULL"},
		creating: []string{"--initialize-insecure"},
		serving:  []string{"--mysqlx=OFF"},
	}
}

// Serve starts a throw-away server of a Daemon, which runs until the Daemon is stopped: MariaDB, or
// MySQL in an image that has no MariaDB.
func Serve(ctx context.Context, d *engine.Daemon, log io.Writer) error {
	if _, err := engine.Look(mariaDB.install); err != nil {
		return mySQL("mysqld").serve(ctx, d, log)
	}
	return mariaDB.serve(ctx, d, log)
}

func (k kind) serve(ctx context.Context, d *engine.Daemon, log io.Writer) error {
	install, err := engine.Look(k.install)
	if err != nil {
		return err
	}
	server, err := engine.Look(k.server, "/usr/sbin/"+k.server)
	if err != nil {
		return err
	}
	common := append([]string{
		"--no-defaults", "--datadir=" + dataDir(d), "--tmpdir=" + d.Dir, "--innodb-flush-log-at-trx-commit=0",
	}, k.common...)
	t := engine.Tool{
		Name: install, Args: slices.Concat(common, k.creating),
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
	args := slices.Concat(common, k.serving, []string{
		"--socket=" + s.socket, "--pid-file=" + filepath.Join(d.Dir, "pid"), "--skip-networking", "--skip-log-bin",
		// No data needs to survive a crash, and the server shares the pod's memory.
		"--innodb-doublewrite=0", "--innodb-buffer-pool-size=128M",
		"--max-connections=10", "--performance-schema=OFF", "--max-allowed-packet=1G",
		// Events of the dump are restored, but must not run.
		"--event-scheduler=OFF", "--log-bin-trust-function-creators=1", "--local-infile=0", "--character-set-server=utf8mb4"})
	return d.Start(ctx, log, ready, server, args...)
}

// dataDir is the folder of the data of a throw-away server.
func dataDir(d *engine.Daemon) string { return filepath.Join(d.Dir, "data") }

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
