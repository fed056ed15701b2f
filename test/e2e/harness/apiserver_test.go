package harness

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
		"OtherStart":  {"A later process of the same number is another one", with("started", "1"), "is not the API server any more"},
		"OtherBoot":   {"So is one after the machine was started again", with("boot", "x"), "is not the API server any more"},
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
