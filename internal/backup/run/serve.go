package run

import (
	"context"
	"errors"
	"io"

	backupv1 "github.com/storeplane/storeplane/apis/backup/v1"
	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/engine"
	"github.com/storeplane/storeplane/internal/backup/physical"
)

// serve a throw-away database, until told to stop. What ends it is told in the folder
// that the container beside shares, and not by ending: the kubelet would start this one
// again.
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

// play the server on a stage, and return why it ended by itself.
func (p *Program) play(ctx context.Context, t backup.Task, stage *engine.Stage) error {
	if t.Method == backupv1.Physical {
		return physical.Serve(ctx, physical.Shared{Scratch: p.Scratch, Socket: p.Socket, Archive: p.Archive}, stage, p.Log)
	}
	d, err := engine.NewDaemon(p.Scratch, p.Socket)
	if err != nil {
		return err
	}
	defer d.Stop()
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
	// Before its data is removed: a disk that is full tells why.
	return d.Failed(err)
}
