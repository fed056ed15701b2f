package store

import (
	"errors"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// connectTimeout is for each host of a URI that names several, so that a
	// host which swallows packets delays the next one only so long.
	connectTimeout = 2 * time.Second

	maxConns          = 10
	healthCheckPeriod = 15 * time.Second
	pingTimeout       = time.Second
	maxConnIdleTime   = 5 * time.Minute
	maxConnLifetime   = 30 * time.Minute
)

// poolConfig returns the settings of a pool that outlives a failover of its
// database. What the URI itself says about the pool's size wins.
//
// The error never holds the URI or a part of it, since that holds a password.
func poolConfig(uri string) (*pgxpool.Config, error) {
	cfg, err := pgxpool.ParseConfig(uri)
	if err != nil {
		return nil, errors.New("cannot parse DATABASE_URL: it should read postgres://user:password@host:5432/dbname (it is not printed, as it holds a password)")
	}
	if !strings.Contains(uri, "pool_max_conns=") {
		cfg.MaxConns = maxConns
	}
	if cfg.ConnConfig.ConnectTimeout == 0 || cfg.ConnConfig.ConnectTimeout > connectTimeout {
		cfg.ConnConfig.ConnectTimeout = connectTimeout
	}
	// A host that is gone without a word is noticed by probes on the
	// connection, within 25 s, even when no request happens to use it.
	cfg.ConnConfig.DialFunc = (&net.Dialer{
		Timeout:         connectTimeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3},
	}).DialContext

	cfg.HealthCheckPeriod = healthCheckPeriod
	cfg.PingTimeout = pingTimeout
	cfg.MaxConnIdleTime = maxConnIdleTime
	cfg.MaxConnLifetime = maxConnLifetime
	cfg.MaxConnLifetimeJitter = maxConnLifetime / 5

	// No statement_timeout is set, on purpose. One that strikes while a commit
	// waits for its synchronous replica ends the wait with a mere warning, and
	// an order that a failover may still lose would be reported as placed. A
	// request's own deadline closes the connection instead, which is an error.
	if cfg.ConnConfig.RuntimeParams["application_name"] == "" {
		cfg.ConnConfig.RuntimeParams["application_name"] = "shop-backend"
	}
	return cfg, nil
}
