package serve

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"
)

// TestRunDrains: a server that is stopped during a request answers it, reports that it drains,
// and then closes its port.
func TestRunDrains(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	arrived, release := make(chan struct{}), make(chan struct{})
	s := &Server{Log: slog.New(slog.DiscardHandler), Delay: 100 * time.Millisecond}
	ctx, stop := context.WithCancel(t.Context())
	ran := make(chan error, 1)
	go func() {
		ran <- s.Run(ctx, l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(arrived)
			<-release
			_, _ = io.WriteString(w, "done")
		}))
	}()

	answered := make(chan string, 1)
	go func() {
		res, err := http.Get("http://" + l.Addr().String())
		if err != nil {
			answered <- err.Error()
			return
		}
		defer func() { _ = res.Body.Close() }()
		body, _ := io.ReadAll(res.Body)
		answered <- string(body)
	}()
	<-arrived
	if s.Draining() {
		t.Error("Draining(): want false before the server is told to stop")
	}
	stop()
	select {
	case err := <-ran:
		t.Fatalf("Run(...): returned during a request: %v", err)
	case <-time.After(300 * time.Millisecond):
		// There is no event to wait for: the test checks that Run does not return.
	}
	if !s.Draining() {
		t.Error("Draining(): want true after the server was told to stop")
	}
	close(release)
	if got := <-answered; got != "done" {
		t.Errorf("the request in flight: want done, got %q", got)
	}
	if err := <-ran; err != nil {
		t.Errorf("Run(...): %v", err)
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("the port should be closed")
	}
}

func TestSettings(t *testing.T) {
	cases := map[string]struct {
		reason string
		env    string
		value  string
	}{
		"PortIsNoNumber":  {reason: "A port that is none should be named", env: "PORT", value: "http"},
		"PortOutOfRange":  {reason: "A port has 16 bits", env: "PORT", value: "70000"},
		"DelayIsNoNumber": {reason: "A duration needs a unit", env: "SHUTDOWN_DELAY", value: "3"},
		"DelayTooLong":    {reason: "A delay that leaves no time to drain is refused", env: "SHUTDOWN_DELAY", value: "30s"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv(tc.env, tc.value)
			_, errNew := New(slog.New(slog.DiscardHandler))
			l, errListen := Listen()
			if l != nil {
				_ = l.Close()
			}
			if errNew == nil && errListen == nil {
				t.Errorf("\n%s\n%s=%s: want an error", tc.reason, tc.env, tc.value)
			}
		})
	}
}
