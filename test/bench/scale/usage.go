package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// systemNamespace is the namespace of Crossplane, its functions and its providers, and
// metricsPort is the port of their metrics.
const (
	systemNamespace = "crossplane-system"
	metricsPort     = "8080"
)

// programs are the programs whose processor time and memory are measured.
var programs = []string{"crossplane", "function", "provider", "kube-apiserver", "etcd"}

// usage is what has been used up to a point in time.
type usage struct {
	requests, applies float64

	// The requests of the clients that report them.
	crossplane, provider float64

	opened float64 // circuit breakers

	seconds map[string]float64 // of processor time, by program
	running map[string]string  // what its processes are, by program
	others  []string           // programs that were restarted in between
	peak    map[string]float64 // MiB, by program: the sum of the peaks of its processes
}

func (b *bench) use(ctx context.Context) (usage, error) {
	u := usage{}
	m, err := b.cluster.APIServerMetrics(ctx)
	if err != nil {
		return u, err
	}
	u.requests = m.Sum("apiserver_request_total", nil)
	u.applies = m.Sum("apiserver_request_total", map[string]string{"verb": "APPLY"})
	for label, into := range map[string]*float64{"app=crossplane": &u.crossplane, "pkg.crossplane.io/provider": &u.provider} {
		pods, err := b.cluster.List(ctx, "Pod", systemNamespace, label)
		if err != nil {
			return u, err
		}
		for _, p := range pods {
			// A pod that is terminating does not answer, and is not counted.
			if m, err := b.cluster.PodMetrics(ctx, systemNamespace, p.GetName(), metricsPort); err == nil {
				*into += m.Sum("rest_client_requests_total", nil)
				u.opened += m.Sum("circuit_breaker_opens_total", nil)
			}
		}
	}
	u.seconds, u.peak, u.running, err = processes()
	return u, err
}

// ticks is the number of units of processor time per second, which is the same on all machines
// with Linux that Go supports.
const ticks = 100

// resetPeaks has the peaks of memory begin at what is used now: proc(5), clear_refs.
func resetPeaks() error {
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return fmt.Errorf("cannot list processes: %w", err)
	}
	for _, dir := range all {
		if programOf(dir) == "" {
			continue
		}
		err := os.WriteFile(filepath.Join(dir, "clear_refs"), []byte("5"), 0)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("cannot reset the peak of the memory of a process: %w", err)
		}
	}
	return nil
}

// processes returns the processor time in seconds and the peak memory in MiB of this machine's
// processes, by program, and which processes these are.
func processes() (seconds, peak map[string]float64, running map[string]string, err error) {
	seconds, peak, running = map[string]float64{}, map[string]float64{}, map[string]string{}
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, nil, nil, fmt.Errorf("cannot list processes: %w", err)
	}
	for _, dir := range all {
		name := programOf(dir)
		if name == "" {
			continue
		}
		running[name] += dir + " "
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue // The process has ended.
		}
		// The name in parentheses may contain spaces.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		for _, at := range []int{11, 12} { // utime and stime: proc_pid_stat(5)
			n, _ := strconv.ParseFloat(fields[at], 64)
			seconds[name] += n / ticks
		}
		status, err := os.ReadFile(filepath.Join(dir, "status"))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(status)) {
			if kib, ok := strings.CutPrefix(line, "VmHWM:"); ok {
				n, _ := strconv.ParseFloat(strings.Fields(kib)[0], 64)
				peak[name] += n / 1024
			}
		}
	}
	if seconds["kube-apiserver"] == 0 {
		return nil, nil, nil, errors.New("cannot find the processes of the cluster: it must be the embedded one, on this machine")
	}
	return seconds, peak, running, nil
}

// programOf returns which of programs a process runs, or "". Crossplane's RBAC manager, which is
// the same executable, is not counted.
func programOf(dir string) string {
	b, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	if err != nil || len(b) == 0 {
		return ""
	}
	args := strings.Split(string(b), "\x00")
	name := filepath.Base(args[0])
	for _, p := range programs {
		if name == p && (p != "crossplane" || len(args) > 1 && args[1] == "core") {
			return p
		}
	}
	return ""
}

// restarted returns the programs whose processes are others than before, and whose counters have started
// over at zero.
func (u usage) restarted(before usage) []string {
	var out []string
	for _, p := range programs {
		if u.running[p] != before.running[p] {
			out = append(out, p)
		}
	}
	return out
}

// less returns what was used between before and u. The peak is that of u.
func (u usage) less(before usage) usage {
	out := usage{
		requests: u.requests - before.requests, applies: u.applies - before.applies,
		crossplane: u.crossplane - before.crossplane, provider: u.provider - before.provider,
		opened: u.opened - before.opened, seconds: map[string]float64{}, peak: u.peak,
		others: u.restarted(before),
	}
	for p, s := range u.seconds {
		out.seconds[p] = s - before.seconds[p]
	}
	return out
}
