// Package cli is the command line tool storeplane: it renders claims, plans edits of them, explains
// why they are not ready, and upgrades them.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"
)

// The exit codes.
const (
	// ExitOK means that the command succeeded, and for plan also that nothing changes.
	ExitOK = 0
	// ExitError means that the command failed.
	ExitError = 1
	// ExitRefused means that a claim is refused.
	ExitRefused = 2
	// ExitChanges means that something changes, and that nothing is interrupted.
	ExitChanges = 3
	// ExitInterrupts means that the application is interrupted, or that data is lost.
	ExitInterrupts = 4
)

// exitError ends the command with an exit code. The reason has been printed already.
type exitError struct{ code int }

func (e *exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// root holds the commands.
type root struct {
	Plan     planCmd     `cmd:"" help:"Say what applying claims would do to what runs: what is created, changed and deleted, which pods restart, whether writes pause, what cannot be undone."`
	Explain  explainCmd  `cmd:"" help:"Say why a claim is not ready, or what has happened to it: the one cause, its evidence, and what to do."`
	Upgrade  upgradeCmd  `cmd:"" help:"List claims that wait for their maintenance window to be upgraded, or upgrade them now."`
	Export   exportCmd   `cmd:"" help:"Print what a cluster has of claims, without Secrets, for plans without the cluster."`
	Render   renderCmd   `cmd:"" help:"Print what Crossplane makes of a claim in one go, offline."`
	Converge convergeCmd `cmd:"" help:"Print every object that a claim will ever make, in order, offline, as if all went well."`
	Policy   policyCmd   `cmd:"" help:"Print the guardrails that a claim keeps and breaks, as a PolicyReport, offline, and fail if it breaks one."`

	Completion kongcompletion.Completion `cmd:"" help:"Print the command by which bash, zsh or fish completes commands, flags and the names of claims."`
}

// streams are the standard streams of the command.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// Main runs the command under the name by which it was called, and returns its exit code.
func Main(name string, args []string) int {
	// The command runs for less than a second, and can trade memory for less garbage collection.
	debug.SetGCPercent(400)
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	return run(ctx, name, args, streams{in: os.Stdin, out: os.Stdout, err: os.Stderr})
}

func run(ctx context.Context, name string, args []string, s streams) (ended int) {
	// Go exits from a panic with 2, which is the exit code for a refused claim.
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(s.err, "%s: error: it panicked: please report this: %v\n%s", name, p, debug.Stack())
			ended = ExitError
		}
	}()
	code := -1
	parser, err := kong.New(&root{}, kong.Name(name), kong.Description("Reviews claims of Storeplane: what they become, what an edit does to what runs, and why one is not ready."),
		kong.Writers(s.out, s.err), kong.Exit(func(c int) { code = c }), kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(s))
	if err != nil {
		fmt.Fprintf(s.err, "%s: error: %v\n", name, err)
		return ExitError
	}
	registerCompletion(parser, func(c int) { code = c })
	if code >= 0 { // The command line of a shell was completed.
		return code
	}
	k, err := parser.Parse(args)
	if code >= 0 { // The help was printed.
		return code
	}
	if err == nil {
		err = k.Run()
	}
	var ends *exitError
	switch {
	case errors.As(err, &ends):
		return ends.code
	case err != nil:
		fmt.Fprintf(s.err, "%s: error: %v\n", name, err)
		return ExitError
	}
	return ExitOK
}
