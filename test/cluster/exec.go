package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// command is a program that is run to its end.
type command struct {
	dir   string
	env   []string // in addition to this program's environment
	stdin string
	log   string // file that the output is appended to
	argv  []string
}

// run runs a command and returns its standard output. The error contains the end of its output.
func run(ctx context.Context, cmd command) (string, error) {
	c := exec.CommandContext(ctx, cmd.argv[0], cmd.argv[1:]...)
	c.Dir = cmd.dir
	c.Env = append(os.Environ(), cmd.env...)
	c.Stdin = strings.NewReader(cmd.stdin)
	// The children of a cancelled command may keep its output open. run does not wait for them.
	c.WaitDelay = 5 * time.Second
	var out, all bytes.Buffer
	c.Stdout, c.Stderr = &tee{&out, &all}, &all
	if cmd.log != "" {
		f, err := openLog(cmd.log)
		if err != nil {
			return "", err
		}
		defer f.Close()
		c.Stdout, c.Stderr = &tee{&out, f}, f
	}
	err := c.Run()
	if err == nil {
		return out.String(), nil
	}
	said := all.String()
	if cmd.log != "" {
		said = fmt.Sprintf("%s\nthe whole log is %s", tail(cmd.log, 2000), cmd.log)
	}
	if len(said) > 4000 {
		said = said[len(said)-4000:]
	}
	return "", fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.argv[0]), err, strings.TrimSpace(said))
}

// sh runs a short command.
func sh(ctx context.Context, argv ...string) (string, error) {
	return run(ctx, command{argv: argv})
}

// tee writes to two writers.
type tee struct{ a, b io.Writer }

func (t *tee) Write(p []byte) (int, error) {
	if n, err := t.a.Write(p); err != nil {
		return n, err
	}
	return t.b.Write(p)
}

func openLog(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the folder of log %s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644) //nolint:gosec // A log holds no secret.
	if err != nil {
		return nil, fmt.Errorf("cannot open log %s: %w", path, err)
	}
	return f, nil
}
