package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// server is a measured server and how to connect to it.
type server struct {
	name, host, user, database, password string

	// sslmode is libpq's parameter of that name.
	sslmode string
}

func (s server) with(name, sslmode string) server {
	s.name, s.sslmode = name, sslmode
	return s
}

// workload is a pgbench workload: its name and its arguments.
type workload struct {
	name string
	args []string
}

var (
	selectOnly = workload{"select-only", []string{"--select-only", "--no-vacuum"}}
	tpcb       = workload{"tpcb-like", nil}
	reconnects = workload{"select-only, a connection each", []string{"--select-only", "--no-vacuum", "--connect"}}
)

// pgbench runs pgbench in the client's pod and returns its output. The password is passed on
// standard input, so that it is in no argument.
func pgbench(ctx context.Context, c *harness.Client, s server, within time.Duration, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	command := []string{"sh", "-c", `IFS= read -r PGPASSWORD; export PGPASSWORD; exec pgbench "$@"`, "pgbench"}
	command = append(command, args...)
	command = append(command, fmt.Sprintf("host=%s user=%s dbname=%s sslmode=%s connect_timeout=10", s.host, s.user, s.database, s.sslmode))
	out, err := c.Run(ctx, s.password+"\n", command...)
	if err != nil {
		return "", fmt.Errorf("cannot run pgbench against %s: %w", s.name, err)
	}
	return out, nil
}

var (
	tpsLine    = regexp.MustCompile(`(?m)^tps = ([0-9.]+)`)
	failedLine = regexp.MustCompile(`(?m)^number of failed transactions: ([0-9]+)`)
)

// tpsOf returns the transactions per second from pgbench's output, or an error if a transaction
// has failed.
func tpsOf(out string) (float64, error) {
	if m := failedLine.FindStringSubmatch(out); m != nil && m[1] != "0" {
		return 0, fmt.Errorf("cannot use a measurement with %s failed transactions", m[1])
	}
	m := tpsLine.FindStringSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("cannot find tps in %q", strings.TrimSpace(out))
	}
	tps, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0, fmt.Errorf("cannot parse tps: %w", err)
	}
	return tps, nil
}
