//go:build e2e

package postgresql

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/storeplane/storeplane/test/e2e/harness"
)

// started returns when each server was started, by pod.
func (d *database) started(ctx context.Context) (map[string]string, error) {
	return d.each(ctx, "SELECT pg_postmaster_start_time()")
}

// unrestarted returns an error if a server was restarted.
func (d *database) unrestarted(ctx context.Context, before map[string]string) error {
	after, err := d.started(ctx)
	if err == nil && !maps.Equal(before, after) {
		err = fmt.Errorf("servers were started at %v, and then at %v", before, after)
	}
	return err
}

// each returns the answer of each server to a query, by pod.
func (d *database) each(ctx context.Context, query string) (map[string]string, error) {
	out := map[string]string{}
	for _, p := range d.pods() {
		answer, err := d.sql(ctx, p.GetName(), "postgres", query)
		if err != nil {
			return nil, err
		}
		out[p.GetName()] = answer
	}
	return out, nil
}

// shows waits until a parameter has this value on every server.
func (d *database) shows(ctx context.Context, parameter, value string) error {
	return harness.Await(ctx, settled, parameter+" to be "+value, func(ctx context.Context) (bool, error) {
		have, err := d.each(ctx, "SHOW "+parameter)
		if err != nil {
			return false, err
		}
		for _, p := range d.pods() {
			if have[p.GetName()] != value {
				return false, fmt.Errorf("it is %v; %s", have, d.status())
			}
		}
		return true, nil
	})
}

func (d *database) reloads(ctx context.Context, n notes) error {
	before, err := d.started(ctx)
	if err != nil {
		return err
	}
	for _, value := range []string{"24MB", "4MB"} {
		start := time.Now()
		if err := d.change(ctx, harness.Patch{"parameters": harness.Patch{"work_mem": value}}); err != nil {
			return err
		}
		if err := d.shows(ctx, "work_mem", value); err != nil {
			return err
		}
		n.Addf("work_mem %s after %.1fs", value, time.Since(start).Seconds())
	}
	return d.unrestarted(ctx, before)
}

// restarts changes a parameter that may never be smaller on a standby than on its primary, which
// needs a restart: to a larger value, and back to the smaller one.
func (d *database) restarts(ctx context.Context, n notes) error {
	was, err := d.ask(ctx, "postgres", "SHOW max_connections")
	if err != nil {
		return err
	}
	for _, change := range []struct {
		parameters any
		want       string
	}{
		{harness.Patch{"max_connections": "230"}, "230"},
		{nil, was},
	} {
		before, err := d.started(ctx)
		if err != nil {
			return err
		}
		uids := d.uids()
		start := time.Now()
		if err := d.change(ctx, harness.Patch{"parameters": change.parameters}); err != nil {
			return err
		}
		if err := d.shows(ctx, "max_connections", change.want); err != nil {
			return err
		}
		n.Addf("max_connections %s after %.1fs", change.want, time.Since(start).Seconds())
		after, err := d.started(ctx)
		if err != nil {
			return err
		}
		for pod := range before {
			if before[pod] == after[pod] {
				return fmt.Errorf("server %s shows the new value without a restart", pod)
			}
		}
		if now := d.uids(); !maps.Equal(uids, now) {
			return errors.New("pods were replaced, where servers only had to restart")
		}
	}
	return nil
}

func (d *database) refusesParameter(ctx context.Context, n notes) error {
	before, err := d.started(ctx)
	if err != nil {
		return err
	}
	was, err := d.ask(ctx, "postgres", "SHOW work_mem")
	if err != nil {
		return err
	}
	start := time.Now()
	if err := d.change(ctx, harness.Patch{"parameters": harness.Patch{"work_mem": "banana"}}); err != nil {
		return err
	}
	if err := d.says(ctx, settled, "ParametersApplied False: "); err != nil {
		return err
	}
	if err := d.says(ctx, soon, "work_mem"); err != nil {
		return err
	}
	n.Addf("said after %.1fs: %q", time.Since(start).Seconds(), d.status().Condition("ParametersApplied").Message)
	if err := d.shows(ctx, "work_mem", was); err != nil {
		return err
	}
	return d.unrestarted(ctx, before)
}
