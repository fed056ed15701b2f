package bench

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/crossplane/function-sdk-go"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// The servers run in their own processes, so that their memory can be measured. These variables
// configure a process of this test binary that serves the floor.
const (
	envServe    = "STOREPLANE_BENCH_SERVE"
	envAddress  = "STOREPLANE_BENCH_ADDRESS"
	envClaim    = "STOREPLANE_BENCH_CLAIM"
	envObserved = "STOREPLANE_BENCH_OBSERVED"
)

func TestMain(m *testing.M) {
	if os.Getenv(envServe) == "" {
		code := m.Run()
		_ = os.RemoveAll(built.dir)
		os.Exit(code)
	}
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve() error {
	req, err := newRequest(os.Getenv(envClaim), os.Getenv(envObserved) == "true")
	if err != nil {
		return err
	}
	fn, err := newFloor(req)
	if err != nil {
		return err
	}
	return function.Serve(fn, function.Listen("tcp", os.Getenv(envAddress)), function.Insecure(true), function.WithMetricsServer(""))
}

// built is the command cmd/function that is measured, as it is shipped.
var built struct {
	sync.Once

	dir string
	err error
}

func command(b *testing.B) string {
	b.Helper()
	built.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "bench"); built.err != nil { //nolint:usetesting // It outlives the benchmark that builds it.
			return
		}
		build := exec.CommandContext(context.Background(), "go", "build", "-o", built.dir, "../../cmd/function")
		build.Stderr = os.Stderr
		built.err = build.Run()
	})
	if built.err != nil {
		b.Fatal(built.err)
	}
	return filepath.Join(built.dir, "function")
}

// server is a running server.
type server struct {
	client fnv1.FunctionRunnerServiceClient
	pid    int
}

func startServer(b *testing.B, which, claim string, observed bool) *server {
	b.Helper()
	lis, err := (&net.ListenConfig{}).Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	address := lis.Addr().String()
	if err := lis.Close(); err != nil {
		b.Fatal(err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	var cmd *exec.Cmd
	if which == "floor" {
		cmd = exec.CommandContext(ctx, os.Args[0])
		cmd.Env = append(os.Environ(), envServe+"="+which, envAddress+"="+address, envClaim+"="+claim, envObserved+"="+strconv.FormatBool(observed))
	} else {
		cmd = exec.CommandContext(ctx, command(b), "--insecure", "--address", address, "--metrics-address", "")
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true), grpc.MaxCallRecvMsgSize(64<<20), grpc.MaxCallSendMsgSize(64<<20)))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = conn.Close()
		cancel()
		_ = cmd.Wait()
	})
	return &server{client: fnv1.NewFunctionRunnerServiceClient(conn), pid: cmd.Process.Pid}
}

// residentMiB returns the resident memory of the server's process.
func (s *server) residentMiB(b *testing.B) float64 {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(bytes.TrimSpace(data))) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "VmRSS:" {
			kib, err := strconv.Atoi(f[1])
			if err != nil {
				b.Fatal(err)
			}
			return float64(kib) / 1024
		}
	}
	b.Fatal("cannot read the server's resident memory")
	return 0
}

// tick is the kernel's unit of processor time, which is the same on every architecture that Go
// supports.
const tick = 10 * time.Millisecond

// processorTime returns the processor time that the server's process has used.
func (s *server) processorTime(b *testing.B) time.Duration {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pid))
	if err != nil {
		b.Fatal(err)
	}
	// Fields are counted after the program's name, which may contain any characters.
	_, rest, _ := bytes.Cut(data, []byte(") "))
	f := strings.Fields(string(rest))
	if len(f) < 13 {
		b.Fatalf("cannot read the server's processor time in %q", data)
	}
	var sum time.Duration
	for _, ticks := range f[11:13] { // utime and stime
		n, err := strconv.Atoi(ticks)
		if err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(n) * tick
	}
	return sum
}
