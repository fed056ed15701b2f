package mysqld

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/storeplane/storeplane/internal/instance/mysql/server"
)

// Replay has a server, which runs with the data of a backup, execute what was written after the backup.
type Replay func(ctx context.Context, db *sql.DB) error

// Restore makes the data directory from a backup of another cluster's data, which fetch fills a folder
// with. Fetch also returns what was written after it, and its context ends with Restore. The data becomes that of this cluster before it is taken over: other servers connect to it by
// this cluster's certificates, and it has an identifier of its own. If that fails, or accept returns
// an error in the end, the data directory does not exist.
func Restore(ctx context.Context, program string, f Files, o Options, fetch func(ctx context.Context, folder string) (Replay, error), accept func(context.Context) error, log io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	folder, err := f.prepare()
	if err != nil {
		return err
	}
	replay, err := fetch(ctx, folder)
	if err != nil {
		return err
	}
	user, err := replicationUser(o.PeerCertificate)
	if err != nil {
		return err
	}
	if err := appropriate(ctx, program, folder, f, o, user, replay, log); err != nil {
		return err
	}
	if err := accept(ctx); err != nil {
		return err
	}
	return f.adopt(folder)
}

// appropriate runs a server on a folder, which no client can reach over the network, has it execute what
// was written after the backup, and makes its data that of this cluster.
func appropriate(ctx context.Context, program, folder string, f Files, o Options, user []string, replay Replay, log io.Writer) error {
	if err := f.clear(o); err != nil {
		return err
	}
	p, err := start(program, o.alone(folder, f.TemporaryDir()), log)
	if err != nil {
		return err
	}
	defer func() {
		_ = p.Kill()
		<-p.Done()
	}()
	s := server.Server{Socket: o.Socket()}
	if err := answers(ctx, p, s); err != nil {
		return cannotRun(err)
	}
	if err := execute(ctx, p, s, replay); err != nil {
		return err
	}
	if err := s.Appropriate(ctx, user); err != nil {
		return cannotRun(err)
	}
	if err := p.Stop(); err != nil {
		return cannotRun(err)
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-p.Done():
	}
	if p.Code() != 0 {
		return cannotRun(errors.New(p.Problem()))
	}
	return nil
}

func cannotRun(err error) error {
	return fmt.Errorf("cannot start MySQL with the data of the backup: %w", err)
}

// replayTimeout bounds a statement of a Replay: starting and stopping it.
const replayTimeout = 10 * time.Minute

// execute has a server execute what was written after the backup.
func execute(ctx context.Context, p *Process, s server.Server, replay Replay) error {
	db, err := s.Pool(replayTimeout)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	err = replay(ctx, db)
	if ended, _ := p.Ended(); ended && err != nil {
		return fmt.Errorf("cannot execute what was written after the backup: %s", p.Problem())
	}
	return err
}

// answerPoll is how often a server that starts is asked.
const answerPoll = 200 * time.Millisecond

// answers waits until a server answers. It may have to upgrade its data first, which takes as long as
// it takes.
func answers(ctx context.Context, p *Process, s server.Server) error {
	tick := time.NewTicker(answerPoll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-p.Done():
			return errors.New(p.Problem())
		case <-tick.C:
			if s.Ping(ctx) == nil {
				return nil
			}
		}
	}
}

// alone returns the arguments of a server that is no member of a group and that no client can reach over
// the network. Nothing that it does is in a binary log.
func (o Options) alone(dataDir, temporary string) []string {
	return append(o.base(dataDir),
		"--socket="+o.Socket(), "--pid-file="+o.pidFile(), "--tmpdir="+temporary,
		"--skip-networking", "--mysqlx=OFF", "--skip-log-bin", "--relay-log=relay", "--gtid-mode=ON", "--enforce-gtid-consistency=ON",
		"--event-scheduler=OFF", "--init-connect=", "--skip-replica-start", "--super-read-only=OFF",
		"--plugin-load-add=group_replication.so", "--plugin-load-add=mysql_clone.so", "--loose-group-replication-start-on-boot=OFF")
}
