package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a program that runs for as long as the cluster does.
type process struct {
	name    string
	argv    []string
	inputs  []string // files that it reads once, at its start
	ports   []string // TCP addresses that it alone listens on
	healthy func(context.Context) error
	timeout time.Duration // for becoming healthy, a minute unless given
}

// record is what is kept of a started process. A pid alone may belong to
// somebody else by now; together with its start time and boot it may not.
type record struct {
	PID     int    `json:"pid"`
	Started string `json:"started"` // in clock ticks since boot, as the kernel says it
	Boot    string `json:"boot"`
	Spec    string `json:"spec"` // fingerprint of the program, its arguments and its inputs

	At time.Time `json:"at"` // when it was started
}

func (c *cluster) recordPath(name string) string { return c.path("run", name+".json") }
func (c *cluster) logPath(name string) string    { return c.path("logs", name+".log") }

// ensure sees to it that a process runs with its present settings and is
// healthy. It says what it had to do.
func (c *cluster) ensure(ctx context.Context, p process) (string, error) {
	if p.timeout == 0 {
		p.timeout = time.Minute
	}
	spec, err := p.fingerprint()
	if err != nil {
		return "", err
	}
	note := "started"
	var r record
	if readJSON(c.recordPath(p.name), &r) {
		switch {
		case !r.alive():
			note = "was dead, started again"
		case r.Spec != spec:
			note = "settings changed, restarted"
		case waitFor(ctx, 10*time.Second, p.healthy) == nil:
			return "already running", nil
		default:
			note = "was not healthy, restarted"
		}
		r.stop(ctx, 15*time.Second)
	}
	// A run that was killed between a start and its record leaves a process
	// that only its arguments tell as ours.
	for _, pid := range c.strays(p.name, p.argv[0]) {
		recordOf(pid).stop(ctx, 15*time.Second)
	}
	for _, address := range p.ports {
		if err := portFree(address); err != nil {
			return "", fmt.Errorf("cannot start %s: %w", p.name, err)
		}
	}
	exited, err := c.start(p, spec)
	if err != nil {
		return "", fmt.Errorf("cannot start %s: %w", p.name, err)
	}
	waiting, stopWaiting := context.WithCancel(ctx)
	defer stopWaiting()
	var ended error
	err = waitFor(waiting, p.timeout, func(ctx context.Context) error {
		select {
		case ended = <-exited:
			ended = fmt.Errorf("it ended: %w", ended)
			stopWaiting()
			return ended
		default:
			return p.healthy(ctx)
		}
	})
	if ended != nil {
		err = ended
	}
	if err != nil {
		return "", fmt.Errorf("cannot start %s: %w\nthe end of %s:\n%s", p.name, err, c.logPath(p.name), tail(c.logPath(p.name), 1500))
	}
	return note, nil
}

// start starts a process detached from this one. The channel gets its end, if
// that comes before ours.
func (c *cluster) start(p process, spec string) (chan error, error) {
	log, err := openLog(c.logPath(p.name))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	raiseFileLimit()
	cmd := exec.Command(p.argv[0], p.argv[1:]...) //nolint:noctx // It must outlive us.
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + c.state}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	at := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r := recordOf(cmd.Process.Pid)
	r.Spec, r.At = spec, at
	exited := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		if err == nil {
			err = errors.New("exit status 0")
		}
		exited <- err
	}()
	return exited, writeJSON(c.recordPath(p.name), r)
}

// raiseFileLimit gives what we start as many open files as the machine allows:
// the containers inherit it, and databases want a lot.
func raiseFileLimit() {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) == nil {
		l.Cur = min(l.Max, 1<<20)
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l)
	}
}

// program is the name of what runs.
func (p process) program() string { return filepath.Base(p.argv[0]) }

func (p process) fingerprint() (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", p.argv)
	for _, path := range p.inputs {
		if err := hashFile(h, path); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

// errPortTaken tells a failure that building a new cluster would not cure.
var errPortTaken = errors.New("another program uses its address, stop that first")

func portFree(address string) error {
	l, err := net.Listen("tcp", address) //nolint:noctx // Takes no time.
	if err != nil {
		return fmt.Errorf("%w: %w", errPortTaken, err)
	}
	return l.Close()
}

func recordOf(pid int) record {
	started, _ := startTime(pid)
	return record{PID: pid, Started: started, Boot: bootID()}
}

func (r record) alive() bool {
	if r.PID <= 1 || r.Started == "" || r.Boot != bootID() {
		return false
	}
	started, ok := startTime(r.PID)
	return ok && started == r.Started
}

// stop ends a process, by force once grace is over, and waits for it.
func (r record) stop(ctx context.Context, grace time.Duration) {
	ctx = context.WithoutCancel(ctx) // a process half stopped helps nobody
	gone := func(context.Context) error {
		if r.alive() {
			return errors.New("still running")
		}
		return nil
	}
	if r.alive() && grace > 0 {
		_ = syscall.Kill(r.PID, syscall.SIGTERM)
		_ = waitFor(ctx, grace, gone)
	}
	if r.alive() {
		_ = syscall.Kill(r.PID, syscall.SIGKILL)
		_ = waitFor(ctx, 10*time.Second, gone)
	}
}

// startTime is when a process started; false when it is no more, or dead and
// only not yet collected.
func startTime(pid int) (string, bool) {
	f, ok := procStat(pid)
	if !ok || f[0] == "Z" || f[0] == "X" {
		return "", false
	}
	return f[19], true
}

// procStat is the kernel's line on a process from its state on: the name before
// it may hold anything, spaces and brackets too.
func procStat(pid int) ([]string, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, false
	}
	s := string(b)
	f := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	return f, len(f) > 19
}

func pids() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var out []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

func commandLine(pid int) []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || len(b) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
}

// strays are processes of the named program that work in our state folder
// without having a record.
func (c *cluster) strays(name, program string) []int {
	var r record
	_ = readJSON(c.recordPath(name), &r)
	var out []int
	for _, pid := range pids() {
		argv := commandLine(pid)
		if len(argv) == 0 || filepath.Base(argv[0]) != filepath.Base(program) || pid == r.PID {
			continue
		}
		if slices.ContainsFunc(argv[1:], func(a string) bool { return strings.Contains(a, c.state+"/") }) {
			out = append(out, pid)
		}
	}
	return out
}
