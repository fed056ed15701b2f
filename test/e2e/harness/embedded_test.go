package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestRenice: a priority is that of the process and of its session.
func TestRenice(t *testing.T) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Skip("it needs Linux")
	}
	sleep := exec.CommandContext(t.Context(), "sleep", "60")
	sleep.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sleep.Process.Kill(); _ = sleep.Wait() }()
	dir := t.TempDir()
	raw, err := json.Marshal(map[string]any{"pid": sleep.Process.Pid, "started": startOf(sleep.Process.Pid), "boot": strings.TrimSpace(string(boot))})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "run"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "run", "sleep.json"), raw, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Renice(filepath.Join(dir, "kubeconfig"), "sleep", 19); err != nil {
		t.Fatal(err)
	}
	// The system call answers 20 less the priority.
	got, err := syscall.Getpriority(syscall.PRIO_PROCESS, sleep.Process.Pid)
	if err != nil || got != 20-19 {
		t.Errorf("priority: want 1, got %d, %v", got, err)
	}
	session, err := os.ReadFile(fmt.Sprintf("/proc/%d/autogroup", sleep.Process.Pid))
	if err == nil && !strings.Contains(string(session), "nice 19") {
		t.Errorf("session: want it to have the priority too, got %q", session)
	}
	if err := Renice(filepath.Join(dir, "kubeconfig"), "other", 19); !errors.Is(err, ErrNotEmbedded) {
		t.Errorf("Renice() of what does not run: want %v, got %v", ErrNotEmbedded, err)
	}
}

func TestFindAPIServer(t *testing.T) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Skip("it needs Linux")
	}
	mine := map[string]any{"pid": os.Getpid(), "started": startOf(os.Getpid()), "boot": strings.TrimSpace(string(boot))}
	with := func(key string, value any) map[string]any {
		out := map[string]any{key: value}
		for k, v := range mine {
			if k != key {
				out[k] = v
			}
		}
		return out
	}
	cases := map[string]struct {
		reason string
		record any
		want   string
	}{
		"Found":       {"A process that is the one written down", mine, ""},
		"OtherStart":  {"A later process of the same number is another one", with("started", "1"), "is not kube-apiserver any more"},
		"OtherBoot":   {"So is one after the machine was started again", with("boot", "x"), "is not kube-apiserver any more"},
		"NotEmbedded": {"Without a record it is another cluster", nil, ErrNotEmbedded.Error()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if tc.record != nil {
				raw, err := json.Marshal(tc.record)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.MkdirAll(filepath.Join(dir, "run"), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, "run", "kube-apiserver.json"), raw, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			_, err := FindAPIServer(filepath.Join(dir, "kubeconfig"))
			got := ""
			if err != nil {
				got = err.Error()
			}
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("\n%s\nFindAPIServer(...): %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
