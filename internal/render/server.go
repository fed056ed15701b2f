package render

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// startTime is how long a function may take to listen.
const startTime = 20 * time.Second

// server is a running function.
type server struct {
	address string
	cmd     *exec.Cmd
	ended   chan error
	output  *bytes.Buffer
}

// startFunction serves a function's binary in review mode on a free port, and returns once it
// listens.
func startFunction(ctx context.Context, binary string, extra []string) (*server, error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}
	s := &server{address: address, ended: make(chan error, 1), output: &bytes.Buffer{}}
	args := append([]string{"--insecure", "--review", "--address=" + address, "--metrics-address="}, extra...)
	s.cmd = exec.CommandContext(ctx, binary, args...) //nolint:gosec // the user's own function
	s.cmd.Stdout, s.cmd.Stderr = s.output, s.output
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start the function: %w", err)
	}
	go func() { s.ended <- s.cmd.Wait() }()

	for deadline := time.Now().Add(startTime); time.Now().Before(deadline); {
		select {
		case err := <-s.ended:
			return nil, fmt.Errorf("cannot serve the function: it ended (%v): %s", err, strings.TrimSpace(s.output.String())) //nolint:errorlint // nil when it ended well, which %w cannot print
		default:
		}
		if c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address); err == nil {
			return s, c.Close()
		}
		time.Sleep(20 * time.Millisecond)
	}
	s.stop()
	return nil, fmt.Errorf("cannot serve the function: it does not listen on %s after %s: %s", address, startTime, strings.TrimSpace(s.output.String()))
}

// stop kills the function and waits for its end.
func (s *server) stop() {
	_ = s.cmd.Process.Kill()
	<-s.ended //nolint:errcheck // the error is that it was killed
}

// freeAddress returns a free address of the loopback interface. Another process may take it before
// the function does, which startFunction would notice.
func freeAddress(ctx context.Context) (string, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("cannot find a free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}

// BuildFunction builds the function's binary from source and returns its path. It is kept in the
// user's cache, so that an unchanged function is not built again.
func BuildFunction(ctx context.Context, pkg string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cannot find a folder for the function's binary: %w", err)
	}
	path := filepath.Join(cache, "storeplane", "render", "function")
	return path, Build(ctx, pkg, path)
}

// Build builds a function's package into a binary.
func Build(ctx context.Context, pkg, path string) error {
	if _, err := run(ctx, "go", "build", "-o", path, pkg); err != nil {
		return fmt.Errorf("cannot build the function: %w", err)
	}
	return nil
}
