//go:build e2e

package appconfig

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"sigs.k8s.io/e2e-framework/klient/wait"
)

//go:embed load.py
var loadScript string

// load is a number of clients that vote until they are stopped, or until one of the bounds is
// reached.
type load struct {
	Host   string `json:"host"`
	Port   int    `json:"port"`
	Option string `json:"option"`

	// Keys are the keys that sign the receipts of polls, by the name of the poll.
	Keys map[string]string `json:"keys"`

	// Workers is the number of clients, each of which makes Rate requests a second.
	Workers int     `json:"workers"`
	Rate    float64 `json:"rate"`

	// Seconds and Most bound the duration and the number of requests.
	Seconds int `json:"seconds"`
	Most    int `json:"most"`

	// Marker is a file that is created once every worker has voted.
	Marker string `json:"marker"`
}

// tally is the result of a load.
type tally struct {
	Requests int            `json:"requests"`
	Failed   int            `json:"failed"`
	Failures []string       `json:"failures"`
	Torn     []string       `json:"torn"`
	Polls    map[string]int `json:"polls"`
	Slowest  float64        `json:"slowest"`
	Seconds  float64        `json:"seconds"`
}

func (t tally) String() string {
	return fmt.Sprintf("%d requests in %.0fs, %d failed, slowest %.2fs", t.Requests, t.Seconds, t.Failed, t.Slowest)
}

// leastRequests is the smallest number of requests that makes a load meaningful.
const leastRequests = 100

// check returns an error if a request failed, if a pod ran parts of two configurations, or if there
// were too few requests for a result.
func (t tally) check() error {
	switch {
	case t.Failed > 0:
		return fmt.Errorf("%d of %d requests failed, among them:\n  %s", t.Failed, t.Requests, strings.Join(t.Failures, "\n  "))
	case len(t.Torn) > 0:
		return fmt.Errorf("a pod had half of one configuration and half of another: receipts of polls %v are signed with other polls' keys", t.Torn)
	case t.Requests < leastRequests:
		return fmt.Errorf("only %d requests were made in %.0fs: too few to tell", t.Requests, t.Seconds)
	default:
		return nil
	}
}

// The names of the harness' client pod and its container.
const (
	ClientPod       = "e2e-client"
	clientContainer = "client"
)

// under calls change under load and returns an error if either of them fails.
func (g *ground) under(ctx context.Context, n notes, host string, keys map[string]string, change func() error) error {
	const seconds, workers, rate = 600, 4, 8
	l := load{
		Host: host, Port: port, Option: "Dogs", Keys: keys,
		Workers: workers, Rate: rate, Seconds: seconds, Most: seconds * workers * rate,
		Marker: "/tmp/load-" + rand.Text(),
	}
	ask, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("cannot encode a load: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, (seconds+60)*time.Second)
	defer cancel()
	stdin, tell := io.Pipe()
	type result struct {
		out string
		err error
	}
	ended := make(chan result, 1)
	go func() {
		out, err := cluster.Exec(ctx, g.namespace, ClientPod, clientContainer, stdin, "python3", "-c", loadScript)
		// A write to a load that has ended would block forever otherwise.
		_ = stdin.Close()
		ended <- result{out, err}
	}()
	if _, err := tell.Write(append(ask, '\n')); err != nil {
		return fmt.Errorf("cannot start the load: %w", err)
	}
	// No event of the cluster reports that a file exists.
	err = wait.For(func(ctx context.Context) (bool, error) {
		_, err := g.client.Run(ctx, "", "test", "-e", l.Marker)
		return err == nil, nil
	}, wait.WithContext(ctx), wait.WithTimeout(soon), wait.WithInterval(200*time.Millisecond), wait.WithImmediate())
	if err != nil {
		err = fmt.Errorf("cannot start the load: its first votes take longer than %s: %w", soon, err)
	} else {
		err = change()
	}
	_, _ = tell.Write([]byte("stop\n"))
	_ = tell.Close()
	r := <-ended
	t := tally{}
	if r.err != nil {
		return errors.Join(err, fmt.Errorf("cannot read what the load counted: %w", r.err))
	}
	if derr := json.Unmarshal([]byte(r.out), &t); derr != nil {
		return errors.Join(err, fmt.Errorf("cannot decode what the load counted: %w", derr))
	}
	n.Addf("%s", t)
	return errors.Join(err, t.check())
}
