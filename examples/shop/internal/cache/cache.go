// Package cache keeps copies of carts in Redis. The carts in the database are authoritative: a
// cache that is absent, down, emptied or replaced costs time and nothing else, so no function of carts
// returns an error.
package cache

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/storeplane/storeplane/examples/shop/internal/shop"
)

const (
	// A slow cache is worse than none.
	dialTimeout = 500 * time.Millisecond
	opTimeout   = 250 * time.Millisecond

	// restFor is how long a cache that failed is not used, so that one which drops packets delays a
	// few requests and not all.
	restFor = 2 * time.Second

	// keepFor is how long an outdated copy may be shown at most, if it could not be replaced
	// because Redis failed at that moment.
	keepFor = time.Minute
)

// Carts are copies of carts, by session. A nil *Carts is a disabled cache, and can be used.
type Carts struct {
	client *redis.Client
	log    *slog.Logger
	wake   atomic.Int64 // Unix nanoseconds until which the cache is not used.
}

// Open returns the cache at url, a redis:// or rediss:// URI. The server of a rediss:// URI is
// verified by the authorities in a PEM file, or without one by those of the system. Open does not
// wait for Redis. The error never contains the URI, since that contains a password.
func Open(url, authorities string, log *slog.Logger) (*Carts, error) {
	opts, err := redis.ParseURL(url)
	if err != nil {
		return nil, errors.New("cannot parse REDIS_URL: it should read rediss://:password@host:6379/0 (it is not printed, as it holds a password)")
	}
	if opts.TLSConfig != nil && authorities != "" {
		pem, err := os.ReadFile(authorities)
		if err != nil {
			return nil, fmt.Errorf("cannot read REDIS_CA_FILE: %w", err)
		}
		opts.TLSConfig.RootCAs = x509.NewCertPool()
		if !opts.TLSConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("cannot use REDIS_CA_FILE: %s holds no certificate", authorities)
		}
	}
	opts.DialTimeout = dialTimeout
	opts.ReadTimeout = opTimeout
	opts.WriteTimeout = opTimeout
	opts.PoolTimeout = opTimeout
	opts.ContextTimeoutEnabled = true
	opts.DialerRetries = 1
	opts.MaxRetries = 1
	opts.ClientName = "shop-backend"
	opts.DisableIdentity = true
	// This handshake is for a managed service, and a plain Redis answers it with an error.
	opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}

	// The client logs as plain text what it cannot return. What it returns is logged here.
	redis.SetLogger(silent{})
	return &Carts{client: redis.NewClient(opts), log: log}, nil
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// Close closes the connections.
func (c *Carts) Close() {
	if c != nil {
		_ = c.client.Close()
	}
}

// Enabled reports whether there is a cache at all.
func (c *Carts) Enabled() bool { return c != nil }

// Ready reports whether the cache answers.
func (c *Carts) Ready(ctx context.Context) bool {
	if c == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	return c.client.Ping(ctx).Err() == nil
}

func key(session string) string { return "shop:cart:" + session }

// Get returns the copy of a session's cart, if there is one.
func (c *Carts) Get(ctx context.Context, session string) (shop.Cart, bool) {
	if c == nil || c.resting() {
		return shop.Cart{}, false
	}
	raw, err := c.client.HGet(ctx, key(session), "cart").Bytes()
	if err != nil {
		c.failed(ctx, err)
		return shop.Cart{}, false
	}
	var cart shop.Cart
	if err := json.Unmarshal(raw, &cart); err != nil {
		// It was written by a release that stored carts differently.
		return shop.Cart{}, false
	}
	return cart, true
}

// put stores a copy unless there is a newer one: two requests may write their copies in another
// order than that of their transactions.
var put = redis.NewScript(`
	local held = redis.call('HGET', KEYS[1], 'version')
	if held and tonumber(held) > tonumber(ARGV[1]) then return 0 end
	redis.call('HSET', KEYS[1], 'version', ARGV[1], 'cart', ARGV[2])
	redis.call('PEXPIRE', KEYS[1], ARGV[3])
	return 1`)

// Put stores a copy of a cart in the database.
func (c *Carts) Put(ctx context.Context, session string, cart shop.Cart) {
	if c == nil || c.resting() {
		return
	}
	raw, err := json.Marshal(cart)
	if err != nil {
		c.log.Info("Cannot encode a cart", "error", err)
		return
	}
	if err := put.Run(ctx, c.client, []string{key(session)}, cart.Version, raw, keepFor.Milliseconds()).Err(); err != nil {
		c.failed(ctx, err)
	}
}

// Drop removes the copy of a session's cart.
func (c *Carts) Drop(ctx context.Context, session string) {
	if c == nil || c.resting() {
		return
	}
	if err := c.client.Del(ctx, key(session)).Err(); err != nil {
		c.failed(ctx, err)
	}
}

func (c *Carts) resting() bool { return time.Now().UnixNano() < c.wake.Load() }

// failed stops the use of the cache for restFor, unless err means that nothing is stored, or the
// client disconnected.
func (c *Carts) failed(ctx context.Context, err error) {
	if errors.Is(err, redis.Nil) || errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	now := time.Now()
	wake := c.wake.Load()
	// Only one of the requests that failed together logs it.
	if wake < now.UnixNano() && c.wake.CompareAndSwap(wake, now.Add(restFor).UnixNano()) {
		c.log.Info("Cannot use the cache, going on without it", "error", err, "retryAfter", restFor.String())
	}
}
