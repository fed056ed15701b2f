package cache

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/storeplane/storeplane/examples/shop/internal/shop"
)

var discard = slog.New(slog.DiscardHandler)

// A redisServer is a real server, of the redis-server program on this machine.
type redisServer struct {
	t    *testing.T
	addr string
	cmd  *exec.Cmd
}

func startRedis(t *testing.T) *redisServer {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		// The end-to-end suite core tests the shop with Redis of Storeplane's image, and without
		// it. These tests need no cluster, for developers with redis-server on their machine.
		t.Skip("there is no redis-server on this machine")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &redisServer{t: t, addr: l.Addr().String()}
	_ = l.Close()
	r.up()
	t.Cleanup(r.down)
	return r
}

func (r *redisServer) up() {
	r.t.Helper()
	_, port, _ := net.SplitHostPort(r.addr)
	r.cmd = exec.Command("redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--requirepass", "pw", "--dir", r.t.TempDir())
	if err := r.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	until(r.t, "Redis listens", func() bool {
		c, err := net.Dial("tcp", r.addr)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
}

func (r *redisServer) down() {
	if r.cmd != nil {
		_ = r.cmd.Process.Signal(syscall.SIGKILL)
		_ = r.cmd.Wait()
		r.cmd = nil
	}
}

func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.After(15 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-deadline:
			t.Fatalf("gave up waiting until %s", what)
		case <-tick.C:
		}
	}
}

func cart(version int64) shop.Cart {
	return shop.NewCart(version, []shop.Line{{ProductID: "mug", Name: "Stoneware mug", Price: 1600, Quantity: version}})
}

func TestCarts(t *testing.T) {
	r := startRedis(t)
	c, err := Open("redis://:pw@"+r.addr+"/0", "", discard)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx := t.Context()

	// Each step continues with the cart of the one before.
	steps := []struct {
		reason string
		do     func()
		want   *shop.Cart
	}{
		{reason: "Nothing was stored yet", do: func() {}},
		{reason: "A copy is found again", do: func() { c.Put(ctx, "s", cart(2)) }, want: new(cart(2))},
		{reason: "A newer copy replaces it", do: func() { c.Put(ctx, "s", cart(3)) }, want: new(cart(3))},
		{reason: "A copy that comes late is older and does not", do: func() { c.Put(ctx, "s", cart(2)) }, want: new(cart(3))},
		{reason: "Carts are told apart", do: func() { c.Put(ctx, "other", cart(9)) }, want: new(cart(3))},
		{reason: "A dropped copy is gone", do: func() { c.Drop(ctx, "s") }},
	}
	for _, s := range steps {
		s.do()
		var got *shop.Cart
		if held, ok := c.Get(ctx, "s"); ok {
			got = &held
		}
		if diff := cmp.Diff(s.want, got); diff != "" {
			t.Errorf("\n%s\nGet(...): -want, +got:\n%s", s.reason, diff)
		}
	}
}

func TestCartsWithoutRedis(t *testing.T) {
	r := startRedis(t)
	c, err := Open("redis://:pw@"+r.addr+"/0", "", discard)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx := t.Context()
	c.Put(ctx, "s", cart(1))

	r.down()
	start := time.Now()
	for range 50 {
		c.Put(ctx, "s", cart(2))
		if _, ok := c.Get(ctx, "s"); ok {
			t.Fatal("Get(...): found a copy while Redis was down")
		}
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("100 uses of a cache that is down took %s", took)
	}
	if c.Ready(ctx) {
		t.Error("Ready(...): want false while Redis is down")
	}

	// An empty Redis replaces the old one.
	r.up()
	until(t, "the cache is used again", func() bool {
		c.Put(ctx, "s", cart(3))
		_, ok := c.Get(ctx, "s")
		return ok
	})
}

func TestNoCache(t *testing.T) {
	var c *Carts
	defer c.Close()
	c.Put(t.Context(), "s", cart(1))
	c.Drop(t.Context(), "s")
	if _, ok := c.Get(t.Context(), "s"); ok || c.Enabled() || c.Ready(t.Context()) {
		t.Error("a cache that was not asked for should hold nothing, and be neither enabled nor ready")
	}
}

func TestOpenHidesSecrets(t *testing.T) {
	_, err := Open("redis://:hunter2@host:port:port/x", "", discard)
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("Open(...): want an error without the password, got: %v", err)
	}
}

// TestOpenAuthorities: Open returns an error if the certificate authority for a cache with TLS
// cannot be read.
func TestOpenAuthorities(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct{ reason, uri, file, want string }{
		"Missing": {reason: "What is named must be there.", uri: "rediss://:pw@cache:6379/0", file: empty + ".old", want: "cannot read REDIS_CA_FILE"},
		"Empty":   {reason: "It must hold what it is for.", uri: "rediss://:pw@cache:6379/0", file: empty, want: "cannot use REDIS_CA_FILE"},
		"System":  {reason: "Without it the system's authorities count.", uri: "rediss://:pw@cache:6379/0"},
		"Plain":   {reason: "Without TLS there is nothing to verify.", uri: "redis://:pw@cache:6379/0", file: empty + ".old"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, err := Open(tc.uri, tc.file, discard)
			if err == nil {
				c.Close()
			}
			if got := fmt.Sprint(err); (tc.want == "") != (err == nil) || !strings.Contains(got, tc.want) {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}
