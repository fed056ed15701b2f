package harness

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/client-go/tools/remotecommand"
)

//go:embed load.py
var loadScript string

// Load is a number of simulated customers of a shop, which make requests until Stop, or until one
// of the bounds is reached.
type Load struct {
	Host    string `json:"host"`
	Port    int    `json:"port"`
	TLS     *TLS   `json:"tls,omitempty"`
	Session string `json:"session"`

	// Workers is the number of customers, each of which makes Rate requests a second.
	Workers int     `json:"workers"`
	Rate    float64 `json:"rate"`

	// Seconds and Most bound the duration and the number of requests.
	Seconds int `json:"seconds"`
	Most    int `json:"most"`
}

// Tally is the result of a Load. Seconds is its duration, Slowest the longest request in seconds.
type Tally struct {
	Requests int      `json:"requests"`
	Failed   int      `json:"failed"`
	Failures []string `json:"failures"`
	Seconds  float64  `json:"seconds"`
	Slowest  float64  `json:"slowest"`

	// Orders are the IDs of the orders that were acknowledged.
	Orders []string `json:"orders"`
}

// Check returns an error if a request failed, or if fewer requests were made than are needed for a
// result.
func (t Tally) Check(least int) error {
	switch {
	case t.Failed > 0:
		return fmt.Errorf("%d of %d requests failed, among them:\n  %s", t.Failed, t.Requests, strings.Join(t.Failures, "\n  "))
	case t.Requests < least:
		return fmt.Errorf("only %d requests were made in %.0fs: too few to tell", t.Requests, t.Seconds)
	default:
		return nil
	}
}

func (t Tally) String() string {
	return fmt.Sprintf("%d requests in %.0fs, %d failed, slowest %.2fs", t.Requests, t.Seconds, t.Failed, t.Slowest)
}

// Running is a load that has been started.
type Running struct {
	stdin  *io.PipeWriter
	cancel context.CancelFunc
	done   chan error
	tally  *bytes.Buffer
}

// Start starts a load. It returns once every worker has made its first request.
func (c *Client) Start(ctx context.Context, l Load) (*Running, error) {
	ask, err := json.Marshal(l)
	if err != nil {
		return nil, fmt.Errorf("cannot encode a load: %w", err)
	}
	// The last requests have a minute to end by themselves.
	ctx, cancel := context.WithTimeout(ctx, time.Duration(l.Seconds)*time.Second+time.Minute)
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	r := &Running{stdin: inW, cancel: cancel, done: make(chan error, 1), tally: &bytes.Buffer{}}
	started := make(chan struct{})

	var errs bytes.Buffer
	ended := make(chan error, 1)
	go func() {
		err := c.cluster.stream(ctx, c.namespace, ClientPod, "client", []string{"python3", "-c", connectionScript + loadScript},
			remotecommand.StreamOptions{Stdin: inR, Stdout: outW, Stderr: &errs})
		_ = outW.Close()
		ended <- err
	}()
	go func() {
		lines := bufio.NewReader(outR)
		first, _ := lines.ReadString('\n')
		if strings.TrimSpace(first) == "started" {
			close(started)
		}
		_, _ = io.Copy(r.tally, lines)
		if err := <-ended; err != nil {
			r.done <- fmt.Errorf("%w: %s", err, bytes.TrimSpace(errs.Bytes()))
			return
		}
		r.done <- nil
	}()

	if _, err := inW.Write(append(ask, '\n')); err != nil {
		cancel()
		return nil, fmt.Errorf("cannot start the load: %w", err)
	}
	select {
	case <-started:
		return r, nil
	case err := <-r.done:
		cancel()
		return nil, fmt.Errorf("cannot start the load: it ended: %w", err)
	case <-time.After(time.Minute):
		cancel()
		return nil, errors.New("cannot start the load: its first requests take longer than a minute")
	}
}

// Stop ends the load and returns its result. It may be called once.
func (r *Running) Stop() (Tally, error) {
	defer r.cancel()
	_, _ = r.stdin.Write([]byte("stop\n"))
	_ = r.stdin.Close()
	if err := <-r.done; err != nil {
		return Tally{}, fmt.Errorf("cannot read what the load counted: %w", err)
	}
	t := Tally{}
	if err := json.Unmarshal(r.tally.Bytes(), &t); err != nil {
		return Tally{}, fmt.Errorf("cannot decode what the load counted: %w", err)
	}
	return t, nil
}
