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

// process is a program that runs as long as the cluster.
type process struct {
	name    string
	argv    []string
	env     []string // beside PATH and HOME
	inputs  []string // files that it reads only at its start
	ports   []string // TCP addresses on which only this program listens
	healthy func(context.Context) error
	timeout time.Duration // for becoming healthy; one minute if zero
}

// record is stored about a started process. Its PID may belong to another process by now; PID,
// start time and boot ID together identify a process.
type record struct {
	PID     int    `json:"pid"`
	Started string `json:"started"` // in clock ticks since boot, as in /proc/PID/stat
	Boot    string `json:"boot"`
	Spec    string `json:"spec"` // fingerprint of the program, its arguments and its inputs

	At time.Time `json:"at"` // when it was started
}

func (c *cluster) recordPath(name string) string { return c.path("run", name+".json") }
func (c *cluster) logPath(name string) string    { return c.path("logs", name+".log") }

// ensure starts a process, or restarts it if its settings have changed or it is not healthy, and
// waits until it is healthy. It returns a note for the user about what it did.
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
	// A run that was killed between starting a process and writing its record leaves a process
	// that only its arguments identify.
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

// start starts a process in its own session and writes its record. The channel receives an error
// when the process ends while this program still runs.
func (c *cluster) start(p process, spec string) (chan error, error) {
	log, err := openLog(c.logPath(p.name))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	raiseFileLimit()
	cmd := exec.Command(p.argv[0], p.argv[1:]...) //nolint:noctx // It must outlive this program.
	cmd.Dir = "/"
	cmd.Env = append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + c.state}, p.env...)
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

// raiseFileLimit raises the limit of open files, up to 1<<20, for the processes that are started
// afterwards: containers inherit it, and databases need many.
func raiseFileLimit() {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) == nil {
		l.Cur = min(l.Max, 1<<20)
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l)
	}
}

// program returns the base name of the executable.
func (p process) program() string { return filepath.Base(p.argv[0]) }

func (p process) fingerprint() (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q\n", p.argv, p.env)
	for _, path := range p.inputs {
		if err := hashFile(h, path); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

// errPortTaken marks a failure that building a new cluster would not fix.
var errPortTaken = errors.New("another program uses its address, stop that first")

func portFree(address string) error {
	l, err := net.Listen("tcp", address) //nolint:noctx // It returns at once.
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

// stop sends SIGTERM to a process and SIGKILL once grace is over, or SIGKILL at once if grace is
// zero, and waits until it has ended.
func (r record) stop(ctx context.Context, grace time.Duration) {
	ctx = context.WithoutCancel(ctx) // a process that was sent SIGTERM is always waited for
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

// startTime returns when a process started. It returns false if the process no longer exists, or
// has ended and is only not reaped yet.
func startTime(pid int) (string, bool) {
	f, ok := procStat(pid)
	if !ok || f[0] == "Z" || f[0] == "X" {
		return "", false
	}
	return f[19], true
}

// procStat returns the fields of /proc/PID/stat from the state on. The name before it may contain
// spaces and brackets.
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

// strays returns the processes of the named program that use files in the cluster's state folder
// and have no record.
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
