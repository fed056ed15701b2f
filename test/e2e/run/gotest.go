package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// module is the path of the Go module that contains this command.
const module = "github.com/storeplane/storeplane"

// exportLine matches a line that test/cluster env prints.
var exportLine = regexp.MustCompile(`^export ([A-Z]+)="(.*?)"(:"\$PATH")?$`)

// environment returns the environment variables of the tests. Without KUBECONFIG they are those of
// the embedded cluster.
func environment(ctx context.Context) ([]string, error) {
	env := os.Environ()
	if os.Getenv("KUBECONFIG") != "" {
		if os.Getenv("REGISTRY") == "" {
			return nil, errors.New("cannot run against KUBECONFIG without REGISTRY: set it to the registry and path that hold shop-backend and shop-frontend, v1 and v2")
		}
		return env, nil
	}
	cmd := exec.CommandContext(ctx, "go", "run", path.Join(module, "test/cluster"), "env")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot find the embedded cluster: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		m := exportLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		value := m[2]
		if m[3] != "" {
			value += ":" + os.Getenv("PATH")
		}
		// The tests look up kubectl in the PATH of their own process.
		env = append(env, m[1]+"="+value)
	}
	return env, nil
}

// test runs the suite with go test and adds its events to the report. The returned error is about
// the run as a whole, not about one check.
func (c *cli) test(ctx context.Context, env []string, r *report) error {
	args := []string{"test", "-json", "-tags", "e2e", "-count", "1", "-timeout", "150m"}
	args = append(args, path.Join(module, "test/e2e", c.Suite), "-args", "-out="+c.Out, fmt.Sprintf("-full=%t", c.Full), fmt.Sprintf("-keep=%t", c.Keep))
	if c.Only != "" {
		args = append(args, "-checks="+c.Only)
	}
	if c.Soak {
		args = append(args, fmt.Sprintf("-soak=%d", c.Seed), fmt.Sprintf("-faults=%d", c.Faults))
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = env
	cmd.Stderr = os.Stderr
	// Pass an interrupt on to the tests, which then clean up and end by themselves.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 3 * time.Minute

	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("cannot read the tests' events: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("cannot start go test: %w", err)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			fmt.Fprintln(os.Stderr, lines.Text())
			continue
		}
		r.add(e)
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("go test: %w", err)
	}
	return nil
}
