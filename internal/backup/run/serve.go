package run

import (
	"context"
	"errors"
	"io"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/engine"
	"github.com/storeplane/storeplane/internal/backup/engine/mysql"
	"github.com/storeplane/storeplane/internal/backup/physical"
)

// serve runs a throw-away database until the pod is stopped. If the database ends before that, the
// cause is reported in the folder shared with the container beside. This program continues even
// then: otherwise the kubelet would restart the container.
func (p *Program) serve(ctx context.Context, t backup.Task) backup.Report {
	r := backup.Report{Action: t.Action, Started: p.Now()}
	stage, err := engine.NewStage(p.Socket)
	if err == nil {
		err = p.play(ctx, t, stage)
	}
	if err != nil && stage != nil {
		err = errors.Join(err, stage.Ended(err))
	}
	if err != nil {
		r.Failure = &backup.Failure{Reason: backup.ReasonOf(backup.WithReason(backup.ToolFailed, err)), Message: oneLine(err.Error())}
	}
	<-ctx.Done()
	r.Finished = p.Now()
	return r
}

// play runs the server, and returns why it ended by itself, or nil if ctx ended.
func (p *Program) play(ctx context.Context, t backup.Task, stage *engine.Stage) error {
	if byPgBackRest(t) {
		return physical.Serve(ctx, physical.Shared{Scratch: p.Scratch, Socket: p.Socket, Archive: p.Archive}, stage, p.Log)
	}
	d, err := engine.NewDaemon(p.Scratch, p.Socket)
	if err != nil {
		return err
	}
	defer d.Stop()
	if t.Method == backupv1.Physical {
		c := mysql.CopyServing{Daemon: d, Stage: stage, Scratch: p.Scratch, Log: io.MultiWriter(stage, p.Log)}
		if err := c.Serve(ctx, t.For); ctx.Err() == nil {
			return err
		}
		return nil
	}
	if err := serve(ctx, t.Database.Engine, d, io.MultiWriter(stage, p.Log)); err != nil {
		return err
	}
	if err := stage.Ready(); err != nil {
		return err
	}
	err = d.Wait(ctx)
	if err == nil {
		return nil
	}
	// Failed must run before the data is removed, as a full disk may be the cause.
	return d.Failed(err)
}
