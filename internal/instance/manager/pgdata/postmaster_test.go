package pgdata

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

func TestSignal(t *testing.T) {
	cases := map[string]struct {
		reason, file string
		stopped      bool
		want         error
	}{
		"None":    {reason: "No server runs.", stopped: true, want: ErrStopped},
		"Another": {reason: "The number is another program's by now.", file: strconv.Itoa(os.Getpid()) + "\n/data\n", want: ErrStopped},
		"Ended":   {reason: "No process has that number.", file: "99999999\n/data\n", want: ErrStopped},
		"First":   {reason: "The container's first process is not the server.", file: "1\n"},
		"Group":   {reason: "A number that means many processes is refused.", file: "-1\n"},
		"Empty":   {reason: "The server is writing its file.", file: " "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if tc.file != "" {
				if err := os.WriteFile(filepath.Join(dir, "postmaster.pid"), []byte(tc.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := Stopped(dir); got != tc.stopped {
				t.Errorf("%s Stopped(): got %t, want %t", tc.reason, got, tc.stopped)
			}
			err := Signal(dir, syscall.SIGQUIT)
			if err == nil || tc.want != nil && !errors.Is(err, tc.want) || tc.want == nil && errors.Is(err, ErrStopped) {
				t.Errorf("%s Signal(): got %v, want %v", tc.reason, err, tc.want)
			}
		})
	}
}
