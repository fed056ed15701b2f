package command

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"time"

	"k8s.io/client-go/rest"

	"github.com/storeplane/storeplane/internal/backup"
	"github.com/storeplane/storeplane/internal/backup/run"
	"github.com/storeplane/storeplane/internal/instance"
	"github.com/storeplane/storeplane/internal/instance/manager/kube"
)

// Archive contains the flags of the program that archives binary logs: whose they are, and what its Task is. The
// command interpolates their defaults.
type Archive struct {
	Namespace string `env:"${namespaceVariable}" help:"Namespace of the servers."     required:""`
	Scope     string `env:"${scopeVariable}"     help:"Name of their StatefulSet."    required:""`
	Task      string `env:"${taskVariable}"      help:"What to archive, and to where." required:""`
}

// Run archives until the context ends.
func (a *Archive) Run(ctx context.Context, config *rest.Config, log *slog.Logger) error {
	client, err := kube.New(config, a.Namespace)
	if err != nil {
		return err
	}
	task := backup.Task{}
	if err := json.Unmarshal([]byte(a.Task), &task); err != nil {
		return fmt.Errorf("cannot read the task: %w", err)
	}
	r := archiveReport{write: func(content string) error {
		return client.PatchData(ctx, instance.ArchiveName(a.Scope), map[string]*string{instance.ArchiveKey: &content})
	}, log: log}
	p := run.New(os.Stderr)
	return p.ArchiveLogs(ctx, task, func(now run.Archived) { r.say(now, time.Now()) })
}

// failingAfter is how long nothing has to be archived before that is reported: another server becomes the primary within
// that time.
const failingAfter = 30 * time.Second

// archiveReport writes reports, and each only if it says something new: it runs the function.
type archiveReport struct {
	write func(content string) error
	log   *slog.Logger

	// last is what was written last, and failing is since when there is a problem, or zero.
	last    *instance.Archive
	failing time.Time
}

// say reports how far the archive is.
func (r *archiveReport) say(now run.Archived, at time.Time) {
	next := r.next(now, at)
	if r.last != nil && !differs(r.last, &next) {
		return
	}
	content, err := json.Marshal(next)
	if err == nil {
		err = r.write(string(content))
	}
	if err != nil {
		r.log.Info("Operation failed, retrying", "operation", "report the archive", "error", err.Error())
		return
	}
	r.last = &next
}

// next returns the next report.
func (r *archiveReport) next(now run.Archived, at time.Time) instance.Archive {
	next := instance.Archive{System: now.System, Parted: now.Parted, BackedUp: now.BackedUp, Reported: new(at.UTC().Truncate(time.Second))}
	until := now.Until
	if !now.Missing.IsEmpty() && now.Ended.IsZero() {
		// What was written after the gap cannot be restored yet.
		until = now.Before
	}
	if !until.IsZero() && now.BackedUp {
		next.Recoverable = new(until.UTC().Truncate(time.Second))
	}
	if !now.Missing.IsEmpty() {
		name := now.Missing.String()
		gap := instance.Gap{First: name, Last: name}
		if !now.Before.IsZero() {
			gap.From = new(now.Before.UTC())
		}
		if !now.Ended.IsZero() {
			gap.To = new(now.Ended.UTC())
		}
		next.Gaps = []instance.Gap{gap}
	}
	switch {
	case now.Problem == "":
		r.failing = time.Time{}
	case r.failing.IsZero():
		r.failing = at
	}
	switch {
	case !r.failing.IsZero() && at.Sub(r.failing) >= failingAfter:
		next.Failing, next.Since = now.Problem, next.Recoverable
	case now.Behind:
		next.Failing, next.Since, next.Archiving = behind, next.Recoverable, true
	}
	return next
}

// behind is why the archive fails although all that is received gets into it.
const behind = "the archive is more than 10 minutes behind the primary: wait if the store was away, or else use a faster one"

// differs reports whether a report says more than one before: time alone, and the words of a problem, have to have
// advanced by a step.
func differs(before, next *instance.Archive) bool {
	if (before.Failing == "") != (next.Failing == "") || before.Archiving != next.Archiving || before.BackedUp != next.BackedUp || before.System != next.System || before.Parted != next.Parted || len(before.Gaps) != len(next.Gaps) || (before.Recoverable == nil) != (next.Recoverable == nil) {
		return true
	}
	for i := range next.Gaps {
		if before.Gaps[i].First != next.Gaps[i].First || (before.Gaps[i].To == nil) != (next.Gaps[i].To == nil) {
			return true
		}
	}
	return next.Reported.Sub(*before.Reported) >= instance.ArchiveStep || next.Recoverable != nil && next.Recoverable.Sub(*before.Recoverable) >= instance.ArchiveStep
}
