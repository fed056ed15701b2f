package main

import (
	"context"
	"net"
	"os/exec"
	"syscall"
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/storeplane/storeplane/functions"
)

// crossplaneConfig is the configuration with which Crossplane calls functions: svcConfig in
// internal/xfn/function_runner.go of v2.4.0.
const crossplaneConfig = `{"loadBalancingConfig": [{"round_robin":{}}], "methodConfig": [{"name": [{}], "waitForReady": true}]}`

func dialOpenly(t *testing.T, target string, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(target, append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultServiceConfig(crossplaneConfig))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func helloRequest(t *testing.T) *fnv1.RunFunctionRequest {
	t.Helper()
	claim, err := structpb.NewStruct(map[string]any{
		"apiVersion": "apps.example.com/v1", "kind": "WebApp",
		"metadata": map[string]any{"name": "hello", "namespace": "team"},
		"spec":     map[string]any{"image": "registry.example.com/hello:v1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	req := &fnv1.RunFunctionRequest{Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: claim}}, RequiredResources: map[string]*fnv1.Resources{}}
	rsp, err := functions.New().RunFunction(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	// Crossplane calls again with empty results for objects that it did not find.
	for name := range rsp.GetRequirements().GetResources() {
		req.RequiredResources[name] = &fnv1.Resources{}
	}
	return req
}

// slowCall is a call whose request is still being sent. The server counts it as running from its
// first byte.
type slowCall struct{ grpc.ClientStream }

func startSlowCall(ctx context.Context, t *testing.T, conn *grpc.ClientConn) *slowCall {
	t.Helper()
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{StreamName: "RunFunction"}, fnv1.FunctionRunnerService_RunFunction_FullMethodName)
	if err != nil {
		t.Fatal(err)
	}
	// A connection is read in order: once a later call is answered, the server has begun this one.
	if _, err := fnv1.NewFunctionRunnerServiceClient(conn).RunFunction(ctx, helloRequest(t)); err != nil {
		t.Fatal(err)
	}
	return &slowCall{s}
}

func (s *slowCall) finish(t *testing.T) *fnv1.RunFunctionResponse {
	t.Helper()
	if err := s.SendMsg(helloRequest(t)); err != nil {
		t.Fatal(err)
	}
	if err := s.CloseSend(); err != nil {
		t.Fatal(err)
	}
	rsp := &fnv1.RunFunctionResponse{}
	if err := s.RecvMsg(rsp); err != nil {
		t.Fatalf("a call that is under way must be finished: %v", err)
	}
	return rsp
}

// TestStopsWithoutLoss: a command that gets SIGTERM while a call is running completes it.
func TestStopsWithoutLoss(t *testing.T) {
	address := freeAddress(t)
	cmd := command(t, "--insecure", "--address", address, "--metrics-address", "", "--drain-delay", "3s")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	slow := startSlowCall(ctx, t, dialOpenly(t, address))
	watching, stopWatching := context.WithCancel(ctx)
	watch, err := healthv1.NewHealthClient(dialOpenly(t, address)).Watch(watching, &healthv1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	expect := func(want healthv1.HealthCheckResponse_ServingStatus) {
		t.Helper()
		if got, err := watch.Recv(); err != nil || got.GetStatus() != want {
			t.Fatalf("health: want %s, got %v, %v", want, got, err)
		}
	}
	expect(healthv1.HealthCheckResponse_SERVING)

	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	expect(healthv1.HealthCheckResponse_NOT_SERVING)
	stopWatching()
	if _, err := fnv1.NewFunctionRunnerServiceClient(dialOpenly(t, address)).RunFunction(ctx, helloRequest(t)); err != nil {
		t.Errorf("who has not heard of the end yet must be served: %v", err)
	}
	for {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			break // The command no longer listens.
		}
		_ = c.Close()
		select {
		case <-ctx.Done():
			t.Fatal("new connections must be refused after the delay")
		case <-time.After(50 * time.Millisecond):
		}
	}
	if rsp := slow.finish(t); len(rsp.GetDesired().GetResources()) == 0 {
		t.Errorf("a call that is under way must be answered in full, got %v", rsp)
	}
	if err := wait(ctx, cmd); err != nil {
		t.Errorf("the command must end well: %v", err)
	}
}

// TestSharesCalls: a replica that starts later gets calls too, although Crossplane's client only
// resolves the replicas again when it loses a connection.
func TestSharesCalls(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	first, second := freeAddress(t), freeAddress(t)
	for _, address := range []string{first, second} {
		start(t, "--insecure", "--address", address, "--metrics-address", "", "--max-connection-age", "1s")
		// A refused attempt would make the client resolve the replicas again, too.
		if _, err := fnv1.NewFunctionRunnerServiceClient(dialOpenly(t, address)).RunFunction(ctx, helloRequest(t)); err != nil {
			t.Fatal(err)
		}
	}
	state := func(addresses ...string) resolver.State {
		s := resolver.State{}
		for _, a := range addresses {
			s.Endpoints = append(s.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: a}}})
		}
		return s
	}
	dns := manual.NewBuilderWithScheme("pods")
	dns.InitialState(state(first))
	dns.ResolveNowCallback = func(resolver.ResolveNowOptions) { go dns.UpdateState(state(first, second)) }
	client := fnv1.NewFunctionRunnerServiceClient(dialOpenly(t, dns.Scheme()+":///function", grpc.WithResolvers(dns)))
	for served := map[string]bool{}; len(served) < 2; {
		p := &peer.Peer{}
		if _, err := client.RunFunction(ctx, helloRequest(t), grpc.Peer(p)); err != nil {
			t.Fatalf("no call may be lost while connections are renewed, served so far by %v: %v", served, err)
		}
		served[p.Addr.String()] = true
	}
}

// TestStopsWithIdleConnections: idle connections that Crossplane keeps open do not prevent the
// command from ending.
func TestStopsWithIdleConnections(t *testing.T) {
	address := freeAddress(t)
	cmd := command(t, "--insecure", "--address", address, "--metrics-address", "", "--drain-delay", "0s")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := fnv1.NewFunctionRunnerServiceClient(dialOpenly(t, address)).RunFunction(ctx, helloRequest(t)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := wait(ctx, cmd); err != nil {
		t.Errorf("the command must end well: %v", err)
	}
}

// wait waits until a command ends, or until the context is done.
func wait(ctx context.Context, cmd *exec.Cmd) error {
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
