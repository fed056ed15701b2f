package pgbackrest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// Program is the name of pgBackRest's program.
const Program = "pgbackrest"

// stopWithin is how long pgBackRest may take to end after SIGTERM.
const stopWithin = 20 * time.Second

// A Tool runs pgBackRest.
type Tool struct {
	// ConfigFile is the file with the configuration of the repository.
	ConfigFile string

	// Env is what Environment returns.
	Env []string

	// Log receives pgBackRest's warnings and errors, or is nil.
	Log io.Writer
}

// An Error is an error that pgBackRest reported.
type Error struct {
	Command string `json:"command"`

	// Code is the exit code.
	Code int `json:"code"`

	// Message is the error's text, without the number before it.
	Message string `json:"message"`
}

func (e *Error) Error() string {
	return fmt.Sprintf("cannot %s: pgBackRest reports: %s", words(e.Command), e.Message)
}

// logLine matches a line that does not belong to the error before it.
var logLine = regexp.MustCompile(`^(WARN|HINT|INFO|DETAIL):`)

// words returns what a command does, for messages.
func words(command string) string {
	switch command {
	case "backup":
		return "make a backup"
	case "archive-push":
		return "archive WAL"
	case "archive-get":
		return "get WAL"
	case "stanza-create":
		return "set up the repository"
	case "stanza-delete":
		return "delete the backups"
	case "info", "repo-ls", "repo-get":
		return "read the repository"
	}
	return command + " the backups"
}

// Run runs a command for a stanza, or for all of them if it is "", and returns its output.
func (t Tool) Run(ctx context.Context, stanza, command string, options ...string) ([]byte, error) {
	args := []string{"--config=" + t.ConfigFile}
	if stanza != "" {
		args = append(args, "--stanza="+stanza)
	}
	// The arguments of a command come last.
	args = append(append(args, command), options...)
	cmd := exec.CommandContext(ctx, Program, args...) //nolint:gosec // the program is a constant
	cmd.Env = append(os.Environ(), t.Env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopWithin
	var out, said bytes.Buffer
	cmd.Stdout = &out
	cmd.Stderr = &said
	if t.Log != nil {
		cmd.Stderr = io.MultiWriter(&said, t.Log)
	}
	err := cmd.Run()
	if err == nil {
		return out.Bytes(), nil
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("cannot %s: %w", words(command), context.Cause(ctx))
	}
	exit := &exec.ExitError{}
	if !errors.As(err, &exit) {
		return nil, fmt.Errorf("cannot start pgBackRest: %w", err)
	}
	return nil, &Error{Command: command, Code: exit.ExitCode(), Message: message(said.String(), exit)}
}

// noRepository is an error of pgBackRest whose cause is in a warning before it.
const noRepository = "unable to find a valid repository"

// withoutOrigin returns the text of an error without its number, and without that of the local
// process which differs each time.
func withoutOrigin(text string) string {
	if _, after, ok := strings.Cut(text, "]: "); ok && strings.HasPrefix(text, "[") {
		text = after
	}
	if _, after, ok := strings.Cut(text, " protocol: "); ok && strings.HasPrefix(text, "raised from local-") {
		text = after
	}
	return text
}

// message returns the first error of pgBackRest's output, in one line.
func message(said string, exit *exec.ExitError) string {
	var out []string
	warned := ""
	for line := range strings.Lines(said) {
		text := strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(text, "WARN: "); ok && len(out) == 0 {
			warned = rest
		}
		if rest, ok := strings.CutPrefix(text, "ERROR: "); ok {
			if len(out) > 0 {
				break
			}
			if rest = withoutOrigin(rest); rest == noRepository && warned != "" {
				rest += ": " + warned
			}
			out = append(out, rest)
			continue
		}
		if len(out) == 0 || text == "" {
			continue
		}
		// The retries, the failed request and the whole answer of a store are of no use to users.
		if logLine.MatchString(text) || strings.HasPrefix(text, "*** ") || strings.Contains(text, "] on retry ") || strings.Contains(text, " on ") && strings.Contains(text, " retries ") {
			break
		}
		out = append(out, text)
		if len(out) == 12 {
			break
		}
	}
	if len(out) == 0 {
		return "it ended with " + exit.String()
	}
	return strings.Join(out, " ")
}
